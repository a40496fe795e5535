#include "foretune/metrics/objective.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::string_view kBaselineWord = "baseline";
constexpr std::string_view kKeepWord = "keep";
constexpr std::string_view kAndWord = "and";
constexpr std::string_view kSubjectWord = "subject";
constexpr std::string_view kToWord = "to";
constexpr std::string_view kParetoWord = "pareto";
// How far a missing value misses its bound.
constexpr double kMissing = std::numeric_limits<double>::infinity();
constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr std::string_view kOperators = "<>=+-*";

// These words are neither names nor units: otherwise a text would have two meanings.
bool is_reserved(std::string_view word) {
  return word == kBaselineWord || word == kKeepWord || word == kAndWord || word == kSubjectWord;
}

bool is_repeated(const std::vector<std::string>& names, std::size_t i) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(i);
  return std::find(names.begin(), end, names[i]) != end;
}

struct Token {
  enum class Kind : std::uint8_t { kEnd, kWord, kNumber, kOperator };
  Kind kind = Kind::kEnd;
  std::string_view text;
  double number = 0;
};

class ObjectiveParser {
 public:
  explicit ObjectiveParser(std::string_view text) : rest_(text) { read_token(); }

  Result<Objective> parse() {
    Objective out;
    FORETUNE_TRY_STATUS(read_targets(out));
    if (accept(kSubjectWord)) {
      if (!accept(kToWord)) {
        return refuse("'to'");
      }
      do {
        FORETUNE_TRY(MetricBound bound, read_bound());
        out.bounds.push_back(std::move(bound));
      } while (accept(kAndWord));
    }
    if (token_.kind != Token::Kind::kEnd) {
      return refuse(out.bounds.empty() ? "'subject to' or the end" : "'keep', 'and' or the end");
    }
    return out;
  }

