// Pieces of C text for c_emitter.cc: names, numbers, index expressions and the text around them.
// Thread safety: plain values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/loop/computation.h"

namespace foretune::loop::c_text {

// The helpers of the text below. A file has them once, however often they are included.
inline constexpr std::string_view kHelpers =
    "#include <math.h>\n"
    "#include <stdlib.h>\n"
    "\n"
    "#ifndef FORETUNE_LOOP_HELPERS\n"
    "#define FORETUNE_LOOP_HELPERS\n"
    "static inline long foretune_shorter(long a, long b) { return a < b ? a : b; }\n"
    "static inline float foretune_max(float a, float b) { return a > b ? a : b; }\n"
    "static inline float foretune_min(float a, float b) { return a < b ? a : b; }\n"
    "#endif\n";

// True when C or the text of a function uses the name for something else.
bool is_taken(std::string_view name);
// True when a function may have the name.
bool is_identifier(std::string_view name);

std::string literal(float value);

// Return an expression of two operands, and target = op(target, operand) as a statement.
std::string binary(Op op, std::string_view left, std::string_view right);
std::string update(Op op, std::string_view target, std::string_view operand);

// "16 * (m0 + m1) + k0 - 1"
class Sum {
 public:
  explicit Sum(std::int64_t constant = 0) : constant_(constant) {}
  Sum& add(std::int64_t coefficient, std::string_view term);
  [[nodiscard]] std::string text();  // once

 private:
  void sign(bool negative);

  std::int64_t constant_;
  std::string text_;
};

using Values = std::vector<std::string>;  // the value of each variable, in C

// "a[16 * m0 + k0]"
std::string element(const Tensor& tensor, const std::string& name, const Values& values);
// Returns the condition that keeps a read out of the padding; empty where there is none.
std::string guard(const std::vector<Var>& vars, const Tensor& tensor, const Values& values);

// Returns a comment with the computation of a function and the layout of its tensors in memory.
std::string describe(const Computation& computation);

}  // namespace foretune::loop::c_text
