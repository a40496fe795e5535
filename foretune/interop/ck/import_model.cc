#include "foretune/interop/ck/import_model.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/combine_forests.h"
#include "foretune/model/train/model_card.h"
#include "foretune/model/train/targets.h"
#include "foretune/model/train/training_set.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/known_spaces.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

using train_internal::begin_card;
using train_internal::check_role;
using train_internal::Learned;
using train_internal::make_model;
using train_internal::make_training_set;
using train_internal::model_without_data;
using train_internal::predictions_of;
using train_internal::scaled;
using train_internal::score_factor;
using train_internal::score_sign;
using train_internal::space_with_numbers;
using train_internal::TrainingSet;

namespace {

constexpr std::size_t kMaxRowsPredicted = 20000;

// "gfx950:sramecc+:xnack-" is a gfx950.
std::string_view without_flags(std::string_view isa) { return isa.substr(0, isa.find(':')); }

// The rules of `text`, or where there are none those known of the architecture, for the device.
Result<std::string> space_for(const ForeignModels& models, std::string_view text,
                              const Hardware& device) {
  std::string rules = text.empty()
                          ? known_rules_of(models.config_schema(), models.fingerprint().isa)
                          : std::string(text);
  if (rules.empty()) {
    return rules;
  }
  FORETUNE_TRY(const SpaceDefinition space, SpaceDefinition::parse(rules));
  return space_with_numbers(space, device).text();
}

Result<Learned> learned_of(const ModelDirectory::Target& target) {
  const auto known = parse_target(target.name);
  if (!known || *known == Target::kRelativeLog || *known == Target::kLog) {
    return fail(ErrorCode::kUnsupported, "nothing says how a prediction of ",
                foretune::quoted(target.name), " orders configs; tflops, latency and bandwidth do");
  }
  Learned out;
  out.target = *known;
  out.log1p = target.log1p;
  out.larger_is_better = *known != Target::kLatency;
  return out;
}

Status check_data(const ForeignModels& models, const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  FORETUNE_TRY_STATUS(check_role(dataset));
  if (header.problem_type != models.problem_type()) {
    return fail(ErrorCode::kMismatch, "the models are for ",
                find_problem_schema(models.problem_type())->name, " problems, the data set has ",
                find_problem_schema(header.problem_type)->name, " problems");
  }
  if (header.config_schema.id() != models.config_schema().id()) {
    return fail(ErrorCode::kMismatch, "the models describe configs of ",
                models.config_schema().name, ", the data set has configs of ",
                header.config_schema.name);
  }
  const std::string_view isa = without_flags(header.fingerprint.isa);
  if (!isa.empty() && isa != without_flags(models.fingerprint().isa)) {
    return fail(ErrorCode::kMismatch, "the models are for ", models.directory().arch,
                ", the data set was measured on ", isa);
  }
  const auto dtype = parse_ck_dtype(models.directory().dtype);
  const auto has_dtype = [&](const Problem& problem) {
    const auto field = problem.schema().find("dtype");
    return field && problem.field(*field) == static_cast<std::int64_t>(*dtype);
  };
  if (dtype && std::none_of(dataset.problems().begin(), dataset.problems().end(), has_dtype)) {
    return fail(ErrorCode::kMismatch, "the models are for ", models.directory().dtype,
                ", of which the data set has no problem");
  }
  return {};
}

std::string card_of(const ForeignModels& models, const Learned& learned, const Model& model,
                    double factor, const Dataset* dataset) {
  const ModelDirectory& directory = models.directory();
  nlohmann::ordered_json card =
      begin_card(model.kind, model.family, model.fingerprint, model.feature_table);
  card["target"] = model.target;
  card["objective"] = to_string(TrainObjective::kRegression);
  card["log1p"] = learned.log1p;
  card["score_factor"] = factor;
  card["imported"] = {{"op_type", directory.op_type},
                      {"dtype", directory.dtype},
                      {"arch", directory.arch},
                      {"features", directory.feature_names.size()},
                      {"lists_log_targets", directory.lists_log_targets}};
  if (dataset != nullptr) {
    card["pool_data"] = dataset->fingerprint().hex();
  }
  card["trees"] = forests_of(model).front().trees.size();
  card["splits"] = forests_of(model).front().feature.size();
  return card.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Adds the forest and what is said of it. `factor` makes its sums scores.
void finish(const ForeignModels& models, const Learned& learned, Forest forest, double factor,
            const Dataset* dataset, Model& model) {
  model.target = to_string(learned.target);
  std::vector<Forest> forests;
  forests.push_back(scaled(std::move(forest), factor));
  set_forests(model, std::move(forests));
  model.card_json = card_of(models, learned, model, factor, dataset);
}

// The forest over the table's columns, with the mean of a random forest as its sum.
Forest summed_forest(const ForeignModels& models, const ModelDirectory::Target& target) {
  Forest forest = models.forest_of(target);
  const bool divides = target.model.average && !forest.trees.empty();
  const double share = divides ? 1 / static_cast<double>(forest.trees.size()) : 1;
  return share == 1 ? forest : scaled(std::move(forest), share);
}

}  // namespace

Result<Model> import_model(const ForeignModels& models, const Dataset& dataset,
                           const ImportOptions& options) {
  FORETUNE_TRY(const ModelDirectory::Target* const target, models.find_target(options.target));
  FORETUNE_TRY(const Learned learned, learned_of(*target));
  FORETUNE_TRY_STATUS(check_data(models, dataset));
  Dataset seen = dataset;
  DatasetHeader& header = seen.mutable_header();
  FORETUNE_TRY(header.space_text,
               space_for(models, header.space_text, header.fingerprint.hardware));
  header.fingerprint = models.fingerprint();
  FORETUNE_TRY(const TrainingSet set, make_training_set(seen, models.table(), 0));
  TrainOptions training;
  training.portfolio_size = options.portfolio_size;
  FORETUNE_TRY(Model model, make_model(seen, models.table(), set, training));
  // The data did not train the trees.
  model.data_fingerprint = {};
  Forest forest = summed_forest(models, *target);
  const std::size_t step = (set.size() + kMaxRowsPredicted - 1) / kMaxRowsPredicted;
  const double factor =
      score_factor(set, learned, TrainObjective::kRegression, predictions_of(forest, set, step));
  finish(models, learned, std::move(forest), factor, &dataset, model);
  FORETUNE_TRY_STATUS(check_model(model));
  return model;
}

Result<Model> import_model(const ForeignModels& models, std::span<const std::string> kernels,
                           const std::string& family, const ImportOptions& options) {
  FORETUNE_TRY(const ModelDirectory::Target* const target, models.find_target(options.target));
  FORETUNE_TRY(const Learned learned, learned_of(*target));
  if (kernels.empty()) {
    return fail(ErrorCode::kInvalidArgument, "without a kernel there is nothing to choose from");
  }
  const auto device = known_device(models.directory().arch);
  DatasetHeader header;
  header.family = family;
  header.problem_type = models.problem_type();
  header.config_schema = models.config_schema();
  header.fingerprint = models.fingerprint();
  FORETUNE_TRY(header.space_text, space_for(models, "", device ? device->hardware : Hardware()));
  Model model = model_without_data(header, models.table());
  std::unordered_set<Config> seen;
  for (const std::string& kernel : kernels) {
    FORETUNE_TRY(Config config, models.parse_kernel(kernel));
    if (seen.insert(config).second) {
      model.pool.push_back(std::move(config));
    }
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  model.problem_range.assign(feature_count(models.table(), FeatureKind::kProblem), {-kMost, kMost});
  finish(models, learned, summed_forest(models, *target),
         score_sign(learned, TrainObjective::kRegression), nullptr, model);
  FORETUNE_TRY_STATUS(check_model(model));
  return model;
}

}  // namespace foretune
