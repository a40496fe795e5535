// Bindings for neural networks: reading them, and running them on NumPy's arrays.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/network.h"
#include "foretune/graph/network_file.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/run/network_switch.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/simplify.h"
#include "foretune/graph/task.h"
#include "foretune/interop/onnx/onnx_network.h"
#include "foretune/problem/gemm/gemm.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using graph::Network;
using graph::NetworkPlan;
using graph::NetworkSwitch;
using Given = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Computed = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

using Pixels = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;

// Layers as Python passes them: the type, periods and positions of rows, columns, taps and weights,
// and whether an interpolation comes before the ReLU.
using GivenVariants = std::map<std::string, std::pair<std::string, std::vector<std::int64_t>>>;
using GivenRanges = std::map<std::string, std::pair<float, float>>;

graph::Variants take_variants(const GivenVariants& given) {
  graph::Variants variants;
  for (const auto& [name, value] : given) {
    const auto& skips = value.second;
    variants[name] = {.type = checked(parse_data_type(value.first)),
                      .skip_rows = skips.at(0),
                      .skip_rows_at = skips.at(1),
                      .skip_columns = skips.at(2),
                      .skip_columns_at = skips.at(3),
                      .skip_taps = skips.at(4),
                      .skip_taps_at = skips.at(5),
                      .zero_weights = skips.at(6),
                      .zero_weights_at = skips.at(7),
                      .before_activation = skips.at(8) != 0};
  }
  return variants;
}

// Checks that the arrays have the elements that the plan wants, and returns where they begin.
template <class Pointer, class Array>
std::vector<Pointer> pointers(const char* what, const std::vector<Array>& arrays,
                              std::span<const std::int64_t> wanted) {
  if (arrays.size() != wanted.size()) {
    raise({ErrorCode::kInvalidArgument,
           concat("the network has ", wanted.size(), " ", what, "s, not ", arrays.size())});
  }
  std::vector<Pointer> out;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].size() != static_cast<std::size_t>(wanted[i])) {
      raise({ErrorCode::kInvalidArgument, concat("an ", what, " has ", arrays[i].size(),
                                                 " elements; the plan wants ", wanted[i])});
    }
    out.push_back(arrays[i].data());
  }
  return out;
}

void run_plan(const NetworkPlan& plan, const std::vector<Given>& inputs,
              const std::vector<Computed>& outputs) {
  const auto from = pointers<const float*>("input", inputs, plan.input_elements());
  const auto to = pointers<float*>("output", outputs, plan.output_elements());
  checked(without_lock([&] { return plan.run(from, to); }));
}

// Checking the arrays counts as time of the call.
void run_switch(NetworkSwitch& network, const std::vector<Given>& inputs,
                const std::vector<Computed>& outputs, double spent_ns) {
  const auto begin = std::chrono::steady_clock::now();
  const auto from = pointers<const float*>("input", inputs, network.plan().input_elements());
  const auto to = pointers<float*>("output", outputs, network.plan().output_elements());
  checked(without_lock([&] {
    const std::chrono::duration<double, std::nano> here = std::chrono::steady_clock::now() - begin;
    return network.run(from, to, spent_ns + here.count());
  }));
}

// Each plan comes with its quality and its expected ns, which may be 0.
std::unique_ptr<NetworkSwitch> make_switch(
    std::vector<std::tuple<std::shared_ptr<NetworkPlan>, double, double>> given, double target_ns,
    double window_ns) {
  std::vector<graph::SwitchedPlan> plans;
  for (auto& [plan, quality, expected_ns] : given) {
    plans.push_back({std::move(plan), quality, expected_ns});
  }
  return checked(without_lock([&] {
    return NetworkSwitch::create(std::move(plans),
                                 {.target_ns = target_ns, .window_ns = window_ns});
  }));
}

