// Fills values into an expression. The code is turned back into a tree, which its jumps make
// possible: each says where the operand ends that it skips. Operands that a known condition skips
// never get into the tree.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/space/expression.h"
#include "foretune/space/internal/expression_code.h"
#include "foretune/space/internal/expression_writer.h"

namespace foretune {

using enum expression_code::Operation;
using enum expression_code::Source;
using expression_code::Operation;
using expression_code::Source;

namespace {

// Returns the operation that does the same when its operands change sides.
std::optional<Operation> mirrored(Operation operation) {
  switch (operation) {
    case kAdd:
    case kMultiply:
    case kEqual:
    case kNotEqual:
    case kMin:
    case kMax:
      return operation;
    case kLess:
      return kGreater;
    case kLessEqual:
      return kGreaterEqual;
    case kGreater:
      return kLess;
    case kGreaterEqual:
      return kLessEqual;
    default:
      return std::nullopt;
  }
}

}  // namespace

class ExpressionFolder {
 public:
  ExpressionFolder(const Expression& expression, const Expression::Known& known)
      : code_(expression.code_), known_(known) {}

  Expression fold() {
    const std::size_t root = tree_of(0, code_.size());
    Expression out;
    ExpressionWriter writer(false);
    write(root, writer);
    out.code_ = writer.finish();
    out.uses_problem_ =
        std::any_of(out.code_.begin(), out.code_.end(),
                    [](const Instruction& instruction) { return instruction.source == kField; });
    return out;
  }

 private:
  using Instruction = Expression::Instruction;

  // A value (kLoad), or an operation on up to three nodes.
  struct Node {
    Operation operation = kLoad;
    Source source = kConstant;
    std::uint32_t index = 0;
    std::int64_t constant = 0;
    std::size_t first = 0;  // the condition of kSelect
    std::size_t second = 0;
    std::size_t third = 0;
  };

  std::size_t add(Node node) {
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }
  std::size_t add_constant(std::int64_t value) { return add({.constant = value}); }
  [[nodiscard]] bool is_value(std::size_t node) const { return nodes_[node].operation == kLoad; }
  [[nodiscard]] std::optional<std::int64_t> constant(std::size_t node) const {
    return is_value(node) && nodes_[node].source == kConstant ? std::optional(nodes_[node].constant)
                                                              : std::nullopt;
  }
  // Returns true for a value that is 0 or 1.
  [[nodiscard]] bool is_truth(std::size_t node) const {
    const Operation operation = nodes_[node].operation;
    const std::optional<std::int64_t> value = constant(node);
    return (operation >= kEqual && operation <= kGreaterEqual) || operation == kNot ||
           operation == kTruth || operation == kAnd || operation == kOr || value == 0 || value == 1;
  }

  // ---- from code to a tree

  std::size_t value_of(const Instruction& instruction) {
    switch (instruction.source) {
      case kConstant:
        return add_constant(instruction.constant);
      case kWord:
        return add_constant(known_.words[instruction.index]);
      case kFact:
        return add_constant(
            expression_code::fact_number<std::int64_t>(known_.hardware, instruction.index));
      default:
        break;
    }
    const bool is_known =
        instruction.index < known_.fields.size() && known_.fields[instruction.index].has_value();
    return is_known ? add_constant(*known_.fields[instruction.index])
                    : add({.source = kField, .index = instruction.index});
  }

  std::size_t unary(Operation operation, std::size_t node) {
    FORETUNE_CHECK(operation != kLog2);
    if (const auto value = constant(node)) {
      return add_constant(operation == kNegate ? expression_code::subtract(0, *value)
                          : operation == kNot  ? static_cast<std::int64_t>(*value == 0)
                                               : static_cast<std::int64_t>(*value != 0));
    }
    return operation == kTruth && is_truth(node) ? node
                                                 : add({.operation = operation, .first = node});
  }

  std::size_t binary(Operation operation, std::size_t left, std::size_t right) {
    const auto left_value = constant(left);
    const auto right_value = constant(right);
    if (left_value && right_value) {
      return add_constant(expression_code::apply_binary(operation, *left_value, *right_value));
    }
    // A single value on the right side is part of its operation.
    const std::optional<Operation> other = mirrored(operation);
    if (other && is_value(left) && !is_value(right)) {
      return add({.operation = *other, .first = right, .second = left});
    }
    return add({.operation = operation, .first = left, .second = right});
  }

