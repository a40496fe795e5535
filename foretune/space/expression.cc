#include "foretune/space/expression.h"

#include <array>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/space/internal/expression_code.h"

namespace foretune {

using enum expression_code::Operation;
using enum expression_code::Source;
using expression_code::fact_number;

namespace {

template <expression_code::Operation kOperation, class Number>
Number apply(Number a, Number b) {
  return expression_code::apply_binary(kOperation, a, b);
}

}  // namespace

// One branch per operation and source of its operand, so that an instruction costs one dispatch.
#define FORETUNE_CASE(operation, source, statement)    \
  case expression_code::dispatch(operation, source): { \
    statement;                                         \
    break;                                             \
  }
#define FORETUNE_OPERAND_CASES(operation, use)                                  \
  FORETUNE_CASE(operation, kConstant, use(static_cast<Number>(at->constant)))   \
  FORETUNE_CASE(operation, kWord, use(static_cast<Number>(words[at->index])))   \
  FORETUNE_CASE(operation, kField, use(static_cast<Number>(fields[at->index]))) \
  FORETUNE_CASE(operation, kFact, use(fact_number<Number>(hardware, at->index)))
#define FORETUNE_LOAD(operand) accumulator = (operand)
#define FORETUNE_PUSH(operand) *top++ = std::exchange(accumulator, (operand))
#define FORETUNE_BINARY_CASES(operation)                                                        \
  FORETUNE_CASE(operation, kStack, accumulator = apply<operation>(*--top, accumulator))         \
  FORETUNE_CASE(operation, kConstant,                                                           \
                accumulator = apply<operation>(accumulator, static_cast<Number>(at->constant))) \
  FORETUNE_CASE(                                                                                \
      operation, kWord,                                                                         \
      accumulator = apply<operation>(accumulator, static_cast<Number>(words[at->index])))       \
  FORETUNE_CASE(                                                                                \
      operation, kField,                                                                        \
      accumulator = apply<operation>(accumulator, static_cast<Number>(fields[at->index])))      \
  FORETUNE_CASE(                                                                                \
      operation, kFact,                                                                         \
      accumulator = apply<operation>(accumulator, fact_number<Number>(hardware, at->index)))

template <class Number>
Number Expression::run(std::span<const std::int32_t> words, std::span<const std::int64_t> fields,
                       const Hardware& hardware) const {
  std::array<Number, expression_code::kStackSize> stack;  // NOLINT: written before it is read
  Number* top = stack.data();
  Number accumulator = 0;
  const Instruction* const begin = code_.data();
  const Instruction* const end = begin + code_.size();
  const Instruction* at = begin;
  while (at != end) {
    switch (at->dispatch) {
      FORETUNE_OPERAND_CASES(kLoad, FORETUNE_LOAD)
      FORETUNE_OPERAND_CASES(kPush, FORETUNE_PUSH)
      FORETUNE_CASE(kNegate, kStack,
                    accumulator = expression_code::subtract(Number{0}, accumulator))
      FORETUNE_CASE(kNot, kStack, accumulator = accumulator == 0 ? 1 : 0)
      FORETUNE_CASE(kTruth, kStack, accumulator = accumulator != 0 ? 1 : 0)
      FORETUNE_CASE(kLog2, kStack,
                    accumulator = static_cast<Number>(
                        expression_code::log2_of(static_cast<double>(accumulator))))
      case expression_code::dispatch(kJump, kStack):
        at = begin + at->index;
        continue;
      case expression_code::dispatch(kJumpIfZero, kStack):
      case expression_code::dispatch(kJumpAnd, kStack):
        at = accumulator == 0 ? begin + at->index : at + 1;
        continue;
      case expression_code::dispatch(kJumpOr, kStack):
        at = accumulator != 0 ? begin + at->index : at + 1;
        accumulator = accumulator != 0 ? 1 : 0;
        continue;
        FORETUNE_BINARY_CASES(kAdd)
        FORETUNE_BINARY_CASES(kSubtract)
        FORETUNE_BINARY_CASES(kMultiply)
        FORETUNE_BINARY_CASES(kDivide)
        FORETUNE_BINARY_CASES(kRemainder)
        FORETUNE_BINARY_CASES(kEqual)
        FORETUNE_BINARY_CASES(kNotEqual)
        FORETUNE_BINARY_CASES(kLess)
        FORETUNE_BINARY_CASES(kLessEqual)
        FORETUNE_BINARY_CASES(kGreater)
        FORETUNE_BINARY_CASES(kGreaterEqual)
        FORETUNE_BINARY_CASES(kMin)
        FORETUNE_BINARY_CASES(kMax)
        FORETUNE_BINARY_CASES(kCeilDiv)
        FORETUNE_BINARY_CASES(kRoundUp)
      default:
        __builtin_unreachable();
    }
    ++at;
  }
  return accumulator;
}

std::int64_t Expression::evaluate(std::span<const std::int32_t> words,
                                  std::span<const std::int64_t> fields,
                                  const Hardware& hardware) const {
  return run<std::int64_t>(words, fields, hardware);
}

double Expression::evaluate_real(std::span<const std::int32_t> words,
                                 std::span<const std::int64_t> fields,
                                 const Hardware& hardware) const {
  return run<double>(words, fields, hardware);
}

#undef FORETUNE_BINARY_CASES
#undef FORETUNE_PUSH
#undef FORETUNE_LOAD
#undef FORETUNE_OPERAND_CASES
#undef FORETUNE_CASE

std::string Expression::explain(std::span<const std::int32_t> words,
                                std::span<const std::int64_t> fields,
                                const Hardware& hardware) const {
  std::string out;
  for (const Name& name : names_) {
    const std::int64_t value = name.source == kWord ? words[name.index]
                               : name.source == kField
                                   ? fields[name.index]
                                   : fact_number<std::int64_t>(hardware, name.index);
    out += concat(out.empty() ? "" : " ", name.text, "=");
    if (value >= 0 && static_cast<std::uint64_t>(value) < name.labels.size()) {
      out += name.labels[static_cast<std::size_t>(value)];
    } else {
      out += concat(value);
    }
  }
  return out;
}

}  // namespace foretune
