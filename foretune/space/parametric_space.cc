#include "foretune/space/parametric_space.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// The most legal configs of one problem, and the most steps of the walk that finds them. A larger
// space has to be sampled, not listed, and a definition from a file must not keep us busy for ever.
constexpr std::size_t kMaxListed = std::size_t{1} << 22U;
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 25U;
// Beyond this number, a mixed-radix number does not fit into a word.
constexpr double kMaxCombinations = 1e18;
// Combinations drawn blindly before a walk looks for a legal one, and the steps of that walk. It
// starts again with four times as many, because a bad first choice may use all of them.
constexpr int kBlindDraws = 200;
// With so many legal ones among the blind draws, the estimated size is not ten times too large by
// chance.
constexpr int kSureHits = 16;
constexpr double kSureMargin = 10;
constexpr std::uint64_t kFirstWalk = std::uint64_t{1} << 10U;
constexpr std::uint64_t kLastWalk = std::uint64_t{1} << 22U;
// The most rounds of the canonical rules; each rule that changes the input of an earlier one may
// need one more round.
constexpr int kMaxRounds = 16;

template <class Rules>
bool all_hold(const Rules& rules, std::span<const std::int32_t> words,
              std::span<const std::int64_t> fields, const Hardware& hardware) {
  for (const auto& rule : rules) {
    if (rule.expression.evaluate(words, fields, hardware) == 0) {
      return false;
    }
  }
  return true;
}

std::string value_text(const Parameter& parameter, std::int32_t word) {
  return word >= 0 && static_cast<std::size_t>(word) < parameter.labels.size()
             ? parameter.labels[static_cast<std::size_t>(word)]
             : concat(word);
}

std::string domain_text(const Parameter& parameter, const std::vector<std::int32_t>& domain) {
  constexpr std::size_t kShown = 16;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, domain.size()); ++i) {
    out += concat(i == 0 ? "" : " ", value_text(parameter, domain[i]));
  }
  return domain.size() > kShown ? concat(out, " ... ", value_text(parameter, domain.back())) : out;
}

}  // namespace

bool CompiledSpace::is_legal_config(std::span<const std::int32_t> words,
                                    const Hardware& hardware) const {
  return words.size() == definition_.schema.parameters.size() &&
         all_hold(config_rules_, words, {}, hardware);
}

bool CompiledSpace::is_legal_for_problem(std::span<const std::int32_t> words,
                                         std::span<const std::int64_t> fields,
                                         const Hardware& hardware) const {
  return words.size() == definition_.schema.parameters.size() &&
         all_hold(problem_rules_, words, fields, hardware);
}

bool CompiledSpace::is_legal(std::span<const std::int32_t> words,
                             std::span<const std::int64_t> fields, const Hardware& hardware) const {
  return is_legal_config(words, hardware) && is_legal_for_problem(words, fields, hardware);
}

Support CompiledSpace::why_not(const Config& config, const Problem& problem,
                               const Hardware& hardware) const {
  if (problem.type() != definition_.problem_type) {
    return Support::no("the space is not for ", problem.schema().name, " problems");
  }
  const std::vector<Parameter>& parameters = definition_.schema.parameters;
  if (config.schema != schema_id_ || config.words.size() != parameters.size()) {
    return Support::no("the config is not of schema ", definition_.schema.name, " v",
                       definition_.schema.version);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int32_t word = config.words[i];
    const bool labelled = !parameters[i].labels.empty();
    if (labelled && (word < 0 || static_cast<std::size_t>(word) >= parameters[i].labels.size())) {
      return Support::no(parameters[i].name, " has no label number ", word);
    }
    if (definition_.domains.empty()) {
      continue;
    }
    const std::vector<std::int32_t>& domain = definition_.domains[i];
    if (!std::binary_search(domain.begin(), domain.end(), word)) {
      return Support::no(parameters[i].name, "=", value_text(parameters[i], word),
                         " is not one of its values: ", domain_text(parameters[i], domain));
    }
  }
  if (const Rule* rule = broken_rule(config.words.view(), problem.fields(), hardware)) {
    const Constraint& constraint = definition_.constraints[rule->constraint];
    const std::string values =
        rule->expression.explain(config.words.view(), problem.fields(), hardware);
    return Support::no(constraint.reason, constraint.reason.empty() ? "(" : " (",
                       constraint.expression, " does not hold", values.empty() ? "" : " with ",
                       values, ")");
  }
  return Support::yes();
}