  // The right side is code[begin, end).
  std::size_t short_circuit(Operation operation, std::size_t left, std::size_t begin,
                            std::size_t end) {
    const bool decides = operation == kOr;  // this truth of either side decides
    if (const auto value = constant(left)) {
      return (*value != 0) == decides ? add_constant(decides ? 1 : 0) : tree_of(begin, end);
    }
    const std::size_t right = tree_of(begin, end);
    if (const auto value = constant(right)) {
      return (*value != 0) == decides ? add_constant(decides ? 1 : 0) : unary(kTruth, left);
    }
    return add({.operation = operation, .first = left, .second = right});
  }

  // The two choices are code[begin, otherwise - 1), which a jump ends, and code[otherwise, end).
  std::size_t select(std::size_t condition, std::size_t begin, std::size_t otherwise,
                     std::size_t end) {
    if (const auto value = constant(condition)) {
      return *value != 0 ? tree_of(begin, otherwise - 1) : tree_of(otherwise, end);
    }
    const std::size_t chosen = tree_of(begin, otherwise - 1);
    return add({.operation = kSelect,
                .first = condition,
                .second = chosen,
                .third = tree_of(otherwise, end)});
  }

  // Returns the tree of a piece of code. It nests as deep as the text of the expression.
  std::size_t tree_of(std::size_t begin, std::size_t end) {
    std::size_t accumulator = 0;
    for (std::size_t at = begin; at < end;) {
      const Instruction& instruction = code_[at];
      const auto operation = static_cast<Operation>(instruction.operation);
      const auto target = static_cast<std::size_t>(instruction.constant);
      std::size_t next = at + 1;
      if (operation == kLoad) {
        accumulator = value_of(instruction);
      } else if (operation == kPush) {
        stack_.push_back(accumulator);
        accumulator = value_of(instruction);
      } else if (operation == kJumpAnd || operation == kJumpOr) {
        accumulator =
            short_circuit(operation == kJumpAnd ? kAnd : kOr, accumulator, at + 1, target);
        next = target;
      } else if (operation == kJumpIfZero) {
        next = static_cast<std::size_t>(code_[target - 1].constant);
        accumulator = select(accumulator, at + 1, target, next);
      } else if (operation < kJump) {
        accumulator = unary(operation, accumulator);
      } else if (instruction.source == kStack) {
        const std::size_t left = stack_.back();
        stack_.pop_back();
        accumulator = binary(operation, left, accumulator);
      } else {
        accumulator = binary(operation, accumulator, value_of(instruction));
      }
      at = next;
    }
    return accumulator;
  }

  // ---- from the tree to code

  void write_short_circuit(const Node& node, ExpressionWriter& writer) const {
    write(node.first, writer);
    const std::size_t jump = writer.jump(node.operation == kAnd ? kJumpAnd : kJumpOr);
    const std::size_t begin = writer.size();
    write(node.second, writer);
    if (!is_truth(node.second)) {
      writer.unary(kTruth, begin);
    }
    writer.land(jump);
  }

  void write_select(const Node& node, ExpressionWriter& writer) const {
    write(node.first, writer);
    const std::size_t to_else = writer.jump(kJumpIfZero);
    write(node.second, writer);
    const std::size_t to_end = writer.jump(kJump);
    writer.land(to_else);
    writer.free_accumulator();
    write(node.third, writer);
    writer.land(to_end);
  }

  void write(std::size_t index, ExpressionWriter& writer) const {
    const Node& node = nodes_[index];
    const std::size_t begin = writer.size();
    switch (node.operation) {
      case kLoad:
        // No tree needs more places than the one that the expression was compiled from.
        FORETUNE_CHECK(writer.load(node.source, node.index, node.constant));
        return;
      case kNegate:
      case kNot:
      case kTruth:
        write(node.first, writer);
        writer.unary(node.operation, begin);
        return;
      case kAnd:
      case kOr:
        write_short_circuit(node, writer);
        return;
      case kSelect:
        write_select(node, writer);
        return;
      default:
        break;
    }
    write(node.first, writer);
    const std::size_t right = writer.size();
    write(node.second, writer);
    writer.binary(node.operation, begin, right);
  }

  const std::vector<Instruction>& code_;
  const Expression::Known& known_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> stack_;
};

Expression Expression::fold(const Known& known) const {
  return ExpressionFolder(*this, known).fold();
}

std::optional<std::int64_t> Expression::constant() const {
  return code_.size() == 1 && code_.front().source == kConstant
             ? std::optional(code_.front().constant)
             : std::nullopt;
}

}  // namespace foretune
