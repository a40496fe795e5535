#include "foretune/space/parametric_space.h"

#include <algorithm>
#include <array>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// Legal configs of one problem, and steps of the walk that finds them; a larger space has to be
// sampled, not listed, and a definition from a file must not keep us busy for ever.
constexpr std::size_t kMaxListed = std::size_t{1} << 22U;
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 25U;
// Rounds of the canonical rules; each rule that feeds an earlier one may cost one more.
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
  std::array<std::int32_t, kMaxParameters> before{};
  for (int round = 0; round < kMaxRounds; ++round) {
    std::copy(words.begin(), words.end(), before.begin());
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
  // Nearly every config that is asked about is its own representative.
  if (words.size() != definition_.schema.parameters.size() ||
      std::all_of(canonical_.begin(), canonical_.end(), [&](const Canonical& rule) {
        return canonical_word(rule, words, fields, hardware) == words[rule.parameter];
      })) {
    return false;
  }
  std::array<std::int32_t, kMaxParameters> buffer{};
  std::copy(words.begin(), words.end(), buffer.begin());
  const std::span<std::int32_t> result(buffer.data(), words.size());
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
  std::array<std::int32_t, kMaxParameters> buffer{};
  if (words.size() > buffer.size()) {
    return true;
  }
  std::copy(words.begin(), words.end(), buffer.begin());
  return !canonicalise({buffer.data(), words.size()}, fields, hardware);
}

ParametricSpace::ParametricSpace(std::shared_ptr<const CompiledSpace> compiled, Problem problem,
                                 Hardware hardware)
    : compiled_(std::move(compiled)), problem_(std::move(problem)), hardware_(hardware) {}

// Depth first over the parameters; a constraint is checked as soon as its last parameter is set, so
// that whole subtrees fall away early.
class SpaceWalk {
 public:
  SpaceWalk(const CompiledSpace& compiled, const Problem& problem, const Hardware& hardware,
            std::vector<std::uint64_t>& out)
      : compiled_(compiled),
        problem_(problem),
        hardware_(hardware),
        out_(out),
        config_{compiled.schema_id(), Config::Words(compiled.definition().domains.size())} {}

  Status run() { return descend(0, 0); }

 private:
  static bool hold(const std::vector<CompiledSpace::Rule>& rules,
                   const std::vector<std::size_t>& positions, std::span<const std::int32_t> words,
                   std::span<const std::int64_t> fields, const Hardware& hardware) {
    return std::all_of(positions.begin(), positions.end(), [&](std::size_t position) {
      return rules[position].expression.evaluate(words, fields, hardware) != 0;
    });
  }

  bool holds(std::size_t depth) const {
    const std::span<const std::int32_t> words = config_.words.view();
    return hold(compiled_.config_rules_, compiled_.config_rules_at_[depth], words,
                problem_.fields(), hardware_) &&
           hold(compiled_.problem_rules_, compiled_.problem_rules_at_[depth], words,
                problem_.fields(), hardware_);
  }

  Status descend(std::size_t depth, std::uint64_t rank) {
    const std::vector<std::int32_t>& domain = compiled_.definition().domains[depth];
    for (std::size_t i = 0; i < domain.size(); ++i) {
      if (++steps_ > kMaxSteps || out_.size() > kMaxListed) {
        return fail(ErrorCode::kUnsupported, "the space ", compiled_.definition().schema.name,
                    " is too large to be listed: ", out_.size(), " configs after ", steps_,
                    " steps");
      }
      config_.words[depth] = domain[i];
      if (!holds(depth)) {
        continue;
      }
      const std::uint64_t next = rank * domain.size() + i;
      if (depth + 1 < config_.words.size()) {
        FORETUNE_TRY_STATUS(descend(depth + 1, next));
      } else if (compiled_.is_canonical(config_.words.view(), problem_.fields(), hardware_)) {
        out_.push_back(next);
      }
    }
    return {};
  }

  const CompiledSpace& compiled_;
  const Problem& problem_;
  const Hardware& hardware_;
  std::vector<std::uint64_t>& out_;
  Config config_;
  std::uint64_t steps_ = 0;
};

Result<std::unique_ptr<ParametricSpace>> ParametricSpace::bind(
    std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
    const Hardware& hardware) {
  const SpaceDefinition& definition = compiled->definition();
  if (problem.type() != definition.problem_type) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.text(),
                "' is not a problem of this space");
  }
  if (definition.domains.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the space ", definition.schema.name,
                " has constraints but no values to list");
  }
  double size = 1;
  for (const std::vector<std::int32_t>& domain : definition.domains) {
    size *= static_cast<double>(domain.size());
  }
  if (size > 1e18) {
    return fail(ErrorCode::kUnsupported, "the space ", definition.schema.name,
                " is too large to be listed: ", size, " combinations");
  }
  std::unique_ptr<ParametricSpace> space(
      new ParametricSpace(std::move(compiled), problem, hardware));
  SpaceWalk walk(*space->compiled_, space->problem_, space->hardware_, space->legal_);
  FORETUNE_TRY_STATUS(walk.run());
  return space;
}

const ConfigSchema& ParametricSpace::schema() const { return compiled_->definition().schema; }

Support ParametricSpace::why_not(const Config& config) const {
  return compiled_->why_not(config, problem_, hardware_);
}

Config ParametricSpace::unrank(std::uint64_t index) const {
  FORETUNE_CHECK(index < legal_.size());
  std::uint64_t rank = legal_[index];
  const auto& domains = compiled_->definition().domains;
  Config config{compiled_->schema_id(), Config::Words(domains.size())};
  for (std::size_t i = domains.size(); i-- > 0;) {
    config.words[i] = domains[i][rank % domains[i].size()];
    rank /= domains[i].size();
  }
  return config;
}

Result<Config> ParametricSpace::sample(Rng& rng) const {
  if (legal_.empty()) {
    return fail(ErrorCode::kNotFound, "no config of ", schema().name, " is legal for ",
                problem_.text());
  }
  return unrank(rng.below(legal_.size()));
}

std::vector<Config> ParametricSpace::neighbours(const Config& config) const {
  std::vector<Config> out;
  if (!why_not(config)) {
    return out;
  }
  const Config here = canonical(config);
  // Whether the move leads somewhere.
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