const CompiledSpace::Rule* CompiledSpace::broken_rule(std::span<const std::int32_t> words,
                                                      std::span<const std::int64_t> fields,
                                                      const Hardware& hardware) const {
  for (const std::vector<Rule>* rules : {&config_rules_, &problem_rules_}) {
    for (const Rule& rule : *rules) {
      if (rule.expression.evaluate(words, fields, hardware) == 0) {
        return &rule;
      }
    }
  }
  return nullptr;
}

std::optional<std::size_t> CompiledSpace::broken_constraint(std::span<const std::int32_t> words,
                                                            std::span<const std::int64_t> fields,
                                                            const Hardware& hardware) const {
  FORETUNE_CHECK(words.size() == definition_.schema.parameters.size());
  const Rule* const rule = broken_rule(words, fields, hardware);
  return rule == nullptr ? std::nullopt : std::optional(rule->constraint);
}

std::int32_t CompiledSpace::canonical_word(const Canonical& rule,
                                           std::span<const std::int32_t> words,
                                           std::span<const std::int64_t> fields,
                                           const Hardware& hardware) const {
  const std::int64_t wanted = rule.expression.evaluate(words, fields, hardware);
  const auto word =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, INT32_MIN, INT32_MAX));
  if (definition_.domains.empty()) {
    return word;
  }
  const std::vector<std::int32_t>& domain = definition_.domains[rule.parameter];
  const auto next = std::lower_bound(domain.begin(), domain.end(), word);
  return next == domain.end() ? domain.back() : *next;
}

bool CompiledSpace::apply_canonical(std::span<std::int32_t> words,
                                    std::span<const std::int64_t> fields,
                                    const Hardware& hardware) const {
  for (int round = 0; round < kMaxRounds; ++round) {
    const WordsBuffer before(std::span<const std::int32_t>{words});
    for (const Canonical& rule : canonical_) {
      words[rule.parameter] = canonical_word(rule, words, fields, hardware);
    }
    if (std::equal(words.begin(), words.end(), before.begin())) {
      return true;
    }
  }
  return false;
}

bool CompiledSpace::canonicalise(std::span<std::int32_t> words,
                                 std::span<const std::int64_t> fields,
                                 const Hardware& hardware) const {
  // Nearly every config represents itself.
  if (words.size() != definition_.schema.parameters.size() ||
      std::all_of(canonical_.begin(), canonical_.end(), [&](const Canonical& rule) {
        return canonical_word(rule, words, fields, hardware) == words[rule.parameter];
      })) {
    return false;
  }
  WordsBuffer buffer(std::span<const std::int32_t>{words});
  const std::span<std::int32_t> result = buffer.view();
  if (!apply_canonical(result, fields, hardware) ||
      std::equal(words.begin(), words.end(), result.begin()) ||
      (!is_legal(result, fields, hardware) && is_legal(words, fields, hardware))) {
    return false;
  }
  std::copy(result.begin(), result.end(), words.begin());
  return true;
}

Config CompiledSpace::canonical(Config config, const Problem& problem,
                                const Hardware& hardware) const {
  canonicalise({config.words.begin(), config.words.size()}, problem.fields(), hardware);
  return config;
}

bool CompiledSpace::is_canonical(std::span<const std::int32_t> words,
                                 std::span<const std::int64_t> fields,
                                 const Hardware& hardware) const {
  WordsBuffer buffer(words);
  return !canonicalise(buffer.view(), fields, hardware);
}

ParametricSpace::ParametricSpace(std::shared_ptr<const CompiledSpace> compiled, Problem problem,
                                 Hardware hardware)
    : compiled_(std::move(compiled)), problem_(std::move(problem)), hardware_(hardware) {}

// Walks depth first over the parameters, in the order of the compiled space. It checks a constraint
// as soon as its last parameter is set, which prunes whole subtrees early.
class SpaceWalk {
 public:
  SpaceWalk(const CompiledSpace& compiled, const Problem& problem, const Hardware& hardware)
      : compiled_(compiled),
        domains_(compiled.definition().domains),
        problem_(problem),
        hardware_(hardware),
        config_{compiled.schema_id(), Config::Words(domains_.size())},
        weights_(domains_.size(), 1) {
    for (std::size_t i = domains_.size(); i-- > 1;) {
      weights_[i - 1] = weights_[i] * domains_[i].size();  // used where the product fits
    }
  }