GivenRanges observe(const NetworkPlan& plan, const std::vector<Given>& inputs,
                    const std::vector<Computed>& outputs, const GivenRanges& ranges) {
  const auto from = pointers<const float*>("input", inputs, plan.input_elements());
  const auto to = pointers<float*>("output", outputs, plan.output_elements());
  graph::Calibration calibration;
  for (const auto& [name, range] : ranges) {
    calibration[name] = {range.first, range.second};
  }
  checked(without_lock([&] { return plan.observe(from, to, calibration); }));
  GivenRanges widened;
  for (const auto& [name, range] : calibration) {
    widened[name] = {range.low, range.high};
  }
  return widened;
}

std::vector<std::tuple<std::string, std::string, double>> profile(
    const NetworkPlan& plan, const std::vector<Given>& inputs,
    const std::vector<Computed>& outputs) {
  const auto from = pointers<const float*>("input", inputs, plan.input_elements());
  const auto to = pointers<float*>("output", outputs, plan.output_elements());
  std::vector<std::tuple<std::string, std::string, double>> steps;
  for (const graph::StepProfile& step :
       checked(without_lock([&] { return plan.profile(from, to); }))) {
    steps.emplace_back(step.name, step.describe, step.ns);
  }
  return steps;
}

// Name, operation, shape of the result, multiply-adds, shape of the weights and groups.
using ListedNode = std::tuple<std::string, std::string, std::vector<std::int64_t>, double,
                              std::vector<std::int64_t>, std::int64_t>;

std::vector<ListedNode> nodes_of(const Network& network) {
  std::vector<ListedNode> nodes;
  for (const graph::Node& node : network.nodes()) {
    const graph::Shape& shape = network.tensor(node.output).shape;
    std::vector<graph::OperandShape> operands;
    for (const graph::TensorId id : node.inputs) {
      operands.push_back({network.tensor(id).shape, network.tensor(id).is_constant()});
    }
    const double multiply_adds =
        node.op->multiply_adds == nullptr ? 0.0 : node.op->multiply_adds(operands, shape);
    std::vector<std::int64_t> weights;
    std::int64_t groups = 1;
    if (node.op->name == "conv" || node.op->name == "linear") {
      weights = network.tensor(node.inputs[1]).shape;
      if (node.op->name == "conv") {
        groups = graph::conv_window(weights, node.attributes).groups;
      }
    }
    nodes.emplace_back(node.name, std::string(node.op->name), shape, multiply_adds,
                       std::move(weights), groups);
  }
  return nodes;
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> named_shapes(
    const Network& network, std::span<const graph::TensorId> ids) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (const graph::TensorId id : ids) {
    shapes.emplace_back(network.tensor(id).name, network.tensor(id).shape);
  }
  return shapes;
}

}  // namespace

