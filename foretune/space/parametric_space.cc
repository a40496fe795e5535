#include "foretune/space/parametric_space.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxParameters = 64;
// Legal configs of one problem; a larger space has to be sampled, not listed.
constexpr std::size_t kMaxListed = std::size_t{1} << 24U;

Status check_definition(const SpaceDefinition& definition) {
  const std::size_t count = definition.schema.parameters.size();
  if (definition.schema.kind != SchemaKind::kParametric) {
    return fail(ErrorCode::kInvalidArgument, "a parametric space needs a parametric schema");
  }
  if (count == 0 || count > kMaxParameters) {
    return fail(ErrorCode::kInvalidArgument, "a space has 1 to ", kMaxParameters,
                " parameters, not ", count);
  }
  if (!definition.domains.empty() && definition.domains.size() != count) {
    return fail(ErrorCode::kInvalidArgument, "the space has ", count, " parameters but ",
                definition.domains.size(), " domains");
  }
  for (std::size_t i = 0; i < definition.domains.size(); ++i) {
    const std::vector<std::int32_t>& domain = definition.domains[i];
    if (domain.empty() || !std::is_sorted(domain.begin(), domain.end()) ||
        std::adjacent_find(domain.begin(), domain.end()) != domain.end()) {
      return fail(ErrorCode::kInvalidArgument, "the values of ",
                  definition.schema.parameters[i].name, " are not an ascending list");
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const CompiledSpace>> CompiledSpace::create(SpaceDefinition definition) {
  FORETUNE_TRY_STATUS(check_definition(definition));
  const ProblemSchema* problem = find_problem_schema(definition.problem_type);
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "the space is for a problem type unknown to this version");
  }
  std::shared_ptr<CompiledSpace> compiled(new CompiledSpace());
  for (std::size_t i = 0; i < definition.constraints.size(); ++i) {
    FORETUNE_TRY(
        Expression expression,
        Expression::parse(definition.constraints[i].expression, definition.schema, *problem));
    std::vector<Rule>& rules =
        expression.uses_problem() ? compiled->problem_rules_ : compiled->config_rules_;
    rules.push_back({std::move(expression), i});
  }
  for (const auto& [parameter, text] : definition.canonical) {
    const std::optional<std::size_t> index = definition.schema.find(parameter);
    if (!index) {
      return fail(ErrorCode::kInvalidArgument, "'", parameter, "' is not a parameter");
    }
    FORETUNE_TRY(Expression expression, Expression::parse(text, definition.schema, *problem));
    compiled->canonical_.push_back({*index, std::move(expression)});
  }
  compiled->schema_id_ = definition.schema.id();
  compiled->definition_ = std::move(definition);
  return compiled;
}

bool CompiledSpace::is_legal_config(std::span<const std::int32_t> words,
                                    const Hardware& hardware) const {
  return std::all_of(config_rules_.begin(), config_rules_.end(), [&](const Rule& rule) {
    return rule.expression.evaluate(words, {}, hardware) != 0;
  });
}

bool CompiledSpace::is_legal_for_problem(std::span<const std::int32_t> words,
                                         std::span<const std::int64_t> fields,
                                         const Hardware& hardware) const {
  return std::all_of(problem_rules_.begin(), problem_rules_.end(), [&](const Rule& rule) {
    return rule.expression.evaluate(words, fields, hardware) != 0;
  });
}

bool CompiledSpace::is_legal(std::span<const std::int32_t> words,
                             std::span<const std::int64_t> fields,
                             const Hardware& hardware) const {
  return is_legal_config(words, hardware) && is_legal_for_problem(words, fields, hardware);
}

Support CompiledSpace::why_not(const Config& config, const Problem& problem,
                               const Hardware& hardware) const {
  if (problem.type() != definition_.problem_type) {
    return Support::no("the space is not for ", problem.schema().name, " problems");
  }
  if (config.schema != schema_id_ || config.words.size() != definition_.schema.parameters.size()) {
    return Support::no("the config is not of schema ", definition_.schema.name, " v",
                       definition_.schema.version);
  }
  for (std::size_t i = 0; i < definition_.domains.size(); ++i) {
    const std::vector<std::int32_t>& domain = definition_.domains[i];
    if (!std::binary_search(domain.begin(), domain.end(), config.words[i])) {
      return Support::no(definition_.schema.parameters[i].name, "=", config.words[i],
                         " is not a value of the space");
    }
  }
  for (const std::vector<Rule>* rules : {&config_rules_, &problem_rules_}) {
    for (const Rule& rule : *rules) {
      if (rule.expression.evaluate(config.words.view(), problem.fields(), hardware) == 0) {
        const Constraint& constraint = definition_.constraints[rule.constraint];
        return Support::no(
            constraint.reason, " (", constraint.expression, " does not hold: ",
            rule.expression.explain(config.words.view(), problem.fields(), hardware), ")");
      }
    }
  }
  return Support::yes();
}

Config CompiledSpace::canonical(Config config, const Problem& problem,
                                const Hardware& hardware) const {
  for (const Canonical& rule : canonical_) {
    const std::int64_t value =
        rule.expression.evaluate(config.words.view(), problem.fields(), hardware);
    config.words[rule.parameter] = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX));
  }
  return config;
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
      : compiled_(compiled), problem_(problem), hardware_(hardware), out_(out) {}

  Status run() {
    words_.resize(compiled_.definition().domains.size());
    return descend(0, 0);
  }

 private:
  bool holds(std::size_t depth) const {
    return compiled_.holds_at(static_cast<int>(depth), words_, problem_.fields(), hardware_);
  }

  Status descend(std::size_t depth, std::uint64_t rank) {
    const std::vector<std::int32_t>& domain = compiled_.definition().domains[depth];
    for (std::size_t i = 0; i < domain.size(); ++i) {
      words_[depth] = domain[i];
      if (!holds(depth)) {
        continue;
      }
      const std::uint64_t next = rank * domain.size() + i;
      if (depth + 1 < words_.size()) {
        FORETUNE_TRY_STATUS(descend(depth + 1, next));
        continue;
      }
      if (!is_canonical()) {
        continue;
      }
      if (out_.size() == kMaxListed) {
        return fail(ErrorCode::kUnsupported, "the space has over ", kMaxListed,
                    " configs and cannot be listed");
      }
      out_.push_back(next);
    }
    return {};
  }

  bool is_canonical() const {
    const Config config{compiled_.schema_id(), Config::Words(std::span(words_))};
    return compiled_.canonical(config, problem_, hardware_).words == config.words;
  }

  const CompiledSpace& compiled_;
  const Problem& problem_;
  const Hardware& hardware_;
  std::vector<std::uint64_t>& out_;
  std::vector<std::int32_t> words_;
};

