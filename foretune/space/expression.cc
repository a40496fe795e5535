#include "foretune/space/expression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxNesting = 64;
constexpr std::size_t kStackSize = 256;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

enum Operation : std::uint8_t {
  kConstant,
  kWord,
  kField,
  kHardware,
  kNegate,
  kNot,
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
  kAnd,
  kOr,
  kMin,
  kMax,
  kCeilDiv,
  kRoundUp,
  kSelect,
};

std::int64_t saturated(bool negative) { return negative ? kSmallest : kLargest; }

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? saturated(a < 0) : out;
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_sub_overflow(a, b, &out) ? saturated(a < 0) : out;
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? saturated((a < 0) != (b < 0)) : out;
}

// Towards minus infinity; by zero is zero; the one overflow saturates.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    return 0;
  }
  if (b == -1) {
    return subtract(0, a);
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) {
    return 0;
  }
  const std::int64_t remainder = a % b;
  return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return add(floor_divide(a, b), floor_remainder(a, b) != 0 ? 1 : 0);
}

std::int64_t binary(std::uint8_t operation, std::int64_t a, std::int64_t b) {
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
    case kAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case kOr:
      return a != 0 || b != 0 ? 1 : 0;
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

std::int64_t hardware_number(const Hardware& hardware, std::int64_t index) {
  return static_cast<std::int64_t>(std::floor(hardware.get(static_cast<HardwareValue>(index))));
}

struct BinaryOperator {
  std::string_view text;
  Operation operation;
  int level;  // higher binds tighter
};
// Longer spellings first, so that "<=" is not read as "<".
constexpr std::array<BinaryOperator, 13> kBinaryOperators{{{"||", kOr, 1},
                                                           {"&&", kAnd, 2},
                                                           {"==", kEqual, 3},
                                                           {"!=", kNotEqual, 3},
                                                           {"<=", kLessEqual, 3},
                                                           {">=", kGreaterEqual, 3},
                                                           {"<", kLess, 3},
                                                           {">", kGreater, 3},
                                                           {"+", kAdd, 4},
                                                           {"-", kSubtract, 4},
                                                           {"*", kMultiply, 5},
                                                           {"/", kDivide, 5},
                                                           {"%", kRemainder, 5}}};

struct Function {
  std::string_view name;
  Operation operation;
  int arguments;
};
constexpr std::array<Function, 5> kFunctions{{{"min", kMin, 2},
                                              {"max", kMax, 2},
                                              {"ceil_div", kCeilDiv, 2},
                                              {"round_up", kRoundUp, 2},
                                              {"select", kSelect, 3}}};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Precedence climbing; the code comes out in evaluation order.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const ConfigSchema& config, const ProblemSchema& problem)
      : text_(text), config_(config), problem_(problem) {}

  Result<Expression> parse() {
    if (text_.size() > kMaxLength) {
      return fail(ErrorCode::kInvalidArgument, "an expression of ", text_.size(),
                  " characters is over the limit of ", kMaxLength);
    }
    FORETUNE_TRY_STATUS(parse_binary(1, 0));
    skip_blanks();
    if (position_ != text_.size()) {
      return error("an operator or the end was expected");
    }
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> error(std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument, "expression '", text_.substr(0, 80), "', position ",
                position_ + 1, ": ", what);
  }

  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t')) {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_blanks();
    if (position_ < text_.size() && text_[position_] == c) {
      ++position_;
      return true;
    }
    return false;
  }

  Status emit(Operation operation, std::int64_t operand, int stack_change) {
    depth_ += stack_change;
    if (depth_ > static_cast<int>(kStackSize)) {
      return error("too many operands at once");
    }
    out_.code_.push_back({operation, operand});
    return {};
  }

  const BinaryOperator* next_operator() {
    skip_blanks();
    for (const BinaryOperator& candidate : kBinaryOperators) {
      if (text_.substr(position_, candidate.text.size()) == candidate.text) {
        return &candidate;
      }
    }
    return nullptr;
  }

  Status parse_binary(int level, int nesting) {
    FORETUNE_TRY_STATUS(parse_unary(nesting));
    while (true) {
      const BinaryOperator* found = next_operator();
      if (found == nullptr || found->level < level) {
        return {};
      }
      position_ += found->text.size();
      FORETUNE_TRY_STATUS(parse_binary(found->level + 1, nesting + 1));
      FORETUNE_TRY_STATUS(emit(found->operation, 0, -1));
    }
  }

  Status parse_unary(int nesting) {
    if (nesting > kMaxNesting) {
      return error("nested too deeply");
    }
    skip_blanks();
    if (position_ == text_.size()) {
      return error("a value was expected");
    }
    const char c = text_[position_];
    if (c == '-' || c == '!') {
      ++position_;
      FORETUNE_TRY_STATUS(parse_unary(nesting + 1));
      return emit(c == '-' ? kNegate : kNot, 0, 0);
    }
    if (c == '(') {
      ++position_;
      FORETUNE_TRY_STATUS(parse_binary(1, nesting + 1));
      return accept(')') ? Status() : Status(error("')' was expected"));
    }
    if (is_digit(c)) {
      return parse_number();
    }
    if (is_name_start(c)) {
      return parse_name(nesting);
    }
    return error("a value was expected");
  }

  Status parse_number() {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) {
      ++position_;
    }
    const auto value = parse_int(text_.substr(begin, position_ - begin));
    if (!value) {
      return error("the number is too large");
    }
    return emit(kConstant, *value, 1);
  }

  std::string_view read_word() {
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (is_name_start(text_[position_]) || is_digit(text_[position_]))) {
      ++position_;
    }
    return text_.substr(begin, position_ - begin);
  }

  Status parse_name(int nesting) {
    const std::string_view name = read_word();
    if (position_ < text_.size() && text_[position_] == '.') {
      ++position_;
      return parse_member(name, read_word());
    }
    for (const Function& function : kFunctions) {
      if (function.name == name && accept('(')) {
        return parse_call(function, nesting);
      }
    }
    if (const auto index = config_.find(name)) {
      return load_word(name, *index);
    }
    if (const auto index = problem_.find(name)) {
      return load_field(name, *index);
    }
    return error(concat("'", name, "' is neither a parameter nor a field of the problem"));
  }

  Status parse_call(const Function& function, int nesting) {
    for (int i = 0; i < function.arguments; ++i) {
      FORETUNE_TRY_STATUS(parse_binary(1, nesting + 1));
      if (!accept(i + 1 == function.arguments ? ')' : ',')) {
        return error(concat(function.name, " takes ", function.arguments, " arguments"));
      }
    }
    return emit(function.operation, 0, 1 - function.arguments);
  }

  // hw.x, problem.x, or the number of a label.
  Status parse_member(std::string_view owner, std::string_view member) {
    if (owner == "hw") {
      const auto value = parse_hardware_value(member);
      if (!value) {
        return error(concat("'", member, "' is not a hardware value"));
      }
      remember(concat("hw.", member), {kHardware, static_cast<std::int64_t>(*value)});
      return emit(kHardware, static_cast<std::int64_t>(*value), 1);
    }
    if (owner == "problem") {
      const auto index = problem_.find(member);
      return index ? load_field(concat("problem.", member), *index)
                   : Status(error(concat("'", member, "' is not a field of the problem")));
    }
    if (const auto index = config_.find(owner)) {
      const std::vector<std::string>& labels = config_.parameters[*index].labels;
      return load_label(std::find(labels.begin(), labels.end(), member) - labels.begin(),
                        labels.size(), owner, member);
    }
    if (const auto index = problem_.find(owner)) {
      const auto labels = problem_.fields[*index].labels;
      return load_label(std::find(labels.begin(), labels.end(), member) - labels.begin(),
                        labels.size(), owner, member);
    }
    return error(concat("'", owner, "' is neither a parameter nor a field of the problem"));
  }

  Status load_label(std::ptrdiff_t index, std::size_t count, std::string_view owner,
                    std::string_view member) {
    if (static_cast<std::size_t>(index) == count) {
      return error(concat("'", member, "' is not a label of ", owner));
    }
    return emit(kConstant, index, 1);
  }

  Status load_word(std::string_view name, std::size_t index) {
    out_.uses_config_ = true;
    out_.last_parameter_ = std::max(out_.last_parameter_, static_cast<int>(index));
    remember(std::string(name), {kWord, static_cast<std::int64_t>(index)});
    return emit(kWord, static_cast<std::int64_t>(index), 1);
  }

  Status load_field(std::string_view name, std::size_t index) {
    out_.uses_problem_ = true;
    remember(std::string(name), {kField, static_cast<std::int64_t>(index)});
    return emit(kField, static_cast<std::int64_t>(index), 1);
  }

  void remember(std::string name, Expression::Instruction load) {
    for (const Expression::Name& known : out_.names_) {
      if (known.text == name) {
        return;
      }
    }
    out_.names_.push_back({std::move(name), load});
  }

  std::string_view text_;
  const ConfigSchema& config_;
  const ProblemSchema& problem_;
  Expression out_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

