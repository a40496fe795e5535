#include "foretune/loop/gym/loop_tool_benchmark.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/computation_text.h"

namespace foretune::loop::gym {
namespace {

// Numbers of loop_tool's operations.
enum Operation : std::uint8_t { kWrite = 1, kRead = 2, kView = 3, kAdd = 5, kMultiply = 7 };
constexpr std::size_t kNodeParts = 11;
constexpr std::size_t kMostNodes = 64;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 28;

using Vars = std::vector<std::size_t>;

struct LoopEntry {
  std::size_t var = 0;
  std::int64_t size = 1;
  std::int64_t tail = 0;
};

struct Node {
  std::size_t operation = 0;
  std::vector<std::size_t> inputs;
  Vars vars;
  std::vector<LoopEntry> loops;  // outermost first
};

bool has(const Vars& vars, std::size_t var) {
  return std::find(vars.begin(), vars.end(), var) != vars.end();
}

Result<std::int64_t> number_of(std::string_view text) {
  const auto number = parse_int(text);
  if (!number || *number < 0 || *number > kMostExtent) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(text, 20), " is no number of a node");
  }
  return *number;
}

// "0,1,2,": every number is below `limit`.
Result<std::vector<std::size_t>> positions_of(std::string_view text, std::size_t limit) {
  std::vector<std::size_t> out;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) {
      continue;
    }
    FORETUNE_TRY(const std::int64_t number, number_of(part));
    if (static_cast<std::size_t>(number) >= limit) {
      return fail(ErrorCode::kInvalidArgument, "there is no number ", number, " yet");
    }
    out.push_back(static_cast<std::size_t>(number));
  }
  return out;
}

Result<std::vector<LoopEntry>> loops_of(std::string_view text, std::size_t vars) {
  std::vector<LoopEntry> out;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) {
      continue;
    }
    const std::vector<std::string_view> words = split(part, ';');
    if (words.size() != 3) {
      return fail(ErrorCode::kInvalidArgument, foretune::quoted(part, 20),
                  " is no loop: var;size;tail");
    }
    FORETUNE_TRY(const std::int64_t var, number_of(words[0]));
    FORETUNE_TRY(const std::int64_t size, number_of(words[1]));
    FORETUNE_TRY(const std::int64_t tail, number_of(words[2]));
    if (static_cast<std::size_t>(var) >= vars || size < 1) {
      return fail(ErrorCode::kInvalidArgument, foretune::quoted(part, 20),
                  " is no loop of a variable");
    }
    out.push_back({.var = static_cast<std::size_t>(var), .size = size, .tail = tail});
  }
  return out;
}

// The graph of a file, as far as its nest depends on it.
class Graph {
 public:
  Status read(std::string_view text) {
    for (const std::string_view raw : split(text, '\n')) {
      const std::string_view line = trim(raw);
      if (line.starts_with("v:")) {
        ++vars_;
      } else if (line.starts_with("n:")) {
        FORETUNE_TRY_STATUS(read_node(line));
      } else if (!line.empty() && !line.starts_with("i:") && !line.starts_with("o:")) {
        return fail(ErrorCode::kInvalidArgument, foretune::quoted(line, 20),
                    " is no line of loop_tool's");
      }
    }
    return {};
  }

  // Returns the only node of an operation.
  [[nodiscard]] Result<const Node*> only(Operation operation, std::string_view name) const {
    const Node* found = nullptr;
    for (const Node& node : nodes_) {
      if (node.operation == operation) {
        if (found != nullptr) {
          return fail(ErrorCode::kInvalidArgument, "there are several nodes that ", name);
        }
        found = &node;
      }
    }
    if (found == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "there is no node that ", name, "s");
    }
    return found;
  }
  [[nodiscard]] const Node& node(std::size_t index) const { return nodes_[index]; }

 private:
  Status read_node(std::string_view line) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < kNodeParts || nodes_.size() >= kMostNodes) {
      return fail(ErrorCode::kInvalidArgument, foretune::quoted(line, 20), " is no node");
    }
    Node node;
    FORETUNE_TRY(const std::int64_t operation, number_of(parts[1]));
    node.operation = static_cast<std::size_t>(operation);
    FORETUNE_TRY(node.inputs, positions_of(parts[2], nodes_.size()));
    FORETUNE_TRY(node.vars, positions_of(parts[3], vars_));
    FORETUNE_TRY(node.loops, loops_of(parts[7], vars_));
    nodes_.push_back(std::move(node));
    return {};
  }

  std::size_t vars_ = 0;
  std::vector<Node> nodes_;
};

