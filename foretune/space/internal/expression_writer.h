// Writes the code of expressions, for the parser and for folding. Operands that are a single value
// become part of the operation that uses them, constants are folded, and && || select() become
// jumps. Internal to the module. Thread safety: values of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretune/space/expression.h"
#include "foretune/space/internal/expression_code.h"

namespace foretune {

class ExpressionWriter {
 public:
  using Instruction = Expression::Instruction;
  using Operation = expression_code::Operation;

  explicit ExpressionWriter(bool is_real) : is_real_(is_real) {}

  // Returns where the next piece of code begins.
  [[nodiscard]] std::size_t size() const { return code_.size(); }

  // Loads a value. Returns false when more values wait than the stack holds.
  [[nodiscard]] bool load(expression_code::Source source, std::uint32_t index,
                          std::int64_t constant);
  // Appends an operation on the piece of code that begins there and ends here.
  void unary(Operation operation, std::size_t begin);
  // The same for two pieces, of which the second follows the first.
  void binary(Operation operation, std::size_t left, std::size_t right);
  // Appends a jump to a place that land() sets. Behind a jump on a condition the accumulator is
  // free.
  std::size_t jump(Operation operation);
  // Makes the jump go to the next instruction, where the accumulator holds a value.
  void land(std::size_t jump);
  // The accumulator is free at the next instruction, which only a jump reaches.
  void free_accumulator() { occupied_ = false; }

  // Returns the code. Jumps take the shortest way; their constants have the places that land() set.
  std::vector<Instruction> finish();

 private:
  [[nodiscard]] std::optional<std::int64_t> constant(std::size_t begin, std::size_t end) const;
  void shorten_jumps();

  bool is_real_;
  std::vector<Instruction> code_;
  std::size_t depth_ = 0;
  bool occupied_ = false;  // the accumulator holds a value that the next one must not overwrite
};

}  // namespace foretune
