// From the text of an expression to C++ by the same precedence climbing as its parser, which has
// accepted the text before: nothing here can fail. Every operation becomes a call of a function of
// the header, because C++ neither saturates nor rounds towards minus infinity.
#include <array>
#include <cstdint>

#include "foretune/base/text.h"
#include "foretune/export_cpp/export_cpp.h"
#include "foretune/space/expression.h"

namespace foretune {
namespace {

struct Operator {
  std::string_view text;
  std::string_view function;
  int level;  // higher binds tighter
};
// Longer spellings first, so that "<=" is not read as "<".
constexpr std::array<Operator, 13> kOperators{{{"||", "or_else", 1},
                                               {"&&", "and_then", 2},
                                               {"==", "==", 3},
                                               {"!=", "!=", 3},
                                               {"<=", "<=", 3},
                                               {">=", ">=", 3},
                                               {"<", "<", 3},
                                               {">", ">", 3},
                                               {"+", "add", 4},
                                               {"-", "subtract", 4},
                                               {"*", "multiply", 5},
                                               {"/", "divide", 5},
                                               {"%", "remainder", 5}}};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

class Translator {
 public:
  Translator(std::string_view text, const ConfigSchema& config, const ProblemSchema& problem,
             const Hardware& hardware)
      : text_(text), config_(config), problem_(problem), hardware_(hardware) {}

  std::string binary(int level) {
    std::string left = unary();
    while (const Operator* found = next_operator()) {
      if (found->level < level) {
        break;
      }
      position_ += found->text.size();
      const std::string right = binary(found->level + 1);
      if (found->level <= 2) {
        left = concat("number(", left, " != 0 ", found->text, " ", right, " != 0)");
      } else if (found->level == 3) {
        left = concat("number(", left, " ", found->text, " ", right, ")");
      } else {
        left = concat(found->function, "(", left, ", ", right, ")");
      }
    }
    return left;
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t')) {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_blanks();
    const bool found = position_ < text_.size() && text_[position_] == c;
    position_ += found ? 1U : 0U;
    return found;
  }

  const Operator* next_operator() {
    skip_blanks();
    for (const Operator& candidate : kOperators) {
      if (text_.substr(position_, candidate.text.size()) == candidate.text) {
        return &candidate;
      }
    }
    return nullptr;
  }

  std::string_view word() {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_name(text_[position_])) {
      ++position_;
    }
    return text_.substr(begin, position_ - begin);
  }

  std::string unary() {
    if (accept('-')) {
      return concat("subtract(0, ", unary(), ")");
    }
    if (accept('!')) {
      return concat("number(", unary(), " == 0)");
    }
    if (accept('(')) {
      std::string inner = binary(1);
      accept(')');
      return inner;
    }
    const std::string_view name = word();
    if (const auto value = parse_int(name)) {
      return number(*value);
    }
    if (accept('.')) {
      return member(name, word());
    }
    const bool is_call = name == "min" || name == "max" || name == "ceil_div" ||
                         name == "round_up" || name == "select";
    if (is_call && accept('(')) {
      return call(name);
    }
    return config_.find(name) ? concat("widen(c.", name, ")") : concat("p.", name);
  }

  std::string call(std::string_view name) {
    const std::string first = binary(1);
    accept(',');
    const std::string second = binary(1);
    if (name != "select") {
      accept(')');
      return concat(name == "min"   ? "lesser"
                    : name == "max" ? "larger"
                                    : name,
                    "(", first, ", ", second, ")");
    }
    accept(',');
    const std::string third = binary(1);
    accept(')');
    return concat("(", first, " != 0 ? ", second, " : ", third, ")");
  }

  // hw.x, problem.x, or the number of a label.
  std::string member(std::string_view owner, std::string_view name) {
    if (owner == "problem") {
      return concat("p.", name);
    }
    // The parser folds constants; evaluating the part alone gives the number.
    const std::string part = concat(owner, ".", name);
    const auto value = Expression::parse(part, config_, problem_);
    return number(value ? value->evaluate({}, {}, hardware_) : 0);
  }

  static std::string number(std::int64_t value) {
    // The smallest has no literal of its own.
    return value == INT64_MIN ? std::string("(-INT64_C(9223372036854775807) - 1)")
                              : concat("INT64_C(", value, ")");
  }

  std::string_view text_;
  const ConfigSchema& config_;
  const ProblemSchema& problem_;
  const Hardware& hardware_;
  std::size_t position_ = 0;
};

}  // namespace

Result<std::string> cpp_expression(std::string_view text, const ConfigSchema& config,
                                   const ProblemSchema& problem, const Hardware& hardware) {
  FORETUNE_TRY_STATUS(Expression::parse(text, config, problem).map([](const auto&) {}));
  return Translator(text, config, problem, hardware).binary(1);
}

}  // namespace foretune
