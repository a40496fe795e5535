// The row of networks in the table of problem types.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/task.h"
#include "foretune/problem/network/network_problem.h"

namespace foretune {

const ProblemTypeInfo& network_problem_type();

namespace {

constexpr std::size_t position(NetworkField field) { return static_cast<std::size_t>(field); }

constexpr std::int64_t kMaxImages = std::int64_t{1} << 24U;
constexpr std::int64_t kMaxLayers = std::int64_t{1} << 16U;
constexpr std::int64_t kMaxWork = std::int64_t{1} << 52U;
constexpr double kThousand = 1e3;

ProblemField network_size(std::string_view name, std::optional<std::int64_t> default_value,
                          std::int64_t minimum, std::int64_t maximum, std::string_view help) {
  ProblemField field = size_field(name, default_value);
  field.groups = {};
  field.minimum = minimum;
  field.maximum = maximum;
  field.help = help;
  return field;
}

std::span<const ProblemField> network_fields() {
  static const std::array fields = [] {
    std::array list{
        network_size("images", 1, 1, kMaxImages, "images of a call"),
        network_size("layers", {}, 1, kMaxLayers, "convolutions and products with weights"),
        network_size("kmacs", 1, 1, kMaxWork, "thousands of multiply-adds of an image"),
        network_size("origin", 0, 0, kMaxWork, "number of the network, which keeps it together")};
    ProblemField& origin = list[position(NetworkField::kOrigin)];
    origin.groups = {.problem = true, .sizes = true, .weights = true};
    origin.is_origin = true;
    return list;
  }();
  return fields;
}

std::int64_t count_layers(const graph::Network& network) {
  return std::count_if(network.nodes().begin(), network.nodes().end(),
                       [](const graph::Node& node) { return graph::has_weights(*node.op); });
}

std::optional<ProblemWork> network_work(const Problem& problem) {
  const auto images = static_cast<double>(problem.field(position(NetworkField::kImages)));
  const auto thousands = static_cast<double>(problem.field(position(NetworkField::kMultiplyAdds)));
  return ProblemWork{.flops = 2 * images * thousands * kThousand, .bytes = 0};
}

Status check_payload(const Problem& problem, std::span<const std::byte> bytes) {
  FORETUNE_TRY(const graph::Task task, graph::parse_task(bytes));
  const std::int64_t layers = count_layers(task.network);
  if (layers != problem.field(position(NetworkField::kLayers))) {
    return fail(ErrorCode::kMismatch, "the network has ", layers, " layers, not ",
                problem.field(position(NetworkField::kLayers)));
  }
  return {};
}

Status describe_payload(std::span<const std::byte> bytes, std::span<double> out) {
  FORETUNE_TRY(const graph::Task task, graph::parse_task(bytes));
  const auto put = [&](NetworkValue value, double number) {
    out[static_cast<std::size_t>(value)] = number;
  };
  put(NetworkValue::kOperations, static_cast<double>(task.network.nodes().size()));
  put(NetworkValue::kWeightBytes, static_cast<double>(task.network.weight_bytes()));
  put(NetworkValue::kInputElements, static_cast<double>(task.image_elements()));
  put(NetworkValue::kClasses, static_cast<double>(task.classes()));
  put(NetworkValue::kTuningImages, static_cast<double>(task.tuning.count()));
  put(NetworkValue::kTestImages, static_cast<double>(task.test.count()));
  return {};
}

// The origin is that of the file's name, without its end.
Result<std::string> fields_from_payload(std::string_view name, std::span<const std::byte> bytes) {
  FORETUNE_TRY(const graph::Task task, graph::parse_task(bytes));
  const std::string_view stem = name.substr(0, name.find('.'));
  const auto thousands = static_cast<std::int64_t>(task.network.multiply_adds() / kThousand);
  return concat("layers=", count_layers(task.network),
                " kmacs=", std::max<std::int64_t>(1, thousands),
                " origin=", static_cast<std::int64_t>(hash64(stem) >> 12U));
}

constexpr std::array<std::string_view, 6> kValues{"operations", "weight_bytes",  "input_elements",
                                                  "classes",    "tuning_images", "test_images"};

constexpr std::array<std::int64_t, 3> kImageLimits{1, 8, 64};

constexpr std::array<ProblemSlice, 1> kSlices{
    {{"images", [](const Problem& problem) {
        return slice_by_size(problem.field(position(NetworkField::kImages)), kImageLimits);
      }}}};

}  // namespace

const PayloadInfo& network_payload_info() {
  static const PayloadInfo info{.name = "network-task",
                                .version = 1,
                                .values = kValues,
                                .check = &check_payload,
                                .describe = &describe_payload,
                                .fields = &fields_from_payload};
  return info;
}

const ProblemTypeInfo& network_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kNetworkProblem,
                 .name = "network",
                 .version = 1,
                 .fields = network_fields(),
                 .payload = PayloadUse::kOptional},
      .summary = "a neural network on some images, and how many it classifies rightly",
      .work = &network_work,
      .slices = kSlices,
      .map_fields = {position(NetworkField::kImages), position(NetworkField::kLayers)},
      .payload = &network_payload_info()};
  return info;
}

}  // namespace foretune
