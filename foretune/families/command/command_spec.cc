#include "foretune/families/command/command_spec.h"

#include <algorithm>
#include <cmath>

namespace foretune::command_internal {

bool CommandSpec::draws() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const CommandField& field) { return field.drawn.has_value(); });
}

bool CommandSpec::takes_threads() const {
  return run.words.mentions(Placeholder::kThreads) ||
         (build && build->words.mentions(Placeholder::kThreads));
}

std::string problem_name(std::string_view family) {
  std::string out(family);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

CommandProblem::CommandProblem(std::shared_ptr<const CommandSpec> spec)
    : spec_(std::move(spec)), name_(problem_name(spec_->name)) {
  for (const CommandField& field : spec_->fields) {
    labels_.emplace_back(field.labels.begin(), field.labels.end());
  }
  for (std::size_t i = 0; i < spec_->fields.size(); ++i) {
    const CommandField& field = spec_->fields[i];
    const bool is_number = field.labels.empty();
    fields_.push_back({.name = field.name,
                       .labels = labels_[i],
                       .labels_in_id = labels_[i].size(),
                       .minimum = field.minimum,
                       .maximum = field.maximum,
                       .default_value = field.default_value,
                       .groups = {.problem = true, .sizes = is_number},
                       .help = field.help});
    if (field.drawn) {
      const auto [low, high] = *field.drawn;
      const double log_low = std::log(static_cast<double>(low));
      const double log_high = std::log(static_cast<double>(high));
      // A log-normal draw with the mean and the deviation of the log-uniform one.
      drawn_.push_back({.field = i,
                        .log_mean = (log_low + log_high) / 2,
                        .log_deviation = (log_high - log_low) / std::sqrt(12.0),
                        .uniform_low = low,
                        .uniform_high = high,
                        .is_log_uniform = true});
    }
  }
  info_.schema = {.type = added_problem_type(name_),
                  .name = name_,
                  .version = spec_->version,
                  .fields = fields_};
  info_.summary = spec_->description;
  info_.drawn_sizes = drawn_;
}

SpaceDefinition space_definition(const CommandSpec& spec) {
  SpaceDefinition out;
  out.schema.name = spec.name;
  out.schema.version = spec.version;
  out.problem_type = added_problem_type(problem_name(spec.name));
  for (const CommandParameter& parameter : spec.parameters) {
    out.schema.parameters.push_back({.name = parameter.name, .labels = parameter.labels});
    out.domains.push_back(parameter.domain);
  }
  out.constraints = spec.constraints;
  out.canonical = spec.canonical;
  return out;
}

}  // namespace foretune::command_internal
