// Writes the seeds of the network fuzz target: networks that have all operations among them, and a
// task.
//   build/dev/fuzz/network_seeds fuzz/corpus/network
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "foretune/graph/network_file.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/task.h"

namespace foretune::graph {
namespace {

// Numbers from -1 to 1 in steps of a quarter.
std::vector<float> weights(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i * 5 % 9) / 4 - 1;
  }
  return values;
}

TensorId weights(NetworkBuilder& builder, const char* name, Shape shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  return builder.constant(name, std::move(shape), weights(count));
}

// A convolution and a linear operation, with paddings and scales that simplify() takes into them.
Result<Network> images() {
  NetworkBuilder b("images");
  TensorId x = b.input("image", {1, 2, 5, 5});
  x = b.add("pad", "pad", {x}, {.integers = {0, 0, 1, 1, 0, 0, 0, 1}, .numbers = {0}});
  x = b.add("conv", "conv", {x, weights(b, "w", {4, 1, 2, 2}), weights(b, "b", {4})},
            {.integers = {1, 1, 0, 0, 1, 1, 1, 1, 2}});
  x = b.add("affine", "norm", {x, weights(b, "scale", {4}), weights(b, "shift", {4})});
  x = b.add("relu", "relu", {x});
  const TensorId normed =
      b.add("local_norm", "lrn", {x}, {.integers = {3}, .numbers = {0.1, 0.75, 1}});
  x = b.add("add", "add", {x, normed});
  x = b.add("max_pool", "max", {x}, {.integers = {2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 0}});
  x = b.add("average_pool", "mean", {x}, {.integers = {2, 2, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1}});
  x = b.add("concat", "both", {x, x}, {.integers = {1}});
  x = b.add("slice", "half", {x}, {.integers = {1, 0, 8, 2}});
  x = b.add("reduce_mean", "pool", {x}, {.integers = {1, 2, 3}});
  x = b.add("reshape", "flat", {x}, {.integers = {1, 4, 1}});
  x = b.add("reshape", "flatter", {x}, {.integers = {1, 4}});
  x = b.add("linear", "linear", {x, weights(b, "v", {3, 4})});
  x = b.add("affine", "last", {x, weights(b, "s", {3}), weights(b, "t", {3})});
  return b.finish({x});
}

Result<Network> rows() {
  NetworkBuilder b("rows");
  const TensorId x = b.input("tokens", {1, 3, 4});
  TensorId y =
      b.add("layer_norm", "norm", {x, weights(b, "s", {4})}, {.integers = {2}, .numbers = {1e-5}});
  const TensorId turned = b.add("transpose", "turn", {y}, {.integers = {0, 2, 1}});
  y = b.add("matmul", "scores", {y, turned});
  y = b.add("softmax", "softmax", {y}, {.integers = {2}});
  y = b.add("matmul", "mixed", {y, x});
  for (const OpInfo* const op : all_ops()) {
    if (op->unary != nullptr) {
      y = b.add(op->name, "", {y}, {.numbers = std::vector<double>(op->numbers, 0.5)});
    } else if (op->binary != nullptr) {
      y = b.add(op->name, "", {y, x});
    }
  }
  const TensorId sum = b.add("reduce_sum", "sum", {y}, {.integers = {0, 1}});
  const TensorId most = b.add("reduce_max", "most", {y}, {.integers = {0, 2}});
  return b.finish({sum, most});
}

Result<Network> many_inputs() {
  NetworkBuilder b("");
  const TensorId x = b.input("x", {1, 2});
  b.input("unread", {1, 1, 1, 1, 1, 1});
  const TensorId y = b.input("y", {1, 2});
  return b.finish({b.add("sub", "", {x, y})});
}

Status write_seeds(const std::filesystem::path& folder) {
  FORETUNE_TRY(Network network, images());
  FORETUNE_TRY_STATUS(write_network(network, folder / "images.ftn"));
  FORETUNE_TRY(const Network tokens, rows());
  FORETUNE_TRY_STATUS(write_network(tokens, folder / "rows.ftn"));
  FORETUNE_TRY(const Network inputs, many_inputs());
  FORETUNE_TRY_STATUS(write_network(inputs, folder / "many_inputs.ftn"));
  Task task{.network = std::move(network), .scale = 0.5F, .shift = -1};
  task.tuning = {.pixels = std::vector<std::uint8_t>(2 * 50, 7), .labels = {0, 2}};
  task.test = {.pixels = std::vector<std::uint8_t>(50, 9), .labels = {1}};
  return write_task(task, folder / "task.ftt");
}

}  // namespace
}  // namespace foretune::graph

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: network_seeds FOLDER\n", stderr);
    return 2;
  }
  if (const foretune::Status status = foretune::graph::write_seeds(argv[1]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
