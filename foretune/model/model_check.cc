#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/features/expression_table.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/space/config_index.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, 5> kTargets{"relative-log", "log", "tflops", "latency",
                                                   "bandwidth"};

Result<std::shared_ptr<const CompiledSpace>> check_schemas(const Model& model) {
  if (model.family.empty()) {
    return fail(ErrorCode::kCorrupt, "the model names no family");
  }
  const ProblemSchema* problem = find_problem_schema(model.problem_type);
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "the model is for problem type ",
                static_cast<unsigned>(model.problem_type), ", which this version does not know");
  }
  if (problem->id() != model.problem_schema) {
    return fail(ErrorCode::kMismatch, "the model was trained on another version of the ",
                problem->name, " problem");
  }
  if (model.config_schema.kind == SchemaKind::kSequence) {
    // Legal sequences are those of a program's space, which no text describes.
    return model.space_text.empty()
               ? Result<std::shared_ptr<const CompiledSpace>>(nullptr)
               : fail(ErrorCode::kCorrupt, "the model has a table of values for configs of ",
                      model.config_schema.name, ", which are sequences");
  }
  FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model.space_text));
  if (definition.problem_type != model.problem_type ||
      definition.schema.id() != model.config_schema.id()) {
    return fail(ErrorCode::kMismatch, "the model's space is not one of ", problem->name,
                " problems and ", model.config_schema.name, " configs");
  }
  return CompiledSpace::create(std::move(definition));
}

Status check_hardware(const Hardware& hardware) {
  const auto same = Hardware::parse(hardware.text());
  if (!same || *same != hardware) {
    return fail(ErrorCode::kCorrupt, "the hardware of the model has values out of range");
  }
  return {};
}

Status check_numbers(const Model& model) {
  if (!(model.residual_std >= 0 && std::isfinite(model.residual_std))) {
    return fail(ErrorCode::kCorrupt, "the model's residual is not a number from 0");
  }
  if (std::find(kTargets.begin(), kTargets.end(), model.target) == kTargets.end()) {
    return fail(ErrorCode::kUnsupported, "the model predicts '",
                std::string_view(model.target).substr(0, 40),
                "', which this version does not know");
  }
  for (const auto& [low, high] : model.problem_range) {
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
      return fail(ErrorCode::kCorrupt, "a range of a problem feature is from ", low, " to ", high);
    }
  }
  FORETUNE_TRY_STATUS(check_hardware(model.fingerprint.hardware));
  for (const Fingerprint& machine : model.machines) {
    FORETUNE_TRY_STATUS(check_hardware(machine.hardware));
  }
  return {};
}

Status check_word(const Parameter& parameter, std::int32_t word, std::size_t candidate) {
  const bool known = parameter.labels.empty() ||
                     (word >= 0 && static_cast<std::size_t>(word) < parameter.labels.size());
  if (!known) {
    return fail(ErrorCode::kCorrupt, "candidate ", candidate, " has ", parameter.name, "=", word,
                ", which has no label");
  }
  return {};
}

Status check_pool(const Model& model) {
  const ConfigSchema& schema = model.config_schema;
  const std::uint64_t schema_id = schema.id();
  if (model.pool.empty()) {
    return fail(ErrorCode::kCorrupt, "the model has no candidates");
  }
  ConfigIndex seen(model.pool);
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    const Config& config = model.pool[i];
    if (config.schema != schema_id || (schema.kind == SchemaKind::kParametric &&
                                       config.words.size() != schema.parameters.size())) {
      return fail(ErrorCode::kMismatch, "candidate ", i, " is not a config of ", schema.name, " v",
                  schema.version);
    }
    for (std::size_t p = 0; p < config.words.size() && p < schema.parameters.size(); ++p) {
      FORETUNE_TRY_STATUS(check_word(schema.parameters[p], config.words[p], i));
    }
    if (!seen.insert(i)) {
      return fail(ErrorCode::kCorrupt, "candidate ", i, " repeats an earlier one");
    }
  }
  std::unordered_set<std::uint32_t> positions;
  for (const std::uint32_t position : model.portfolio) {
    if (position >= model.pool.size() || !positions.insert(position).second) {
      return fail(ErrorCode::kCorrupt, "the portfolio names candidate ", position,
                  position < model.pool.size() ? " twice" : ", which does not exist");
    }
  }
  return {};
}

Status check_features(const Model& model) {
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  if (const Support support = table->supports(model.problem_type, model.config_schema); !support) {
    return fail(ErrorCode::kMismatch, "the feature table ", model.feature_table,
                " does not describe the model's configs: ", support.reason());
  }
  const std::size_t problem_features = feature_count(*table, FeatureKind::kProblem);
  if (model.problem_range.size() != problem_features) {
    return fail(ErrorCode::kCorrupt, "the model has ranges for ", model.problem_range.size(),
                " problem features instead of ", problem_features);
  }
  return {};
}

}  // namespace

Result<const FeatureTable*> feature_table_of(const Model& model) {
  Result<const FeatureTable*> table = model.feature_text.empty()
                                          ? find_feature_table(model.feature_table)
                                          : kept_expression_table(model.feature_text);
  if (!table && table.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound, "the model needs the feature table ",
                quoted(model.feature_table, 60),
                ", which is not known here: load the plug-in that has it, or, in Python, call "
                "foretune.register_features() first");
  }
  if (table && ((*table)->name() != model.feature_table ||
                feature_table_id(**table) != model.feature_table_id)) {
    return fail(ErrorCode::kMismatch,
                "the model was trained on another version of the feature table ",
                model.feature_table);
  }
  return table;
}

Result<std::shared_ptr<const CompiledSpace>> check_header(const Model& model) {
  FORETUNE_TRY_STATUS(find_model_kind(model.kind).map([](const auto&) {}));
  FORETUNE_TRY(std::shared_ptr<const CompiledSpace> space, check_schemas(model));
  FORETUNE_TRY_STATUS(check_numbers(model));
  FORETUNE_TRY_STATUS(check_pool(model));
  const std::size_t fields = find_problem_schema(model.problem_type)->fields.size();
  if (model.domain) {
    FORETUNE_TRY_STATUS(model.domain->validate(fields));
  }
  if (model.distilled) {
    FORETUNE_TRY_STATUS(model.distilled->validate(fields, model.pool.size()));
  }
  FORETUNE_TRY_STATUS(check_features(model));
  return space;
}

Status check_body(const Model& model, bool was_just_read) {
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  return kind->check(model, *table, was_just_read);
}

Status check_model(const Model& model) {
  FORETUNE_TRY_STATUS(check_header(model).map([](const auto&) {}));
  return check_body(model);
}

}  // namespace foretune
