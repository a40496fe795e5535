// The code that expressions are compiled to, and the arithmetic they share with constant folding.
// Internal to the module. Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "foretune/base/check.h"
#include "foretune/hardware/hardware.h"

namespace foretune::expression_code {

// Where an operand comes from. kStack is the top of the stack.
enum Source : std::uint8_t { kStack, kConstant, kWord, kField, kFact };

// The operations of a machine with one accumulator and a stack for intermediate values.
enum Operation : std::uint8_t {
  kLoad,    // accumulator = operand
  kPush,    // puts the accumulator on the stack, then loads
  kNegate,  // works on the accumulator, as do the next three
  kNot,
  kTruth,  // 0 stays 0, all else becomes 1
  kLog2,   // of real numbers only
  kJump,   // to `index`
  kJumpIfZero,
  kJumpAnd,  // jumps when the accumulator is 0
  kJumpOr,   // jumps with 1 when it is not
  // accumulator = accumulator operation operand; an operand from the stack is the left side.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kMin,
  kMax,
  kCeilDiv,
  kRoundUp,
  // Never in code: these become jumps.
  kAnd,
  kOr,
  kSelect,
};

inline constexpr unsigned kSources = 5;
constexpr std::uint16_t dispatch(unsigned operation, unsigned source) {
  return static_cast<std::uint16_t>(operation * kSources + source);
}

// The parser refuses expressions that would need more. One level of nesting pushes at most three
// values for operators and one for a call, so an expression meets the limit on nesting first.
inline constexpr std::size_t kStackSize = 512;

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

inline std::int64_t saturated(bool negative) { return negative ? kSmallest : kLargest; }

inline std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? saturated(a < 0) : out;
}

inline std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_sub_overflow(a, b, &out) ? saturated(a < 0) : out;
}

inline std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? saturated((a < 0) != (b < 0)) : out;
}

// Rounds towards minus infinity; division by zero gives zero; the one overflow saturates.
inline std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b > 0) [[likely]] {
    return a / b;
  }
  if (b == 0) {
    return 0;
  }
  if (b == -1) {
    return subtract(0, a);
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

inline std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b > 0) [[likely]] {
    return a % b;
  }
  if (b == 0 || b == -1) {
    return 0;
  }
  const std::int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

inline std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return add(divide(a, b), remainder(a, b) != 0 ? 1 : 0);
}

// The same of real numbers.
inline double add(double a, double b) { return a + b; }
inline double subtract(double a, double b) { return a - b; }
inline double multiply(double a, double b) { return a * b; }
inline double divide(double a, double b) { return b == 0 ? 0 : a / b; }
inline double remainder(double a, double b) { return b == 0 ? 0 : a - std::floor(a / b) * b; }
inline double ceil_divide(double a, double b) { return std::ceil(divide(a, b)); }
inline double log2_of(double a) { return a > 0 ? std::log2(a) : 0; }

// Inlined into the interpreter's loop, where `operation` selects a branch of one switch.
template <class Number>
[[gnu::always_inline]] inline Number apply_binary(Operation operation, Number a, Number b) {
  switch (operation) {
    case kAdd:
      return add(a, b);
    case kSubtract:
      return subtract(a, b);
    case kMultiply:
      return multiply(a, b);
    case kDivide:
      return divide(a, b);
    case kRemainder:
      return remainder(a, b);
    case kEqual:
      return static_cast<Number>(a == b ? 1 : 0);
    case kNotEqual:
      return static_cast<Number>(a != b ? 1 : 0);
    case kLess:
      return static_cast<Number>(a < b ? 1 : 0);
    case kLessEqual:
      return static_cast<Number>(a <= b ? 1 : 0);
    case kGreater:
      return static_cast<Number>(a > b ? 1 : 0);
    case kGreaterEqual:
      return static_cast<Number>(a >= b ? 1 : 0);
    case kMin:
      return std::min(a, b);
    case kMax:
      return std::max(a, b);
    case kCeilDiv:
      return ceil_divide(a, b);
    case kRoundUp:
      return multiply(ceil_divide(a, b), b);
    default:
      FORETUNE_CHECK(false);
      return Number{0};
  }
}

// Returns a fact as a number of the arithmetic: whole numbers round it down, and a value that no
// integer can hold saturates. A NaN counts as unknown, 0.
template <class Number>
Number fact_number(const Hardware& hardware, std::uint32_t index);
template <>
inline double fact_number(const Hardware& hardware, std::uint32_t index) {
  const double value = hardware.get(static_cast<HardwareValue>(index));
  return value != value ? 0 : value;
}
template <>
inline std::int64_t fact_number(const Hardware& hardware, std::uint32_t index) {
  const double value = fact_number<double>(hardware, index);
  constexpr double kLimit = 0x1p63;
  if (value >= -kLimit && value < kLimit) [[likely]] {
    const auto whole = static_cast<std::int64_t>(value);
    return whole - (static_cast<double>(whole) > value ? 1 : 0);
  }
  return saturated(value < 0);
}

}  // namespace foretune::expression_code
