#include "foretune/space/folded_rules.h"

#include <algorithm>

namespace foretune {

FoldedRules::FoldedRules(std::shared_ptr<const CompiledSpace> space, const Hardware& hardware,
                         std::vector<std::optional<std::int64_t>> fields)
    : space_(std::move(space)), hardware_(hardware), fields_(std::move(fields)) {}

FoldedRules::Filled FoldedRules::fill_in(std::size_t rule, std::span<const std::int32_t> words) {
  const Expression& expression = space_->problem_rules_[rule].expression;
  std::vector<std::int32_t> values;
  for (const std::size_t parameter : expression.parameters()) {
    values.push_back(words[parameter]);
  }
  const auto [place, is_new] = filled_.try_emplace({rule, std::move(values)});
  Filled& filled = place->second;
  if (!is_new) {
    return filled;
  }
  Expression rest = expression.fold({.words = words, .fields = fields_, .hardware = hardware_});
  if (const auto constant = rest.constant()) {
    filled.never = *constant == 0;
    return filled;
  }
  const auto same = std::find_if(rules_.begin(), rules_.end(),
                                 [&](const Expression& other) { return other.has_code_of(rest); });
  filled.rule = static_cast<std::uint32_t>(same - rules_.begin());
  if (same == rules_.end()) {
    rules_.push_back(std::move(rest));
  }
  return filled;
}

void FoldedRules::add(std::span<const std::int32_t> words) {
  Checks checks{.first = checks_.size()};
  if (words.size() != space_->definition().schema.parameters.size()) {
    checks.never = true;
    configs_.push_back(checks);
    return;
  }
  for (std::size_t rule = 0; rule < space_->problem_rules_.size() && !checks.never; ++rule) {
    const Filled filled = fill_in(rule, words);
    checks.never = filled.never;
    const auto begin = checks_.begin() + static_cast<std::ptrdiff_t>(checks.first);
    if (filled.rule && std::find(begin, checks_.end(), *filled.rule) == checks_.end()) {
      checks_.push_back(*filled.rule);
    }
  }
  if (checks.never) {
    checks_.resize(checks.first);
  }
  checks.count = checks_.size() - checks.first;
  configs_.push_back(checks);
}

bool FoldedRules::is_legal(std::size_t config, std::span<const std::int64_t> fields,
                           Outcomes& outcomes) const noexcept {
  constexpr std::uint8_t kHolds = 1;
  constexpr std::uint8_t kFails = 2;
  const Checks& checks = configs_[config];
  if (checks.never) {
    return false;
  }
  for (const std::uint32_t rule : std::span(checks_).subspan(checks.first, checks.count)) {
    std::uint8_t outcome = rule < Outcomes::kKept ? outcomes.kept_[rule] : 0;
    if (outcome == 0) {
      outcome = rules_[rule].evaluate({}, fields, hardware_) != 0 ? kHolds : kFails;
      if (rule < Outcomes::kKept) {
        outcomes.kept_[rule] = outcome;
      }
    }
    if (outcome == kFails) {
      return false;
    }
  }
  return true;
}

}  // namespace foretune