// The product of two tensors and the sum over it.
struct Sum {
  const Node* product = nullptr;
  const Node* first = nullptr;  // of what is multiplied: a read, or a view of one
  const Node* second = nullptr;
  Vars out;
};

Result<Sum> sum_of(const Graph& graph) {
  Sum sum;
  FORETUNE_TRY(sum.product, graph.only(kMultiply, "multiply"));
  FORETUNE_TRY(const Node* const add, graph.only(kAdd, "add"));
  FORETUNE_TRY(const Node* const write, graph.only(kWrite, "write"));
  if (sum.product->inputs.size() != 2) {
    return fail(ErrorCode::kInvalidArgument, "the product is not of two tensors");
  }
  sum.first = &graph.node(sum.product->inputs[0]);
  sum.second = &graph.node(sum.product->inputs[1]);
  if (sum.first->operation == kRead && sum.second->operation == kView) {
    std::swap(sum.first, sum.second);
  }
  const bool is_known = (sum.first->operation == kRead ||
                         (sum.first->operation == kView && sum.first->inputs.size() == 1)) &&
                        sum.second->operation == kRead;
  if (!is_known) {
    return fail(ErrorCode::kInvalidArgument, "the product is not of tensors that are read");
  }
  sum.out = write->vars;
  Vars sorted = sum.out;
  Vars added = add->vars;
  std::sort(sorted.begin(), sorted.end());
  std::sort(added.begin(), added.end());
  if (sorted != added || add->inputs.size() != 1 || &graph.node(add->inputs[0]) != sum.product) {
    return fail(ErrorCode::kInvalidArgument, "the output is not the sum of the products");
  }
  return sum;
}

// Extents of each variable, and of the ranges that its loops move over.
class Extents {
 public:
  explicit Extents(const std::vector<LoopEntry>& loops) : loops_(loops), steps_(loops.size(), 1) {}

  Status compute() {
    for (std::size_t i = loops_.size(); i-- > 0;) {
      const LoopEntry& loop = loops_[i];
      if (loop.var >= extents_.size()) {
        extents_.resize(loop.var + 1, 0);
      }
      std::int64_t& extent = extents_[loop.var];
      steps_[i] = std::max<std::int64_t>(1, extent);
      if (loop.tail >= steps_[i] || loop.size > kMostExtent / steps_[i]) {
        return fail(ErrorCode::kInvalidArgument, "the loops of a variable do not fit each other");
      }
      extent = loop.size * steps_[i] + loop.tail;
    }
    return {};
  }
  // 0 for a variable without loops.
  [[nodiscard]] std::int64_t of(std::size_t var) const {
    return var < extents_.size() ? extents_[var] : 0;
  }
  [[nodiscard]] std::int64_t step(std::size_t loop) const { return steps_[loop]; }

 private:
  const std::vector<LoopEntry>& loops_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int64_t> extents_;
};

// A computation with the names of the graph's variables in it.
struct Named {
  std::string text;
  std::vector<std::pair<std::size_t, std::string_view>> names;
};

// Finds m, n and k by where they occur.
Result<Named> product_of(const Sum& sum, const Extents& extents) {
  const Vars* a = &sum.first->vars;
  const Vars* b = &sum.second->vars;
  std::optional<std::size_t> batch;
  Vars of_a;
  Vars of_b;
  Vars summed;
  for (const std::size_t var : sum.product->vars) {
    const bool in_a = has(*a, var);
    const bool in_b = has(*b, var);
    const bool in_out = has(sum.out, var);
    if (in_a && in_b && in_out && !batch) {
      batch = var;
    } else if (in_a && in_b && !in_out) {
      summed.push_back(var);
    } else if (in_a && in_out && !in_b) {
      of_a.push_back(var);
    } else if (in_b && in_out && !in_a) {
      of_b.push_back(var);
    } else {
      return fail(ErrorCode::kInvalidArgument, "the nest is no product of matrices");
    }
  }
  const std::size_t dimensions = batch ? 3 : 2;
  if (of_a.size() != 1 || of_b.size() != 1 || summed.size() != 1 || a->size() != dimensions ||
      b->size() != dimensions || sum.out.size() != dimensions ||
      (batch && (a->front() != *batch || b->front() != *batch || sum.out.front() != *batch))) {
    return fail(ErrorCode::kInvalidArgument, "the nest is no product of matrices");
  }
  std::size_t m = of_a.front();
  std::size_t n = of_b.front();
  const std::size_t k = summed.front();
  if (sum.out.back() == m) {  // the output by columns is the product of the transposed operands
    std::swap(m, n);
    std::swap(a, b);
  }
  Named out;
  out.text = concat("mm m=", extents.of(m), " n=", extents.of(n), " k=", extents.of(k));
  out.names = {{m, "m"}, {n, "n"}, {k, "k"}};
  if (batch) {
    out.text += concat(" batch=", extents.of(*batch));
    out.names.emplace_back(*batch, "b");
  }
  out.text += a->back() == m ? " ta" : "";
  out.text += b->back() == k ? " tb" : "";
  return out;
}

