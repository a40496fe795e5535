// What expressions are compiled to, and the arithmetic they share with constant folding. Internal
// to the module; not for other modules. Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "foretune/base/check.h"
#include "foretune/hardware/hardware.h"

namespace foretune::expression_code {

// Where an operand comes from. kStack is the value put aside last.
enum Source : std::uint8_t { kStack, kConstant, kWord, kField, kFact };

// A machine with one accumulator and a stack for what has to wait.
enum Operation : std::uint8_t {
  kLoad,    // accumulator = operand
  kPush,    // puts the accumulator on the stack, then loads
  kNegate,  // of the accumulator, as the next two
  kNot,
  kTruth,  // 0 stays 0, all else becomes 1
  kJump,   // to `index`
  kJumpIfZero,
  kJumpAnd,  // jumps when the accumulator is 0
  kJumpOr,   // jumps with 1 when it is not
  // accumulator = accumulator operation operand; from the stack comes the left side.
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

// The parser refuses what would need more. One level of nesting puts at most three values aside for
// operators and one for a call, so the limit on nesting comes first.
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

// Towards minus infinity; by zero is zero; the one overflow saturates.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
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

inline std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b > 0) [[likely]] {
    return a % b;
  }
  if (b == 0 || b == -1) {
    return 0;
  }
  const std::int64_t remainder = a % b;
  return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

inline std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return add(floor_divide(a, b), floor_remainder(a, b) != 0 ? 1 : 0);
}

// Inlined into the interpreter's loop, where `operation` selects a branch of one switch.
[[gnu::always_inline]] inline std::int64_t apply_binary(Operation operation, std::int64_t a,
                                                        std::int64_t b) {
  switch (operation) {
    case kAdd:
      return add(a, b);
    case kSubtract:
      return subtract(a, b);
    case kMultiply:
      return multiply(a, b);
    case kDivide:
      return floor_divide(a, b);
    case kRemainder:
      return floor_remainder(a, b);
    case kEqual:
      return a == b ? 1 : 0;
    case kNotEqual:
      return a != b ? 1 : 0;
    case kLess:
      return a < b ? 1 : 0;
    case kLessEqual:
      return a <= b ? 1 : 0;
    case kGreater:
      return a > b ? 1 : 0;
    case kGreaterEqual:
      return a >= b ? 1 : 0;
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
      return 0;
  }
}

// Rounded down; what no integer can hold saturates, and what is no number is unknown.
inline std::int64_t fact_number(const Hardware& hardware, std::uint32_t index) {
  const double value = hardware.get(static_cast<HardwareValue>(index));
  constexpr double kLimit = 0x1p63;
  if (value >= -kLimit && value < kLimit) [[likely]] {
    const auto whole = static_cast<std::int64_t>(value);
    return whole - (static_cast<double>(whole) > value ? 1 : 0);
  }
  return value != value ? 0 : saturated(value < 0);
}

}  // namespace foretune::expression_code
