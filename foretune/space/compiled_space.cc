// Compiles a definition into a space, and refuses every wrong definition.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

template <class Values>
bool has_repeat(Values values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

Status check_parameter(const Parameter& parameter) {
  if (parameter.name == "hw" || parameter.name == "problem") {
    return fail(ErrorCode::kInvalidArgument, "a parameter cannot be called '", parameter.name,
                "', which has a meaning in expressions");
  }
  if (has_repeat(parameter.labels)) {
    return fail(ErrorCode::kInvalidArgument, "parameter ", parameter.name, " has a label twice");
  }
  return {};
}

Status check_domain(const Parameter& parameter, const std::vector<std::int32_t>& domain) {
  if (domain.empty() || !std::is_sorted(domain.begin(), domain.end()) || has_repeat(domain)) {
    return fail(ErrorCode::kInvalidArgument, "the values of ", parameter.name,
                " are not an ascending list");
  }
  if (!parameter.labels.empty() &&
      (domain.front() < 0 || static_cast<std::size_t>(domain.back()) >= parameter.labels.size())) {
    return fail(ErrorCode::kInvalidArgument, "parameter ", parameter.name, " has ",
                parameter.labels.size(), " labels, but values from ", domain.front(), " to ",
                domain.back());
  }
  return {};
}

Status check_definition(const SpaceDefinition& definition) {
  const std::vector<Parameter>& parameters = definition.schema.parameters;
  if (definition.schema.kind != SchemaKind::kParametric) {
    return fail(ErrorCode::kInvalidArgument, "a parametric space needs a parametric schema");
  }
  if (parameters.empty() || parameters.size() > CompiledSpace::kMaxParameters) {
    return fail(ErrorCode::kInvalidArgument, "a space has 1 to ", CompiledSpace::kMaxParameters,
                " parameters, not ", parameters.size());
  }
  if (!definition.domains.empty() && definition.domains.size() != parameters.size()) {
    return fail(ErrorCode::kInvalidArgument, "the space has ", parameters.size(),
                " parameters but ", definition.domains.size(), " domains");
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    FORETUNE_TRY_STATUS(check_parameter(parameters[i]));
    if (!definition.domains.empty()) {
      FORETUNE_TRY_STATUS(check_domain(parameters[i], definition.domains[i]));
    }
    names.push_back(parameters[i].name);
  }
  if (has_repeat(names)) {
    return fail(ErrorCode::kInvalidArgument, "two parameters of the space have the same name");
  }
  return {};
}

// Refuses definitions that cannot be written and read back, and so cannot be stored with data and
// models: names with blanks, reasons of several lines, definitions of absurd size.
Status check_text_form(const SpaceDefinition& definition) {
  const Result<SpaceDefinition> read_back = SpaceDefinition::parse(definition.text());
  if (!read_back) {
    return fail(ErrorCode::kInvalidArgument,
                "the space has no text form: ", read_back.error().message);
  }
  if (*read_back != definition) {
    return fail(ErrorCode::kInvalidArgument,
                "the space has no text form: a name or reason contains a line break or a mark");
  }
  return {};
}

using Positions = std::span<const std::size_t>;

// Returns an order of the parameters in which constraints can be checked early, so that a walk
// leaves out large parts of the space: next comes the parameter with the fewest values for each
// constraint that becomes known with it. Takes the given order without domains, and where there are
// so many parameters that no walk ends.
std::vector<std::size_t> walk_order(std::span<const std::vector<std::int32_t>> domains,
                                    std::size_t parameters, std::span<const Positions> rules) {
  std::vector<std::size_t> order(parameters);
  std::iota(order.begin(), order.end(), 0);
  if (domains.empty() || parameters > CompiledSpace::kUsualParameters) {
    return order;
  }
  std::vector<std::size_t> unknown;  // parameters of each rule that are not set yet
  for (const Positions rule : rules) {
    unknown.push_back(rule.size());
  }
  const auto completes = [&](std::size_t parameter, std::size_t rule) {
    return unknown[rule] == 1 &&
           std::binary_search(rules[rule].begin(), rules[rule].end(), parameter);
  };
  for (auto next = order.begin(); next != order.end(); ++next) {
    const auto values_per_rule = [&](std::size_t parameter) {
      std::size_t completed = 0;
      for (std::size_t rule = 0; rule < rules.size(); ++rule) {
        completed += completes(parameter, rule) ? 1U : 0U;
      }
      return static_cast<double>(domains[parameter].size()) / static_cast<double>(1 + completed);
    };
    const auto best = std::min_element(next, order.end(), [&](std::size_t a, std::size_t b) {
      return values_per_rule(a) < values_per_rule(b);
    });
    std::rotate(next, best, best + 1);
    for (std::size_t rule = 0; rule < rules.size(); ++rule) {
      unknown[rule] -= std::binary_search(rules[rule].begin(), rules[rule].end(), *next) ? 1U : 0U;
    }
  }
  return order;
}

// Groups rules by the step of the walk that sets the last of their parameters; rules without a
// parameter go with the first.
template <class Rule>
std::vector<std::vector<std::size_t>> by_last_step(const std::vector<Rule>& rules,
                                                   std::span<const std::size_t> order) {
  std::vector<std::size_t> step_of(order.size());
  for (std::size_t step = 0; step < order.size(); ++step) {
    step_of[order[step]] = step;
  }
  std::vector<std::vector<std::size_t>> out(order.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::size_t last = 0;
    for (const std::size_t parameter : rules[i].expression.parameters()) {
      last = std::max(last, step_of[parameter]);
    }
    out[last].push_back(i);
  }
  return out;
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
    auto expression =
        Expression::parse(definition.constraints[i].expression, definition.schema, *problem);
    if (!expression) {
      return fail_because(expression.error(), "constraint ", i + 1, " of ", definition.schema.name);
    }
    std::vector<Rule>& rules =
        expression->uses_problem() ? compiled->problem_rules_ : compiled->config_rules_;
    rules.push_back({*std::move(expression), i});
  }
  for (const auto& [parameter, text] : definition.canonical) {
    const std::optional<std::size_t> index = definition.schema.find(parameter);
    if (!index) {
      return fail(ErrorCode::kInvalidArgument, "canonical rule: ", quoted(parameter, 40),
                  " is not a parameter");
    }
    auto expression = Expression::parse(text, definition.schema, *problem);
    if (!expression) {
      return fail_because(expression.error(), "canonical rule for ", parameter);
    }
    compiled->canonical_.push_back({*index, *std::move(expression)});
  }
  FORETUNE_TRY_STATUS(check_text_form(definition));
  std::vector<Positions> rules;
  for (const auto* const list : {&compiled->config_rules_, &compiled->problem_rules_}) {
    for (const Rule& rule : *list) {
      rules.push_back(rule.expression.parameters());
    }
  }
  compiled->order_ = walk_order(definition.domains, definition.schema.parameters.size(), rules);
  compiled->config_rules_at_ = by_last_step(compiled->config_rules_, compiled->order_);
  compiled->problem_rules_at_ = by_last_step(compiled->problem_rules_, compiled->order_);
  compiled->schema_id_ = definition.schema.id();
  compiled->definition_ = std::move(definition);
  return compiled;
}

}  // namespace foretune