 private:
  // Returns the text up to the next blank: part of a misspelt word would be hard to find.
  [[nodiscard]] std::string_view word_at_fault() const {
    const std::string_view from_here(token_.text.data(), token_.text.size() + rest_.size());
    return from_here.substr(0, from_here.find_first_of(kBlanks));
  }

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view expected) const {
    if (token_.kind == Token::Kind::kEnd) {
      return fail(ErrorCode::kInvalidArgument, "the objective ends after ", quoted(previous_, 40),
                  " where ", expected, " is expected");
    }
    return fail(ErrorCode::kInvalidArgument, "the objective has ", quoted(word_at_fault(), 40),
                " where ", expected, " is expected");
  }

  void read_token() {
    previous_ = token_.text;
    const std::size_t begin = std::min(rest_.find_first_not_of(kBlanks), rest_.size());
    rest_.remove_prefix(begin);
    token_ = {.kind = Token::Kind::kEnd, .text = rest_.substr(0, 0)};
    if (rest_.empty()) {
      return;
    }
    if (is_digit(0) || (rest_[0] == '.' && is_digit(1))) {
      const auto [end, error] =
          std::from_chars(rest_.data(), rest_.data() + rest_.size(), token_.number);
      take(Token::Kind::kNumber, static_cast<std::size_t>(end - rest_.data()));
      if (error != std::errc()) {
        token_.number = kNotANumber;
      }
    } else if (rest_.starts_with("<=") || rest_.starts_with(">=")) {
      take(Token::Kind::kOperator, 2);
    } else if (kOperators.find(rest_[0]) != std::string_view::npos) {
      take(Token::Kind::kOperator, 1);
    } else {
      const std::size_t end =
          std::min(rest_.find_first_of(kBlanks), rest_.find_first_of(kOperators));
      take(Token::Kind::kWord, std::min(end, rest_.size()));
    }
  }

  [[nodiscard]] bool is_digit(std::size_t i) const {
    return i < rest_.size() && rest_[i] >= '0' && rest_[i] <= '9';
  }

  void take(Token::Kind kind, std::size_t length) {
    token_.kind = kind;
    token_.text = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  // A number never equals a word or an operator.
  bool accept(std::string_view text) {
    if (token_.text != text) {
      return false;
    }
    read_token();
    return true;
  }

  Status read_targets(Objective& out) {
    const std::string_view verb = token_.text;
    if (verb == "minimise" || verb == "minimize") {
      out.direction = Direction::kMinimise;
    } else if (verb == "maximise" || verb == "maximize") {
      out.direction = Direction::kMaximise;
    } else if (verb != kParetoWord) {
      const std::string instead =
          verb.empty() ? "" : concat(", not with ", quoted(word_at_fault(), 40));
      return fail(ErrorCode::kInvalidArgument,
                  "an objective begins with 'minimise', 'maximise' or 'pareto'", instead);
    }
    read_token();
    FORETUNE_TRY(std::string first, read_metric());
    out.targets.push_back(std::move(first));
    if (verb != kParetoWord) {
      return {};
    }
    do {
      if (token_.kind == Token::Kind::kEnd || token_.text == kSubjectWord) {
        return refuse("a second metric of 'pareto'");
      }
      FORETUNE_TRY(std::string next, read_metric());
      out.targets.push_back(std::move(next));
      if (is_repeated(out.targets, out.targets.size() - 1)) {
        return fail(ErrorCode::kInvalidArgument, "the objective names the target ",
                    quoted(out.targets.back(), 40), " twice");
      }
    } while (token_.kind != Token::Kind::kEnd && token_.text != kSubjectWord);
    return {};
  }

  Result<std::string> read_metric() {
    if (token_.kind != Token::Kind::kWord || is_reserved(token_.text)) {
      return refuse("the name of a metric");
    }
    std::string name(token_.text);
    FORETUNE_TRY_STATUS(check_metric_info({.name = name, .unit = ""}));
    read_token();
    return name;
  }

  Result<MetricBound> read_bound() {
    MetricBound out;
    FORETUNE_TRY(out.metric, read_metric());
    out.is_upper = token_.text == "<=";
    if (!accept("<=") && !accept(">=")) {
      return refuse("'<=' or '>='");
    }
    FORETUNE_TRY(out.bound, read_value(out.metric));
    if (accept(kKeepWord)) {
      FORETUNE_TRY(out.keep, read_value(out.metric));
    }
    return out;
  }

  Result<BoundValue> read_value(const std::string& metric) {
    BoundValue out;
    if (accept(kBaselineWord)) {
      out.kind = BoundValue::Kind::kDifference;
      if (accept("*")) {
        out.kind = BoundValue::Kind::kFactor;
        FORETUNE_TRY(out.value, read_signed_number("a factor of the baseline"));
      } else if (token_.text == "+" || token_.text == "-") {
        FORETUNE_TRY(out.value, read_signed_number("a number"));
        FORETUNE_TRY(out.unit, read_unit(metric));
      }
      return out;
    }
    FORETUNE_TRY(out.value, read_signed_number("a number or 'baseline'"));
    if (!accept("*")) {
      FORETUNE_TRY(out.unit, read_unit(metric));
      return out;
    }
    out.kind = BoundValue::Kind::kFactor;
    if (!accept(kBaselineWord)) {
      return refuse("'baseline'");
    }
    return out;
  }

  Result<double> read_signed_number(std::string_view expected) {
    const bool is_negative = token_.text == "-";
    if (is_negative || token_.text == "+") {
      read_token();
    }
    if (token_.kind != Token::Kind::kNumber) {
      return refuse(expected);
    }
    const double number = token_.number;
    if (!std::isfinite(number)) {
      return refuse("a number within the range of doubles");
    }
    read_token();
    // Avoids the negative zero, which equals 0 and prints differently.
    return is_negative ? 0 - number : number;
  }

  Result<std::string> read_unit(const std::string& metric) {
    if (token_.kind != Token::Kind::kWord || is_reserved(token_.text)) {
      return std::string();
    }
    std::string unit(token_.text);
    FORETUNE_TRY_STATUS(check_metric_info({.name = metric, .unit = unit}));
    read_token();
    return unit;
  }

  std::string_view rest_;  // behind token_
  Token token_;
  std::string_view previous_;  // the text of the token before
};

std::string with_unit(double value, std::string_view unit) {
  return unit.empty() ? concat(value) : concat(value, " ", unit);
}

std::string bound_text(const MetricBound& bound) {
  std::string out = concat(bound.metric, bound.is_upper ? " <= " : " >= ", bound.bound.text());
  if (bound.keep) {
    out += concat(" ", kKeepWord, " ", bound.keep->text());
  }
  return out;
}

enum class Quantity : std::uint8_t { kTime, kSize, kEnergy };