bool CompiledSpace::holds_at(int parameter, std::span<const std::int32_t> words,
                             std::span<const std::int64_t> fields,
                             const Hardware& hardware) const {
  for (const std::vector<Rule>* rules : {&config_rules_, &problem_rules_}) {
    for (const Rule& rule : *rules) {
      // Rules without a parameter are checked with the first.
      if (std::max(rule.expression.last_parameter(), 0) == parameter &&
          rule.expression.evaluate(words, fields, hardware) == 0) {
        return false;
      }
    }
  }
  return true;
}

Result<std::unique_ptr<ParametricSpace>> ParametricSpace::bind(
    std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
    const Hardware& hardware) {
  if (problem.type() != compiled->definition().problem_type) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.text(),
                "' is not a problem of this space");
  }
  if (compiled->definition().domains.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the space ", compiled->definition().schema.name,
                " has constraints but no values to list");
  }
  double size = 1;
  for (const std::vector<std::int32_t>& domain : compiled->definition().domains) {
    size *= static_cast<double>(domain.size());
  }
  if (size > 9e18) {
    return fail(ErrorCode::kUnsupported, "the space has too many combinations to be numbered");
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
  const auto& domains = compiled_->definition().domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const std::vector<std::int32_t>& domain = domains[i];
    const auto at = std::lower_bound(domain.begin(), domain.end(), config.words[i]);
    for (const int step : {-1, 1}) {
      const std::ptrdiff_t next = (at - domain.begin()) + step;
      if (next < 0 || next >= static_cast<std::ptrdiff_t>(domain.size())) {
        continue;
      }
      Config moved = config;
      moved.words[i] = domain[static_cast<std::size_t>(next)];
      moved = canonical(moved);
      if (moved != here && why_not(moved) && std::find(out.begin(), out.end(), moved) == out.end()) {
        out.push_back(moved);
      }
    }
  }
  return out;
}

Config ParametricSpace::canonical(const Config& config) const {
  return compiled_->canonical(config, problem_, hardware_);
}

}  // namespace foretune
