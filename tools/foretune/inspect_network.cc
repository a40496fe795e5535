#include "tools/foretune/inspect_network.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/workflow/network_files.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

using graph::Network;
using graph::Node;

std::string in_column(std::string_view text, std::size_t width) {
  std::string result(text);
  result.resize(std::max(width, result.size()), ' ');
  return result;
}

void print_row(std::string_view name, std::string_view value) {
  constexpr std::size_t kColumn = 20;
  print(concat("  ", in_column(name, kColumn), value, "\n"));
}

std::string whole(double value) { return count_text(static_cast<std::uint64_t>(value)); }

double multiply_adds(const Network& network, const Node& node) {
  std::vector<graph::OperandShape> operands;
  for (const graph::TensorId id : node.inputs) {
    operands.push_back({network.tensor(id).shape, network.tensor(id).is_constant()});
  }
  return node.op->multiply_adds == nullptr
             ? 0.0
             : node.op->multiply_adds(operands, network.tensor(node.output).shape);
}

void print_operations(const Network& network) {
  // Name, kind, shape and multiply-adds.
  std::vector<std::array<std::string, 4>> rows{{"operation", "kind", "result", "multiply-adds"}};
  for (const Node& node : network.nodes()) {
    const double count = multiply_adds(network, node);
    rows.push_back({node.name, std::string(node.op->name),
                    graph::to_text(network.tensor(node.output).shape),
                    count > 0 ? whole(count) : std::string()});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths.at(i) = std::max(widths.at(i), row.at(i).size());
    }
  }
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      line += concat(" ", in_column(row.at(i), widths.at(i)), i + 1 < widths.size() ? " " : "");
    }
    line += concat("  ", row.back());
    line.erase(line.find_last_not_of(' ') + 1);
    print(line + "\n");
  }
}

}  // namespace

Status inspect_network(const std::string& file, const std::vector<std::string>& input_shapes,
                       const std::string& json, const Invocation& invocation) {
  FORETUNE_TRY(const workflow::NetworkFile opened, workflow::open_network(file, input_shapes));
  const graph::Task& task = opened.task;
  const Network& network = task.network;
  print(concat(file, ": ", opened.kind, "\n"));
  print_row("name", network.name());
  for (const auto& [name, ids] :
       {std::pair("input", network.inputs()), std::pair("output", network.outputs())}) {
    for (const graph::TensorId id : ids) {
      const graph::Tensor& tensor = network.tensor(id);
      print_row(name, concat(tensor.name, " ", graph::to_text(tensor.shape)));
    }
  }
  print_row("operations", count_text(network.nodes().size()));
  print_row("multiply-adds", concat(whole(network.multiply_adds()), " for one image"));
  print_row("weights", count_of(static_cast<std::uint64_t>(network.weight_bytes()), "byte"));
  const auto tuning = static_cast<std::uint64_t>(task.tuning.count());
  const auto test = static_cast<std::uint64_t>(task.test.count());
  if (tuning > 0) {
    print_row("images", concat(count_text(tuning), " for tuning, ", count_text(test),
                               " for testing, of ", task.classes(), " classes"));
  }
  print("\n");
  print_operations(network);
  if (json.empty()) {
    return {};
  }
  const Figures figures{.name = "inspect",
                        .metrics = {{"operations", static_cast<double>(network.nodes().size())},
                                    {"multiply_adds", network.multiply_adds()},
                                    {"weight_bytes", static_cast<double>(network.weight_bytes())},
                                    {"tuning_images", static_cast<double>(tuning)},
                                    {"test_images", static_cast<double>(test)}},
                        .command = invocation.command_line};
  return figures.write(json);
}

}  // namespace foretune::cli
