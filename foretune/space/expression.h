// Legality as data: small integer expressions over the parameters of a config, the fields of a
// problem and facts of the hardware, so that the run-time selector can decide what is legal from
// the model file alone, without the family.
//
//   mr * vectors + vectors + 1 <= 32
//   pack_b == pack_b.yes || n <= 4096
//   mc <= round_up(m, mr)
//   threads <= hw.cores
//
// Operators, loosest first: || ; && ; == != < <= > >= ; + - ; * / % ; ! -(unary). Division and
// remainder round towards minus infinity; by zero they yield 0. Functions: min(a,b), max(a,b),
// ceil_div(a,b), round_up(a,b), select(condition,a,b). `name.label` is the number of a label of
// parameter or field `name`; `hw.x` a fact of the hardware (0 when unknown, rounded down). All
// values are 64-bit integers and saturate instead of overflowing. A config parameter hides a
// problem field of the same name; `problem.x` always names the field.
// Features count in real numbers instead (Arithmetic::kReal): `/` and ceil_div divide doubles, hw.x
// is not rounded, and log2(a) is known too. Division by zero yields 0, and so does log2 of a number
// that is not positive.
// Thread safety: const members may be called from several threads. Cost: evaluation does not
// allocate; 1 to 2 ns an operation, and && || and select() evaluate only the operands they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

enum class Arithmetic : std::uint8_t { kWhole, kReal };

class Expression {
 public:
  // Compiles `text`; names are resolved against the schemas. At most 64 levels of nesting
  // (parentheses, calls and signs) and 4,096 characters. An error says where and what was expected.
  static Result<Expression> parse(std::string_view text, const ConfigSchema& config,
                                  const ProblemSchema& problem,
                                  Arithmetic arithmetic = Arithmetic::kWhole);

  // Each function evaluates expressions of its own arithmetic only.
  [[nodiscard]] std::int64_t evaluate(std::span<const std::int32_t> words,
                                      std::span<const std::int64_t> fields,
                                      const Hardware& hardware) const;
  // The value may be infinite or NaN where numbers beyond 10^308 occur on the way.
  [[nodiscard]] double evaluate_real(std::span<const std::int32_t> words,
                                     std::span<const std::int64_t> fields,
                                     const Hardware& hardware) const;

  // True when the value depends on the problem.
  [[nodiscard]] bool uses_problem() const { return uses_problem_; }
  [[nodiscard]] bool uses_hardware() const { return uses_hardware_; }
  // Returns the positions of the parameters in the expression, ascending: an enumeration can check
  // the expression as soon as they are set.
  [[nodiscard]] std::span<const std::size_t> parameters() const { return parameters_; }

  // The values that fold() fills in: all parameters, and those fields that have one here (none
  // where `fields` is empty).
  struct Known {
    std::span<const std::int32_t> words;
    std::span<const std::optional<std::int64_t>> fields;
    const Hardware& hardware;
  };
  // Returns the part that is left when these values are filled in: an expression over the other
  // fields alone, with the same value. Its explain() is empty. Whole arithmetic only. Cost: a few
  // dozen ns an operation, and it allocates.
  [[nodiscard]] Expression fold(const Known& known) const;
  // Returns the value of an expression that is only a constant, as a folded one may be.
  [[nodiscard]] std::optional<std::int64_t> constant() const;
  // Returns true when both have the same code, and so the same value whatever they are given.
  [[nodiscard]] bool has_code_of(const Expression& other) const { return code_ == other.code_; }

  // Returns the names in the expression with their values, for the reason of a refusal: "mr=16
  // pack_b=no".
  [[nodiscard]] std::string explain(std::span<const std::int32_t> words,
                                    std::span<const std::int64_t> fields,
                                    const Hardware& hardware) const;

 private:
  friend class ExpressionFolder;
  friend class ExpressionParser;
  friend class ExpressionWriter;
  // See expression_code.h.
  struct Instruction {
    std::uint8_t operation = 0;
    std::uint8_t source = 0;
    std::uint16_t dispatch = 0;  // combines the two above
    std::uint32_t index = 0;     // of a word, field or fact, or where to jump
    // For a jump: where the operand ends that it skips. `index` may be further.
    std::int64_t constant = 0;
    bool operator==(const Instruction&) const = default;
  };
  struct Name {
    std::string text;
    std::vector<std::string> labels;  // of an enumerated parameter or field
    std::uint8_t source = 0;
    std::uint32_t index = 0;
  };
  template <class Number>
  Number run(std::span<const std::int32_t> words, std::span<const std::int64_t> fields,
             const Hardware& hardware) const;

  std::vector<Instruction> code_;
  std::vector<Name> names_;
  bool uses_problem_ = false;
  bool uses_hardware_ = false;
  std::vector<std::size_t> parameters_;
};

}  // namespace foretune