  // Returns the mixed-radix numbers of the legal canonical configs, ascending; nothing when there
  // are too many.
  std::optional<std::vector<std::uint64_t>> list() {
    double combinations = 1;
    for (const std::vector<std::int32_t>& domain : domains_) {
      combinations *= static_cast<double>(domain.size());
    }
    std::vector<std::uint64_t> found;
    steps_left_ = kMaxSteps;
    if (combinations > kMaxCombinations || is_surely_too_large(combinations) ||
        !list_from(0, 0, found)) {
      return std::nullopt;
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // Returns a random legal canonical config; nothing when none was found.
  std::optional<Config> draw(Rng& rng) {
    for (int i = 0; i < kBlindDraws; ++i) {
      if (draw_blindly(rng)) {
        return config_;
      }
    }
    for (std::uint64_t steps = kFirstWalk; steps <= kLastWalk; steps *= 4) {
      steps_left_ = steps;
      if (walk_at_random(0, rng)) {
        return compiled_.canonical(config_, problem_, hardware_);
      }
      if (steps_left_ > 0) {
        break;  // the walk has seen all configs
      }
    }
    return std::nullopt;
  }

 private:
  static bool hold(const std::vector<CompiledSpace::Rule>& rules,
                   const std::vector<std::size_t>& positions, std::span<const std::int32_t> words,
                   std::span<const std::int64_t> fields, const Hardware& hardware) {
    return std::all_of(positions.begin(), positions.end(), [&](std::size_t position) {
      return rules[position].expression.evaluate(words, fields, hardware) != 0;
    });
  }

  [[nodiscard]] std::size_t parameter_at(std::size_t depth) const {
    return compiled_.order_[depth];
  }
  [[nodiscard]] const std::vector<std::int32_t>& domain_at(std::size_t depth) const {
    return domains_[parameter_at(depth)];
  }

  // Sets a parameter; returns true when the constraints hold whose last parameter it is.
  bool set(std::size_t depth, std::int32_t value) {
    config_.words[parameter_at(depth)] = value;
    const std::span<const std::int32_t> words = config_.words.view();
    return hold(compiled_.config_rules_, compiled_.config_rules_at_[depth], words,
                problem_.fields(), hardware_) &&
           hold(compiled_.problem_rules_, compiled_.problem_rules_at_[depth], words,
                problem_.fields(), hardware_);
  }
  [[nodiscard]] bool is_canonical() const {
    return compiled_.is_canonical(config_.words.view(), problem_.fields(), hardware_);
  }

  // Estimates the size of the space from a few draws. This avoids a walk that would take most of a
  // second and then give up.
  bool is_surely_too_large(double combinations) {
    Rng rng(0);
    int hits = 0;
    for (int i = 0; i < kBlindDraws; ++i) {
      hits += draw_blindly(rng) ? 1 : 0;
    }
    return hits >= kSureHits &&
           combinations * hits / kBlindDraws > kSureMargin * static_cast<double>(kMaxListed);
  }

  // Returns false when the walk gives up.
  bool list_from(std::size_t depth, std::uint64_t rank, std::vector<std::uint64_t>& found) {
    const std::vector<std::int32_t>& domain = domain_at(depth);
    for (std::size_t i = 0; i < domain.size(); ++i) {
      if (steps_left_-- == 0 || found.size() > kMaxListed) {
        return false;
      }
      if (!set(depth, domain[i])) {
        continue;
      }
      const std::uint64_t next = rank + i * weights_[parameter_at(depth)];
      if (depth + 1 < domains_.size()) {
        if (!list_from(depth + 1, next, found)) {
          return false;
        }
      } else if (is_canonical()) {
        found.push_back(next);
      }
    }
    return true;
  }

  // Draws every value independently of the others: all combinations are equally likely.
  bool draw_blindly(Rng& rng) {
    for (std::size_t depth = 0; depth < domains_.size(); ++depth) {
      const std::vector<std::int32_t>& domain = domain_at(depth);
      if (!set(depth, domain[rng.below(domain.size())])) {
        return false;
      }
    }
    return is_canonical();
  }

  // Finds the first legal config on a walk through values in random order.
  bool walk_at_random(std::size_t depth, Rng& rng) {
    if (depth == domains_.size()) {
      return true;
    }
    std::vector<std::int32_t> values = domain_at(depth);
    rng.shuffle(std::span(values));
    for (const std::int32_t value : values) {
      if (steps_left_ == 0) {
        return false;
      }
      --steps_left_;
      if (set(depth, value) && walk_at_random(depth + 1, rng)) {
        return true;
      }
    }
    return false;
  }

  const CompiledSpace& compiled_;
  const std::vector<std::vector<std::int32_t>>& domains_;
  const Problem& problem_;
  const Hardware& hardware_;
  Config config_;
  std::vector<std::uint64_t> weights_;  // of each parameter in the mixed-radix number
  std::uint64_t steps_left_ = 0;
};

Result<std::unique_ptr<ParametricSpace>> ParametricSpace::bind(
    std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
    const Hardware& hardware) {
  const SpaceDefinition& definition = compiled->definition();
  if (problem.type() != definition.problem_type) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.shown_text(),
                "' is not a problem of this space");
  }
  if (definition.domains.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the space ", definition.schema.name,
                " has constraints but no values to choose from");
  }
  std::unique_ptr<ParametricSpace> space(
      new ParametricSpace(std::move(compiled), problem, hardware));
  space->legal_ = SpaceWalk(*space->compiled_, space->problem_, space->hardware_).list();
  return space;
}