Result<Expression> Expression::parse(std::string_view text, const ConfigSchema& config,
                                     const ProblemSchema& problem) {
  return ExpressionParser(text, config, problem).parse();
}

std::int64_t Expression::evaluate(std::span<const std::int32_t> words,
                                  std::span<const std::int64_t> fields,
                                  const Hardware& hardware) const {
  std::array<std::int64_t, kStackSize> stack;  // NOLINT: filled before it is read
  std::size_t top = 0;
  for (const Instruction& instruction : code_) {
    const auto operand = static_cast<std::size_t>(instruction.operand);
    switch (instruction.operation) {
      case kConstant:
        stack[top++] = instruction.operand;
        break;
      case kWord:
        FORETUNE_DCHECK(operand < words.size());
        stack[top++] = words[operand];
        break;
      case kField:
        FORETUNE_DCHECK(operand < fields.size());
        stack[top++] = fields[operand];
        break;
      case kHardware:
        stack[top++] = hardware_number(hardware, instruction.operand);
        break;
      case kNegate:
        stack[top - 1] = subtract(0, stack[top - 1]);
        break;
      case kNot:
        stack[top - 1] = stack[top - 1] == 0 ? 1 : 0;
        break;
      case kSelect:
        stack[top - 3] = stack[top - 3] != 0 ? stack[top - 2] : stack[top - 1];
        top -= 2;
        break;
      default:
        stack[top - 2] = binary(instruction.operation, stack[top - 2], stack[top - 1]);
        --top;
    }
  }
  return stack[0];
}

std::string Expression::explain(std::span<const std::int32_t> words,
                                std::span<const std::int64_t> fields,
                                const Hardware& hardware) const {
  std::string out;
  for (const Name& name : names_) {
    const auto index = static_cast<std::size_t>(name.load.operand);
    const std::int64_t value = name.load.operation == kWord    ? words[index]
                               : name.load.operation == kField ? fields[index]
                                                               : hardware_number(
                                                                     hardware, name.load.operand);
    out += concat(out.empty() ? "" : " ", name.text, "=", value);
  }
  return out;
}

}  // namespace foretune