// By position: images are [batch][channels][h][w], weights [out][channels][kh][kw].
Result<Named> convolution_of(const Graph& graph, const Sum& sum, std::string_view text,
                             const Extents& extents) {
  const Node& image = graph.node(sum.first->inputs[0]);
  const Vars& weights = sum.second->vars;
  if (image.operation != kRead || image.vars.size() != 4 || weights.size() != 4 ||
      sum.out.size() != 4 || weights[1] != image.vars[1] || sum.out[0] != image.vars[0] ||
      sum.out[1] != weights[0]) {
    return fail(ErrorCode::kInvalidArgument, "the nest is no convolution of images by channels");
  }
  const std::size_t y = sum.out[2];
  const std::size_t x = sum.out[3];
  const std::int64_t height = extents.of(y) + extents.of(weights[2]) - 1;
  const std::int64_t width = extents.of(x) + extents.of(weights[3]) - 1;
  // Sizes of the image are only in the view's constraints: "0|s|h|;3|f|12,|;=0|v|24|;".
  for (const auto& [name, size] : {std::pair("h", height), std::pair("w", width)}) {
    const std::string symbol = concat("|s|", name, "|;3|f|");
    const std::size_t at = text.find(symbol);
    const std::size_t value = at == std::string_view::npos ? at : text.find("=0|v|", at);
    const std::string wanted = concat("=0|v|", size, "|");
    if (value == std::string_view::npos || !text.substr(value).starts_with(wanted)) {
      return fail(ErrorCode::kUnsupported,
                  "the convolution has a stride, a dilation or padding, which cannot be read");
    }
  }
  Named out;
  out.text = concat("conv b=", extents.of(image.vars[0]), " c=", extents.of(image.vars[1]),
                    " h=", height, " w=", width, " o=", extents.of(weights[0]),
                    " r=", extents.of(weights[2]), " s=", extents.of(weights[3]));
  out.names = {{image.vars[0], "b"}, {image.vars[1], "c"}, {weights[0], "o"}, {y, "y"}, {x, "x"},
               {weights[2], "r"},    {weights[3], "s"}};
  return out;
}

Result<Nest> nest_of(const Computation& computation, const Named& named, const Node& product,
                     const Extents& extents) {
  Nest nest;
  for (std::size_t i = 0; i < product.loops.size(); ++i) {
    const std::size_t var = product.loops[i].var;
    const auto name = std::find_if(named.names.begin(), named.names.end(),
                                   [&](const auto& each) { return each.first == var; });
    if (name == named.names.end()) {
      return fail(ErrorCode::kInvalidArgument, "a loop is over no variable of the product");
    }
    const auto found = std::find_if(computation.vars.begin(), computation.vars.end(),
                                    [&](const Var& each) { return each.name == name->second; });
    if (found == computation.vars.end()) {
      continue;  // a single round, which the computation leaves out
    }
    nest.loops.push_back({.var = static_cast<std::uint8_t>(found - computation.vars.begin()),
                          .step = extents.step(i)});
  }
  FORETUNE_TRY_STATUS(check(computation, nest));
  return nest;
}

}  // namespace

bool is_loop_tool(std::string_view text) { return trim(text).starts_with("v:"); }

Result<Benchmark> parse_loop_tool(std::string_view text, std::string_view name) {
  Graph graph;
  FORETUNE_TRY_STATUS(graph.read(text));
  FORETUNE_TRY(const Sum sum, sum_of(graph));
  Extents extents(sum.product->loops);
  FORETUNE_TRY_STATUS(extents.compute());
  for (const std::size_t var : sum.product->vars) {
    if (extents.of(var) == 0) {
      return fail(ErrorCode::kInvalidArgument, "a variable of the product has no loop");
    }
  }
  FORETUNE_TRY(const Named named, sum.first->operation == kView
                                      ? convolution_of(graph, sum, text, extents)
                                      : product_of(sum, extents));
  Benchmark out{.name = std::string(name), .computation = {}, .schedule = {}};
  FORETUNE_TRY(out.computation, parse_computation(named.text));
  FORETUNE_TRY(const Nest nest, nest_of(out.computation, named, *sum.product, extents));
  out.schedule = schedule_of(out.computation, nest);
  return out;
}

}  // namespace foretune::loop::gym