const ConfigSchema& ParametricSpace::schema() const { return compiled_->definition().schema; }

Support ParametricSpace::why_not(const Config& config) const {
  return compiled_->why_not(config, problem_, hardware_);
}

std::uint64_t ParametricSpace::count() const {
  FORETUNE_CHECK(legal_.has_value());
  return legal_->size();
}

Config ParametricSpace::unrank(std::uint64_t index) const {
  FORETUNE_CHECK(index < count());
  std::uint64_t rank = (*legal_)[index];
  const auto& domains = compiled_->definition().domains;
  Config config{compiled_->schema_id(), Config::Words(domains.size())};
  for (std::size_t i = domains.size(); i-- > 0;) {
    config.words[i] = domains[i][rank % domains[i].size()];
    rank /= domains[i].size();
  }
  return config;
}

Result<Config> ParametricSpace::sample(Rng& rng) const {
  if (!legal_) {
    if (std::optional<Config> drawn = SpaceWalk(*compiled_, problem_, hardware_).draw(rng)) {
      return *std::move(drawn);
    }
  } else if (!legal_->empty()) {
    return unrank(rng.below(legal_->size()));
  }
  return fail(ErrorCode::kNotFound, "no config of ", schema().name,
              legal_ ? " is legal for " : ", a space too large to be listed, was found legal for ",
              problem_.shown_text());
}

std::vector<Config> ParametricSpace::neighbours(const Config& config) const {
  std::vector<Config> out;
  if (!why_not(config)) {
    return out;
  }
  const Config here = canonical(config);
  // Returns true when the change gives a legal config that means something else, and adds it to
  // `out` unless it is there.
  const auto reaches = [&](std::size_t parameter, std::int32_t word) {
    Config moved = here;
    moved.words[parameter] = word;
    moved = canonical(moved);
    if (moved == here || !why_not(moved)) {
      return false;
    }
    if (std::find(out.begin(), out.end(), moved) == out.end()) {
      out.push_back(std::move(moved));
    }
    return true;
  };
  const SpaceDefinition& definition = compiled_->definition();
  for (std::size_t i = 0; i < definition.domains.size(); ++i) {
    const std::vector<std::int32_t>& domain = definition.domains[i];
    const bool ordered = definition.schema.parameters[i].labels.empty();
    const auto at = static_cast<std::size_t>(
        std::lower_bound(domain.begin(), domain.end(), here.words[i]) - domain.begin());
    for (std::size_t down = at; down-- > 0;) {
      if (reaches(i, domain[down]) && ordered) {
        break;
      }
    }
    for (std::size_t up = at + 1; up < domain.size(); ++up) {
      if (reaches(i, domain[up]) && ordered) {
        break;
      }
    }
  }
  return out;
}

Config ParametricSpace::canonical(const Config& config) const {
  return compiled_->canonical(config, problem_, hardware_);
}

}  // namespace foretune