struct UnitScale {
  std::string_view name;
  Quantity quantity;
  std::uint64_t scale;  // of the smallest unit of its quantity
};
constexpr std::array<UnitScale, 15> kUnitScales{{
    {"ns", Quantity::kTime, 1},
    {"us", Quantity::kTime, 1'000},
    {"ms", Quantity::kTime, 1'000'000},
    {"s", Quantity::kTime, 1'000'000'000},
    {"B", Quantity::kSize, 1},
    {"kB", Quantity::kSize, 1'000},
    {"MB", Quantity::kSize, 1'000'000},
    {"GB", Quantity::kSize, 1'000'000'000},
    {"KiB", Quantity::kSize, std::uint64_t{1} << 10},
    {"MiB", Quantity::kSize, std::uint64_t{1} << 20},
    {"GiB", Quantity::kSize, std::uint64_t{1} << 30},
    {"nJ", Quantity::kEnergy, 1},
    {"uJ", Quantity::kEnergy, 1'000},
    {"mJ", Quantity::kEnergy, 1'000'000},
    {"J", Quantity::kEnergy, 1'000'000'000},
}};

const UnitScale* find_unit(std::string_view name) {
  const auto* const found = std::find_if(kUnitScales.begin(), kUnitScales.end(),
                                         [&](const UnitScale& unit) { return unit.name == name; });
  return found == kUnitScales.end() ? nullptr : found;
}

// Returns nothing where no conversion is known.
std::optional<double> convert(double value, std::string_view from, std::string_view to) {
  if (from.empty() || from == to) {
    return value;
  }
  const UnitScale* const source = find_unit(from);
  const UnitScale* const target = find_unit(to);
  if (source == nullptr || target == nullptr || source->quantity != target->quantity) {
    return std::nullopt;
  }
  // Rounds once wherever one scale is a multiple of the other.
  if (source->scale % target->scale == 0) {
    const std::uint64_t factor = source->scale / target->scale;
    return value * static_cast<double>(factor);
  }
  if (target->scale % source->scale == 0) {
    const std::uint64_t divisor = target->scale / source->scale;
    return value / static_cast<double>(divisor);
  }
  return value * static_cast<double>(source->scale) / static_cast<double>(target->scale);
}

Result<double> resolve(const BoundValue& value, const MetricInfo& info,
                       std::span<const MetricValue> baseline) {
  double base = 0;
  if (value.kind != BoundValue::Kind::kAbsolute) {
    const MetricValue* const found = find_metric(baseline, info.name);
    if (found == nullptr || !std::isfinite(found->value)) {
      return fail(ErrorCode::kInvalidArgument, "the bound ", quoted(value.text()), " of ",
                  info.name, " needs the baseline's value of ", info.name, ", which is not known");
    }
    base = found->value;
  }
  const std::optional<double> number = convert(value.value, value.unit, info.unit);
  if (!number || (value.kind == BoundValue::Kind::kFactor && !value.unit.empty())) {
    return fail(ErrorCode::kInvalidArgument, quoted(value.unit, 40), " is no unit of ", info.name,
                info.unit.empty() ? ", which has none" : ", which is measured in ", info.unit);
  }
  const double limit = value.kind == BoundValue::Kind::kFactor ? *number * base : base + *number;
  if (!std::isfinite(limit)) {
    return fail(ErrorCode::kInvalidArgument, "the bound ", quoted(value.text()), " of ", info.name,
                " is beyond the range of doubles");
  }
  return limit;
}

Result<MetricInfo> find_info(std::string_view name, std::span<const MetricInfo> infos) {
  for (const auto known : {infos, common_metrics()}) {
    if (const MetricInfo* found = find_metric(known, name)) {
      return *found;
    }
  }
  std::vector<std::string> names;
  for (const auto known : {infos, common_metrics()}) {
    for (const MetricInfo& info : known) {
      if (std::find(names.begin(), names.end(), info.name) == names.end()) {
        names.push_back(info.name);
      }
    }
  }
  return fail(ErrorCode::kNotFound, "no metric is called ", quoted(name, 40), "; there are ",
              join(names, ", "));
}

// Returns how far `value` misses a bound, relative to the bound. The result is not 0 for any value
// beyond the bound, however near: the difference of two doubles is 0 only if they are equal.
double excess(double value, double limit, bool is_upper) {
  const double over = is_upper ? value - limit : limit - value;
  if (!(over > 0)) {
    return 0;
  }
  return limit == 0 ? over : over / std::abs(limit);
}

}  // namespace

std::string BoundValue::text() const {
  switch (kind) {
    case Kind::kAbsolute:
      return with_unit(value, unit);
    case Kind::kFactor:
      return concat(value, " * ", kBaselineWord);
    case Kind::kDifference:
      break;
  }
  if (value == 0 && unit.empty()) {
    return std::string(kBaselineWord);
  }
  return concat(kBaselineWord, value < 0 ? " - " : " + ", with_unit(std::abs(value), unit));
}

Objective Objective::time() {
  Objective out;
  out.targets.emplace_back(kTimeNs);
  return out;
}

Result<Objective> Objective::parse(std::string_view text) { return ObjectiveParser(text).parse(); }

std::string Objective::text() const {
  std::string out =
      concat(is_pareto() ? kParetoWord : to_string(direction), " ", join(targets, " "));
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    out += i == 0 ? concat(" ", kSubjectWord, " ", kToWord, " ") : concat(" ", kAndWord, " ");
    out += bound_text(bounds[i]);
  }
  return out;
}

std::vector<std::string> Objective::metrics() const {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
  };
  for (const std::string& target : targets) {
    add(target);
  }
  for (const MetricBound& bound : bounds) {
    add(bound.metric);
  }
  return out;
}

Result<Judge> Judge::create(const Objective& objective, std::span<const MetricInfo> infos,
                            std::span<const MetricValue> baseline) {
  if (objective.targets.empty()) {
    return fail(ErrorCode::kInvalidArgument, "an objective names at least one metric to optimise");
  }
  Judge judge;
  judge.objective_ = objective;
  for (const std::string& name : objective.metrics()) {
    FORETUNE_TRY(MetricInfo info, find_info(name, infos));
    judge.metrics_.push_back(std::move(info));
  }
  for (std::size_t i = 0; i < objective.targets.size(); ++i) {
    const std::string& name = objective.targets[i];
    // No target may occur twice: otherwise target i would not be the metric at position i.
    if (is_repeated(objective.targets, i)) {
      return fail(ErrorCode::kInvalidArgument, "the objective names the target ", quoted(name, 40),
                  " twice");
    }
    const Direction direction = judge.metrics_[i].direction;
    if (!objective.is_pareto() && direction != objective.direction) {
      return fail(ErrorCode::kInvalidArgument, "the objective says '",
                  to_string(objective.direction), " ", name, "', and ", name, " is a metric to ",
                  to_string(direction));
    }
    judge.is_maximised_.push_back(direction == Direction::kMaximise);
  }
  for (const MetricBound& bound : objective.bounds) {
    const MetricInfo* const info =
        find_metric(std::span<const MetricInfo>(judge.metrics_), bound.metric);
    Limit limit{.metric = static_cast<std::size_t>(info - judge.metrics_.data()),
                .is_upper = bound.is_upper};
    FORETUNE_TRY(limit.limit, resolve(bound.bound, *info, baseline));
    limit.keep = limit.limit;
    if (bound.keep) {
      FORETUNE_TRY(limit.keep, resolve(*bound.keep, *info, baseline));
    }
    if (bound.is_upper ? limit.keep < limit.limit : limit.keep > limit.limit) {
      return fail(ErrorCode::kInvalidArgument, "the bound ", quoted(bound_text(bound), 200),
                  " keeps less than it allows");
    }
    judge.limits_.push_back(limit);
  }
  return judge;
}

template <class ValueOf>
Judgement Judge::judge_by(const ValueOf& value_of) const {
  Judgement out;
  for (std::size_t i = 0; i < is_maximised_.size(); ++i) {
    const double value = value_of(i);
    if (std::isnan(value)) {
      out.targets.clear();
      break;
    }
    out.targets.push_back(is_maximised_[i] ? 0 - value : value);
  }
  for (const Limit& limit : limits_) {
    const double value = value_of(limit.metric);
    const bool is_missing = std::isnan(value);
    out.violation += is_missing ? kMissing : excess(value, limit.limit, limit.is_upper);
    out.keep_violation += is_missing ? kMissing : excess(value, limit.keep, limit.is_upper);
  }
  return out;
}

Judgement Judge::judge(std::span<const MetricValue> values) const {
  return judge_by([&](std::size_t i) {
    const MetricValue* const found = find_metric(values, metrics_[i].name);
    return found == nullptr ? kNotANumber : found->value;
  });
}

Judgement Judge::judge(std::span<const double> values) const {
  FORETUNE_DCHECK(values.size() == metrics_.size());
  return judge_by([&](std::size_t i) { return values[i]; });
}

}  // namespace foretune
