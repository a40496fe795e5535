// Compiles text to code in one pass, by precedence climbing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/space/expression.h"
#include "foretune/space/internal/expression_code.h"
#include "foretune/space/internal/expression_writer.h"

namespace foretune {

using enum expression_code::Operation;
using enum expression_code::Source;
using expression_code::Operation;
using expression_code::Source;

namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxNesting = 64;

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
constexpr std::array<Function, 6> kFunctions{{{"min", kMin, 2},
                                              {"max", kMax, 2},
                                              {"ceil_div", kCeilDiv, 2},
                                              {"round_up", kRoundUp, 2},
                                              {"select", kSelect, 3},
                                              {"log2", kLog2, 1}}};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_comparison(Operation operation) {
  return operation >= kEqual && operation <= kGreaterEqual;
}

}  // namespace

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const ConfigSchema& config, const ProblemSchema& problem,
                   Arithmetic arithmetic)
      : text_(text),
        config_(config),
        problem_(problem),
        is_real_(arithmetic == Arithmetic::kReal),
        code_(is_real_) {}

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
    out_.code_ = code_.finish();
    return std::move(out_);
  }

 private:
  // The code of a part of the expression; it leaves its value in the accumulator.
  struct Piece {
    std::size_t begin = 0;
    bool is_truth = false;  // the value is 0 or 1
  };

  tl::unexpected<Error> error_at(std::size_t position, std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument, "expression ", quoted(text_), ", position ",
                position + 1, ": ", what);
  }
  tl::unexpected<Error> error(std::string_view what) const { return error_at(position_, what); }

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

  const BinaryOperator* next_operator() {
    skip_blanks();
    for (const BinaryOperator& candidate : kBinaryOperators) {
      if (text_.substr(position_, candidate.text.size()) == candidate.text) {
        return &candidate;
      }
    }
    return nullptr;
  }

  Result<Piece> parse_binary(int level, int nesting) {
    FORETUNE_TRY(Piece left, parse_unary(nesting));
    while (true) {
      const BinaryOperator* found = next_operator();
      if (found == nullptr || found->level < level) {
        return left;
      }
      position_ += found->text.size();
      if (found->operation == kAnd || found->operation == kOr) {
        FORETUNE_TRY_STATUS(parse_short_circuit(*found, nesting));
      } else {
        FORETUNE_TRY(const Piece right, parse_binary(found->level + 1, nesting));
        code_.binary(found->operation, left.begin, right.begin);
      }
      left.is_truth = is_comparison(found->operation) || found->level <= 2;
    }
  }

  // When the left side is 0 (and) or not (or), the result is decided and the right side is skipped.
  Status parse_short_circuit(const BinaryOperator& found, int nesting) {
    const std::size_t jump = code_.jump(found.operation == kAnd ? kJumpAnd : kJumpOr);
    FORETUNE_TRY(const Piece right, parse_binary(found.level + 1, nesting));
    if (!right.is_truth) {
      code_.unary(kTruth, right.begin);
    }
    code_.land(jump);
    return {};
  }

  Result<Piece> parse_unary(int nesting) {
    skip_blanks();
    if (nesting > kMaxNesting) {
      return error(concat("more than ", kMaxNesting, " levels of nesting"));
    }
    if (position_ == text_.size()) {
      return error("a value was expected");
    }
    const char c = text_[position_];
    if (c == '-' || c == '!') {
      ++position_;
      FORETUNE_TRY(Piece piece, parse_unary(nesting + 1));
      code_.unary(c == '-' ? kNegate : kNot, piece.begin);
      return Piece{piece.begin, c == '!'};
    }
    if (c == '(') {
      ++position_;
      FORETUNE_TRY(const Piece piece, parse_binary(1, nesting + 1));
      if (!accept(')')) {
        return error("')' or an operator was expected");
      }
      return piece;
    }
    if (is_digit(c)) {
      return parse_number();
    }
    if (is_name_start(c)) {
      return parse_name(nesting);
    }
    return error("a value was expected");
  }

  Result<Piece> parse_number() {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) {
      ++position_;
    }
    const auto value = parse_int(text_.substr(begin, position_ - begin));
    if (!value) {
      return error_at(begin, "the number is too large");
    }
    return load(kConstant, 0, *value);
  }

  std::string_view read_word() {
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (is_name_start(text_[position_]) || is_digit(text_[position_]))) {
      ++position_;
    }
    return text_.substr(begin, position_ - begin);
  }

  Result<Piece> parse_name(int nesting) {
    const std::size_t begin = position_;
    const std::string_view name = read_word();
    if (position_ < text_.size() && text_[position_] == '.') {
      ++position_;
      return parse_member(begin, name, read_word());
    }
    for (const Function& function : kFunctions) {
      if (function.name == name && (is_real_ || function.operation != kLog2) && accept('(')) {
        return parse_call(function, nesting);
      }
    }
    if (const auto index = config_.find(name)) {
      return load_word(name, *index);
    }
    if (const auto index = problem_.find(name)) {
      return load_field(std::string(name), *index);
    }
    return error_at(begin,
                    concat(quoted(name), " is neither a parameter nor a field of the problem",
                           suggestion(name)));
  }

  Result<Piece> parse_call(const Function& function, int nesting) {
    if (function.operation == kSelect) {
      return parse_select(function, nesting);
    }
    FORETUNE_TRY(const Piece left, parse_argument(function, 0, nesting));
    if (function.arguments == 1) {
      code_.unary(function.operation, left.begin);
      return Piece{left.begin, false};
    }
    FORETUNE_TRY(const Piece right, parse_argument(function, 1, nesting));
    code_.binary(function.operation, left.begin, right.begin);
    return Piece{left.begin, false};
  }

  Result<Piece> parse_select(const Function& function, int nesting) {
    FORETUNE_TRY(const Piece condition, parse_argument(function, 0, nesting));
    const std::size_t to_else = code_.jump(kJumpIfZero);
    FORETUNE_TRY(const Piece chosen, parse_argument(function, 1, nesting));
    const std::size_t to_end = code_.jump(kJump);
    code_.land(to_else);
    code_.free_accumulator();
    FORETUNE_TRY(const Piece otherwise, parse_argument(function, 2, nesting));
    code_.land(to_end);
    return Piece{condition.begin, chosen.is_truth && otherwise.is_truth};
  }

  Result<Piece> parse_argument(const Function& function, int number, int nesting) {
    FORETUNE_TRY(const Piece piece, parse_binary(1, nesting + 1));
    const bool last = number + 1 == function.arguments;
    if (!accept(last ? ')' : ',')) {
      return error(concat(last ? "')'" : "','", " was expected; ", function.name, " takes ",
                          function.arguments, last && number == 0 ? " argument" : " arguments"));
    }
    return piece;
  }

  // Parses hw.x, problem.x, or the number of a label.
  Result<Piece> parse_member(std::size_t begin, std::string_view owner, std::string_view member) {
    if (owner == "hw") {
      const auto value = parse_hardware_value(member);
      if (!value) {
        return error_at(begin, concat(quoted(member), " is not a hardware value"));
      }
      const auto index = static_cast<std::uint32_t>(*value);
      out_.uses_hardware_ = true;
      remember({.text = concat("hw.", member), .labels = {}, .source = kFact, .index = index});
      return load(kFact, index);
    }
    if (owner == "problem") {
      if (const auto index = problem_.find(member)) {
        return load_field(concat("problem.", member), *index);
      }
      return error_at(begin, concat(quoted(member), " is not a field of the problem"));
    }
    std::vector<std::string> labels;
    if (const auto parameter = config_.find(owner)) {
      labels = config_.parameters[*parameter].labels;
    } else if (const auto field = problem_.find(owner)) {
      labels.assign(problem_.fields[*field].labels.begin(), problem_.fields[*field].labels.end());
    } else {
      return error_at(begin,
                      concat(quoted(owner), " is neither a parameter nor a field of the problem",
                             suggestion(owner)));
    }
    const auto found = std::find(labels.begin(), labels.end(), member);
    if (found == labels.end()) {
      return error_at(begin,
                      concat(quoted(member), " is not a label of ", owner,
                             labels.empty() ? ", which has none" : ": ", join(labels, ", ")));
    }
    return load(kConstant, 0, found - labels.begin());
  }

  std::string suggestion(std::string_view name) const {
    std::vector<std::string> known;
    for (const Parameter& parameter : config_.parameters) {
      known.push_back(parameter.name);
    }
    for (const ProblemField& field : problem_.fields) {
      known.emplace_back(field.name);
    }
    const std::string nearest = nearest_word(name, known);
    return nearest.empty() ? std::string() : concat(" (did you mean '", nearest, "'?)");
  }

  Result<Piece> load_word(std::string_view name, std::size_t position) {
    const auto index = static_cast<std::uint32_t>(position);
    std::vector<std::size_t>& used = out_.parameters_;
    const auto place = std::lower_bound(used.begin(), used.end(), position);
    if (place == used.end() || *place != position) {
      used.insert(place, position);
    }
    remember({.text = std::string(name),
              .labels = config_.parameters[index].labels,
              .source = kWord,
              .index = index});
    return load(kWord, index);
  }

  Result<Piece> load_field(std::string name, std::size_t position) {
    const auto index = static_cast<std::uint32_t>(position);
    const auto labels = problem_.fields[index].labels;
    out_.uses_problem_ = true;
    remember({.text = std::move(name),
              .labels = {labels.begin(), labels.end()},
              .source = kField,
              .index = index});
    return load(kField, index);
  }

  void remember(Expression::Name name) {
    for (const Expression::Name& known : out_.names_) {
      if (known.text == name.text) {
        return;
      }
    }
    out_.names_.push_back(std::move(name));
  }

  Result<Piece> load(Source source, std::uint32_t index, std::int64_t constant = 0) {
    const std::size_t begin = code_.size();
    if (!code_.load(source, index, constant)) {
      return error("too many operands at once");
    }
    return Piece{begin, false};
  }

  std::string_view text_;
  const ConfigSchema& config_;
  const ProblemSchema& problem_;
  bool is_real_;
  Expression out_;
  ExpressionWriter code_;
  std::size_t position_ = 0;
};

Result<Expression> Expression::parse(std::string_view text, const ConfigSchema& config,
                                     const ProblemSchema& problem, Arithmetic arithmetic) {
  return ExpressionParser(text, config, problem, arithmetic).parse();
}

}  // namespace foretune
