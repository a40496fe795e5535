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
// Thread safety: const members may be called from several threads. Cost: evaluation does not
// allocate; 1 to 2 ns an operation, and what && || and select() leave undecided is not evaluated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class Expression {
 public:
  // Compiles `text`; names are resolved against the schemas. At most 64 levels of nesting
  // (parentheses, calls and signs) and 4,096 characters. An error says where and what was expected.
  static Result<Expression> parse(std::string_view text, const ConfigSchema& config,
                                  const ProblemSchema& problem);

  [[nodiscard]] std::int64_t evaluate(std::span<const std::int32_t> words,
                                      std::span<const std::int64_t> fields,
                                      const Hardware& hardware) const;

  // Which inputs the value depends on.
  [[nodiscard]] bool uses_problem() const { return uses_problem_; }
  [[nodiscard]] bool uses_config() const { return uses_config_; }
  // The highest parameter position used, or -1: an enumeration can check it that early.
  [[nodiscard]] int last_parameter() const { return last_parameter_; }

  // The names in the expression with their values, for the reason of a refusal: "mr=16 pack_b=no".
  [[nodiscard]] std::string explain(std::span<const std::int32_t> words,
                                    std::span<const std::int64_t> fields,
                                    const Hardware& hardware) const;

 private:
  friend class ExpressionParser;
  // See expression_code.h.
  struct Instruction {
    std::uint8_t operation = 0;
    std::uint8_t source = 0;
    std::uint16_t dispatch = 0;  // of the two above
    std::uint32_t index = 0;     // of a word, field or fact, or where to jump
    std::int64_t constant = 0;
  };
  struct Name {
    std::string text;
    std::vector<std::string> labels;  // of an enumerated parameter or field
    std::uint8_t source = 0;
    std::uint32_t index = 0;
  };
  std::vector<Instruction> code_;
  std::vector<Name> names_;
  bool uses_problem_ = false;
  bool uses_config_ = false;
  int last_parameter_ = -1;
};

}  // namespace foretune
