#include "foretune/workflow/options.h"

#include <algorithm>

#include "foretune/base/text.h"

namespace foretune::workflow {
namespace {

std::string default_of(const Option::Target& target) {
  struct Visitor {
    std::string operator()(const bool* /*value*/) const { return {}; }
    std::string operator()(const std::int64_t* value) const { return concat(*value); }
    std::string operator()(const double* value) const { return concat(*value); }
    std::string operator()(const std::string* value) const { return *value; }
    std::string operator()(const std::vector<std::string>* value) const {
      return join(*value, " ");
    }
    std::string operator()(const std::optional<std::int64_t>* value) const {
      return *value ? concat(**value) : std::string();
    }
    std::string operator()(const std::optional<double>* value) const {
      return *value ? concat(**value) : std::string();
    }
  };
  return std::visit(Visitor{}, target);
}

// Reads an integer; accepts "1e9" as well as "1000000000".
std::optional<std::int64_t> whole_number(const std::string& text) {
  if (const auto value = parse_int(text)) {
    return value;
  }
  const auto value = parse_double(text);
  // Checks the bounds first, because converting a value outside of them is undefined.
  if (value && *value > -9e15 && *value < 9e15 &&
      *value == static_cast<double>(static_cast<std::int64_t>(*value))) {
    return static_cast<std::int64_t>(*value);
  }
  return std::nullopt;
}

class Assign {
 public:
  Assign(const Option& option, const std::vector<std::string>& values)
      : option_(option), values_(values) {}

  Status operator()(bool* target) const {
    *target = true;
    return {};
  }
  Status operator()(std::int64_t* target) const {
    FORETUNE_TRY(*target, integer());
    return {};
  }
  Status operator()(std::optional<std::int64_t>* target) const {
    FORETUNE_TRY(*target, integer());
    return {};
  }
  Status operator()(double* target) const {
    FORETUNE_TRY(*target, number());
    return {};
  }
  Status operator()(std::optional<double>* target) const {
    FORETUNE_TRY(*target, number());
    return {};
  }
  Status operator()(std::string* target) const {
    *target = values_.back();
    return {};
  }
  Status operator()(std::vector<std::string>* target) const {
    *target = values_;
    return {};
  }

 private:
  Result<std::int64_t> integer() const {
    const auto value = whole_number(values_.back());
    if (!value) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, ": '", values_.back(),
                  "' is not a whole number");
    }
    return in_range(*value);
  }
  Result<double> number() const {
    const auto value = parse_double(values_.back());
    if (!value || !(*value >= -1e300 && *value <= 1e300)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, ": '", values_.back(),
                  "' is not a number");
    }
    return in_range(*value);
  }
  template <class Number>
  Result<Number> in_range(Number value) const {
    if (option_.minimum && value < static_cast<Number>(*option_.minimum)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, " is ", value,
                  "; it must be at least ", *option_.minimum);
    }
    if (option_.maximum && value > static_cast<Number>(*option_.maximum)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, " is ", value,
                  "; it must be at most ", *option_.maximum);
    }
    return value;
  }

  const Option& option_;
  const std::vector<std::string>& values_;
};

}  // namespace

Status assign_option(const Option& option, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (!option.choices.empty() &&
        std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
      return fail(ErrorCode::kInvalidArgument, "--", option.name, ": '", value, "' is not one of ",
                  join(option.choices, ", "));
    }
  }
  return std::visit(Assign(option, values), option.target);
}

void OptionList::section(std::string title, Condition condition) {
  section_ = std::move(title);
  if (!condition.phrase.empty()) {
    section_ += concat(", only ", condition.phrase);
  }
  condition_ = std::move(condition);
}

Option& OptionList::add(std::string name, Option::Target target, std::string value_name,
                        std::string help) {
  Option option{};
  option.name = std::move(name);
  option.value_name = std::move(value_name);
  option.help = std::move(help);
  option.target = target;
  option.default_text = default_of(target);
  option.section = section_;
  if (!condition_.phrase.empty()) {
    option.conditions.push_back(condition_);
  }
  options_.push_back(std::move(option));
  return options_.back();
}

tl::unexpected<Error> without_effect(const std::vector<std::string>& names,
                                     std::string_view phrase) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += concat(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  }
  return fail(ErrorCode::kInvalidArgument, list, names.size() == 1 ? " has" : " have",
              " an effect only ", phrase);
}

Status check_effects(const OptionList& list) {
  std::vector<std::string> names;
  std::string_view phrase;
  for (const Option& option : list.options()) {
    const auto broken = std::find_if(option.conditions.begin(), option.conditions.end(),
                                     [](const Condition& condition) { return !condition.holds(); });
    if (option.given && broken != option.conditions.end() &&
        (names.empty() || broken->phrase == phrase)) {
      phrase = broken->phrase;
      names.push_back(concat("--", option.name));
    }
  }
  return names.empty() ? Status() : without_effect(names, phrase);
}

std::vector<std::string> option_texts(const Option& option) {
  if (const auto* const list = std::get_if<std::vector<std::string>*>(&option.target)) {
    return **list;
  }
  if (const auto* const is_on = std::get_if<bool*>(&option.target)) {
    return {**is_on ? "true" : "false"};
  }
  return {default_of(option.target)};
}

Status set_option(OptionList& list, std::string_view name, const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (Option& option : list.options()) {
    if (option.name == name) {
      option.given = true;
      return values.empty() && !std::holds_alternative<std::vector<std::string>*>(option.target)
                 ? Status(fail(ErrorCode::kInvalidArgument, "--", name, " needs a value"))
                 : assign_option(option, values);
    }
    names.push_back(option.name);
  }
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kInvalidArgument, "there is no option '", name, "'",
              near.empty() ? std::string() : concat("; did you mean '", near, "'?"));
}

}  // namespace foretune::workflow
