#include "foretune/environment/observe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/environment/observation_texts.h"
#include "foretune/environment/observations.h"

namespace foretune::environment {
namespace {

using Observe = Observation (*)(const Environment& environment);

FloatTensor zeros(std::vector<std::size_t> shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) {
    count *= size;
  }
  return {.shape = std::move(shape), .values = std::vector<float>(count)};
}

Observation loops_tensor(const Environment& environment) {
  FloatTensor out = zeros({environment.options().max_loops, kLoopsTensorColumns});
  write_loops_tensor(environment.computation(), environment.state(), out.values);
  return out;
}

Observation loops_features(const Environment& environment) {
  FloatTensor out = zeros({environment.options().max_loops, kLoopFeatureColumns});
  write_loops_features(environment.computation(), environment.state(), out.values);
  return out;
}

Observation stride_tensor(const Environment& environment) {
  FloatTensor out = zeros({kStrideBins});
  write_stride_tensor(environment.computation(), environment.state().nest,
                      std::span<float, kStrideBins>(out.values));
  return out;
}

Observation previous_actions(const Environment& environment) {
  FloatTensor out = zeros({kPreviousActions, environment.actions().size()});
  write_previous_actions(environment.actions(), environment.actions_taken(), out.values);
  return out;
}

template <std::string (*kText)(const loop::Computation&, const State&)>
Observation text(const Environment& environment) {
  return kText(environment.computation(), environment.state());
}

struct Entry {
  ObservationInfo info;
  Observe observe;
};

constexpr auto kNumber = ObservationKind::kNumber;
constexpr auto kTensor = ObservationKind::kFloatTensor;
constexpr auto kText = ObservationKind::kText;

constexpr std::array<Entry, 13> kEntries = {{
    {{"runtime", kNumber, "s", "time of one run; infinite where the schedule was refused"},
     [](const Environment& each) -> Observation { return each.runtime_seconds(); }},
    {{"runtime_ns", kNumber, "ns", "the same in nanoseconds"},
     [](const Environment& each) -> Observation { return each.runtime_ns(); }},
    {{"flops", kNumber, "GFLOPS", "rate of one run; 0 where the schedule was refused"},
     [](const Environment& each) -> Observation { return each.gflops(); }},
    {{"ir", kText, "", "the computation and its canonical schedule"}, text<ir>},
    {{"loop_tree", kText, "", "the loops as an indented tree, with the cursor"}, text<loop_tree>},
    {{"ir_tree_networkx", kText, "", "the loops as JSON for networkx.tree_graph"},
     text<ir_tree_json>},
    {{"ir_tree_dot", kText, "", "the loops for Graphviz"}, text<ir_tree_dot>},
    {{"ir_graph_networkx", kText, "",
      "loops, tensors and the operation as JSON for networkx.node_link_graph"},
     text<ir_graph_json>},
    {{"ir_graph_dot", kText, "", "loops, tensors and the operation for Graphviz"},
     text<ir_graph_dot>},
    {{"loops_tensor", kTensor, "", "LoopTune's features of each loop"}, loops_tensor},
    {{"loops_features", kTensor, "", "named features of each loop"}, loops_features},
    {{"stride_tensor", kTensor, "", "parts of the accesses by log2 of their strides"},
     stride_tensor},
    {{"5_prev_actions_tensor", kTensor, "", "the last five actions, oldest first, one-hot"},
     previous_actions},
}};

constexpr std::array<ObservationInfo, kEntries.size()> kInfos = [] {
  std::array<ObservationInfo, kEntries.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = kEntries[i].info;
  }
  return out;
}();

}  // namespace

std::span<const ObservationInfo> observations() { return kInfos; }

Result<Observation> observe(const Environment& environment, std::string_view name) {
  const auto* entry = std::find_if(kEntries.begin(), kEntries.end(),
                                   [&](const Entry& each) { return each.info.name == name; });
  if (entry != kEntries.end()) {
    return entry->observe(environment);
  }
  std::vector<std::string> names;
  for (const ObservationInfo& info : kInfos) {
    names.emplace_back(info.name);
  }
  return fail(ErrorCode::kInvalidArgument, quoted(name),
              " is no observation; the observations are ", join(names, " "));
}

}  // namespace foretune::environment