void bind_networks(nb::module_& module) {
  nb::class_<graph::Executor>(module, "Executor")
      .def(nb::new_([](int threads, int measure_top, const std::string& isa) {
             graph::ExecutorOptions options{.threads = threads, .measure_top = measure_top};
             if (!isa.empty()) {
               options.isa = parse_cpu_isa(isa);
               if (!options.isa) {
                 raise({ErrorCode::kInvalidArgument,
                        concat("instructions are generic, avx2 or avx512, not '", isa, "'")});
               }
             }
             return checked(without_lock([&] { return graph::Executor::create(options); }));
           }),
           nb::arg("threads"), nb::arg("measure_top"), nb::arg("isa"));
  nb::class_<Network>(module, "Network")
      .def_static(
          "read",
          [](const std::string& path) {
            return checked(without_lock([&] { return graph::read_network(path); }));
          },
          nb::arg("path"))
      .def_static(
          "read_onnx",
          [](const std::string& path, const std::string& name) {
            return checked(without_lock([&] { return read_onnx(path, {.name = name}); }));
          },
          nb::arg("path"), nb::arg("name") = "")
      .def_static(
          "parse",
          [](const nb::bytes& bytes) {
            return checked(
                graph::parse_network(std::as_bytes(std::span(bytes.c_str(), bytes.size()))));
          },
          nb::arg("bytes"))
      .def(
          "write",
          [](const Network& network, const std::string& path) {
            checked(without_lock([&] { return graph::write_network(network, path); }));
          },
          nb::arg("path"))
      .def("simplified", [](const Network& network) { return checked(graph::simplify(network)); })
      .def_prop_ro("name", [](const Network& network) { return network.name(); })
      .def_prop_ro("inputs",
                   [](const Network& network) { return named_shapes(network, network.inputs()); })
      .def_prop_ro("outputs",
                   [](const Network& network) { return named_shapes(network, network.outputs()); })
      .def_prop_ro("nodes", &nodes_of)
      .def_prop_ro("multiply_adds", &Network::multiply_adds)
      .def_prop_ro("weight_bytes", &Network::weight_bytes);
  module.def(
      "write_task",
      [](const std::string& path, const Network& network, float scale, float shift,
         const Pixels& tuning, const Labels& tuning_labels, const Pixels& test,
         const Labels& test_labels) {
        const auto images = [](const Pixels& pixels, const Labels& labels) {
          return graph::LabelledImages{{pixels.data(), pixels.data() + pixels.size()},
                                       {labels.data(), labels.data() + labels.size()}};
        };
        const graph::Task task{.network = network,
                               .scale = scale,
                               .shift = shift,
                               .tuning = images(tuning, tuning_labels),
                               .test = images(test, test_labels)};
        checked(without_lock([&] { return graph::write_task(task, path); }));
      },
      nb::arg("path"), nb::arg("network"), nb::arg("scale"), nb::arg("shift"),
      nb::arg("tuning").noconvert(), nb::arg("tuning_labels").noconvert(),
      nb::arg("test").noconvert(), nb::arg("test_labels").noconvert());
  nb::class_<NetworkPlan>(module, "NetworkPlan")
      .def(nb::new_([](const Network& network, std::shared_ptr<graph::Executor> executor,
                       std::int64_t images, std::int64_t pass_images, const GivenVariants& variants,
                       const GivenRanges& ranges) {
             graph::PlanOptions options{.images = images, .pass_images = pass_images};
             options.variants = take_variants(variants);
             for (const auto& [name, range] : ranges) {
               options.calibration[name] = {range.first, range.second};
             }
             return checked(without_lock(
                 [&] { return NetworkPlan::create(network, std::move(executor), options); }));
           }),
           nb::arg("network"), nb::arg("executor"), nb::arg("images"), nb::arg("pass_images"),
           nb::arg("variants"), nb::arg("ranges"))
      .def("run", &run_plan, nb::arg("inputs").noconvert(), nb::arg("outputs").noconvert())
      .def("observe", &observe, nb::arg("inputs").noconvert(), nb::arg("outputs").noconvert(),
           nb::arg("ranges"))
      .def("profile", &profile, nb::arg("inputs").noconvert(), nb::arg("outputs").noconvert())
      .def_prop_ro("images", &NetworkPlan::images)
      .def_prop_ro("memory_bytes", &NetworkPlan::memory_bytes);
  nb::class_<NetworkSwitch>(module, "NetworkSwitch")
      .def(nb::new_(&make_switch), nb::arg("plans"), nb::arg("target_ns"), nb::arg("window_ns"))
      .def("run", &run_switch, nb::arg("inputs").noconvert(), nb::arg("outputs").noconvert(),
           nb::arg("spent_ns"))
      .def(
          "set_target", [](NetworkSwitch& network, double ns) { checked(network.set_target(ns)); },
          nb::arg("ns"))
      .def_prop_ro("target_ns", &NetworkSwitch::target_ns)
      .def_prop_ro("slowdown", &NetworkSwitch::slowdown)
      .def_prop_ro("last", &NetworkSwitch::last)
      .def_prop_ro("expected_ns", &NetworkSwitch::expected_ns)
      .def_prop_ro("counts", &NetworkSwitch::counts)
      .def_prop_ro("front", &NetworkSwitch::front);
}

}  // namespace foretune::python
