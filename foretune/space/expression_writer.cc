#include "foretune/space/internal/expression_writer.h"

#include <utility>

namespace foretune {

using enum expression_code::Operation;
using enum expression_code::Source;

bool ExpressionWriter::load(expression_code::Source source, std::uint32_t index,
                            std::int64_t constant) {
  if (occupied_ && ++depth_ > expression_code::kStackSize) {
    return false;
  }
  const expression_code::Operation operation = occupied_ ? kPush : kLoad;
  code_.push_back({.operation = operation, .source = source, .index = index, .constant = constant});
  occupied_ = true;
  return true;
}

// Returns the constant of a piece that is nothing else.
std::optional<std::int64_t> ExpressionWriter::constant(std::size_t begin, std::size_t end) const {
  const Instruction& first = code_[begin];
  const bool only = end == begin + 1 && first.source == kConstant &&
                    (first.operation == kLoad || first.operation == kPush);
  return only ? std::optional(first.constant) : std::nullopt;
}

void ExpressionWriter::unary(Operation operation, std::size_t begin) {
  if (const auto value = constant(begin, code_.size());
      value && (operation == kNegate || operation == kNot)) {
    code_[begin].constant =
        operation == kNegate ? expression_code::subtract(0, *value) : (*value == 0 ? 1 : 0);
    return;
  }
  code_.push_back({.operation = operation});
}

void ExpressionWriter::binary(Operation operation, std::size_t left, std::size_t right) {
  --depth_;
  if (right + 1 != code_.size() || code_.back().operation != kPush) {
    code_.push_back({.operation = operation});
    return;
  }
  const auto left_value = constant(left, right);
  const auto right_value = constant(right, code_.size());
  if (left_value && right_value && !is_real_) {
    code_.pop_back();
    code_[left].constant = expression_code::apply_binary(operation, *left_value, *right_value);
    return;
  }
  code_.back().operation = operation;
}

std::size_t ExpressionWriter::jump(Operation operation) {
  code_.push_back({.operation = operation});
  free_accumulator();
  return code_.size() - 1;
}

void ExpressionWriter::land(std::size_t jump) {
  code_[jump].index = static_cast<std::uint32_t>(code_.size());
  code_[jump].constant = static_cast<std::int64_t>(code_.size());
  occupied_ = true;
}

// Redirects a jump to a jump whose outcome is known to the target of that jump.
void ExpressionWriter::shorten_jumps() {
  for (std::size_t i = code_.size(); i-- > 0;) {
    const std::uint8_t operation = code_[i].operation;
    if (operation != kJumpAnd && operation != kJumpOr) {
      continue;
    }
    // Later jumps are short already. The accumulator is 0 after kJumpAnd and 1 after kJumpOr.
    const std::size_t target = code_[i].index;
    if (target == code_.size()) {
      continue;
    }
    const std::uint8_t next = code_[target].operation;
    const bool next_on_zero = next == kJumpAnd || next == kJumpIfZero;
    if (operation == kJumpAnd ? next_on_zero : next == kJumpOr) {
      code_[i].index = code_[target].index;
    } else if (next_on_zero || next == kJumpOr || next == kTruth) {
      code_[i].index = static_cast<std::uint32_t>(target + 1);
    }
  }
}

std::vector<Expression::Instruction> ExpressionWriter::finish() {
  shorten_jumps();
  for (Instruction& instruction : code_) {
    instruction.dispatch = expression_code::dispatch(instruction.operation, instruction.source);
  }
  return std::move(code_);
}

}  // namespace foretune
