#include "foretune/loop/gym/observe.h"

#include <array>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/loop/gym/observation_texts.h"
#include "foretune/loop/gym/observations.h"

namespace foretune::loop::gym {
namespace {

using Shape = std::vector<std::size_t>;

using Number = double (*)(const Environment& environment);
struct Tensor {
  Shape (*shape)(const EnvironmentOptions& options, const ActionSet& actions);
  void (*write)(const Environment& environment, std::span<float> out);
};
using Text = std::string (*)(const loop::Computation& computation, const State& state);

struct Entry {
  std::string_view name;
  std::string_view unit;
  std::string_view what;
  std::variant<Number, Tensor, Text> make;  // in the order of ObservationKind
};

constexpr Tensor kLoopsTensor{[](const EnvironmentOptions& options, const ActionSet&) {
                                return Shape{options.max_loops, kLoopsTensorColumns};
                              },
                              [](const Environment& environment, std::span<float> out) {
                                write_loops_tensor(environment.computation(), environment.state(),
                                                   out);
                              }};
constexpr Tensor kLoopsFeatures{[](const EnvironmentOptions& options, const ActionSet&) {
                                  return Shape{options.max_loops, kLoopFeatureColumns};
                                },
                                [](const Environment& environment, std::span<float> out) {
                                  write_loops_features(environment.computation(),
                                                       environment.state(), out);
                                }};
constexpr Tensor kStrideTensor{
    [](const EnvironmentOptions&, const ActionSet&) { return Shape{kStrideBins}; },
    [](const Environment& environment, std::span<float> out) {
      write_stride_tensor(environment.computation(), environment.state().nest,
                          out.first<kStrideBins>());
    }};
constexpr Tensor kPreviousActionsTensor{[](const EnvironmentOptions&, const ActionSet& actions) {
                                          return Shape{kPreviousActions, actions.size()};
                                        },
                                        [](const Environment& environment, std::span<float> out) {
                                          write_previous_actions(environment.actions(),
                                                                 environment.actions_taken(), out);
                                        }};

constexpr std::array<Entry, 13> kEntries = {{
    {"runtime", "s", "time of one run; infinite where the schedule was refused",
     [](const Environment& each) { return each.runtime_seconds(); }},
    {"runtime_ns", "ns", "the same in nanoseconds",
     [](const Environment& each) { return each.runtime_ns(); }},
    {"flops", "GFLOPS", "rate of one run; 0 where the schedule was refused",
     [](const Environment& each) { return each.gflops(); }},
    {"ir", "", "the computation and its canonical schedule", &ir},
    {"loop_tree", "", "the loops as an indented tree, with the cursor", &loop_tree},
    {"ir_tree_networkx", "", "the loops as JSON for networkx.tree_graph", &ir_tree_json},
    {"ir_tree_dot", "", "the loops for Graphviz", &ir_tree_dot},
    {"ir_graph_networkx", "",
     "loops, tensors and the operation as JSON for networkx.node_link_graph", &ir_graph_json},
    {"ir_graph_dot", "", "loops, tensors and the operation for Graphviz", &ir_graph_dot},
    {"loops_tensor", "", "LoopTune's features of each loop", kLoopsTensor},
    {"loops_features", "", "named features of each loop", kLoopsFeatures},
    {"stride_tensor", "", "parts of the accesses by log2 of their strides", kStrideTensor},
    {"5_prev_actions_tensor", "", "the last five actions, oldest first, one-hot",
     kPreviousActionsTensor},
}};

constexpr std::array<ObservationInfo, kEntries.size()> kInfos = [] {
  std::array<ObservationInfo, kEntries.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = {.name = kEntries[i].name,
              .kind = static_cast<ObservationKind>(kEntries[i].make.index()),
              .unit = kEntries[i].unit,
              .what = kEntries[i].what};
  }
  return out;
}();

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) {
    count *= size;
  }
  return count;
}

}  // namespace

std::span<const ObservationInfo> observations() { return kInfos; }

Result<std::size_t> find_observation(std::string_view name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) {
      return i;
    }
    names.emplace_back(kInfos[i].name);
  }
  return fail(ErrorCode::kInvalidArgument, quoted(name),
              " is no observation; the observations are ", join(names, " "));
}

Shape observation_shape(std::size_t index, const EnvironmentOptions& options,
                        const ActionSet& actions) {
  const auto* const tensor = std::get_if<Tensor>(&kEntries.at(index).make);
  return tensor == nullptr ? Shape() : tensor->shape(options, actions);
}

Observation observe(const Environment& environment, std::size_t index) {
  const Entry& entry = kEntries.at(index);
  if (const auto* const number = std::get_if<Number>(&entry.make)) {
    return (*number)(environment);
  }
  if (const auto* const text = std::get_if<Text>(&entry.make)) {
    return (*text)(environment.computation(), environment.state());
  }
  FloatTensor out{.shape = observation_shape(index, environment.options(), environment.actions()),
                  .values = {}};
  out.values.resize(count_of(out.shape));
  write_observation(environment, index, out.values);
  return out;
}

Result<Observation> observe(const Environment& environment, std::string_view name) {
  FORETUNE_TRY(const std::size_t index, find_observation(name));
  return observe(environment, index);
}

void write_observation(const Environment& environment, std::size_t index, std::span<float> out) {
  const auto* const tensor = std::get_if<Tensor>(&kEntries.at(index).make);
  FORETUNE_CHECK(tensor != nullptr);
  tensor->write(environment, out);
}

}  // namespace foretune::loop::gym
