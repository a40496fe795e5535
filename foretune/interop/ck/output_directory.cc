#include "foretune/interop/ck/output_directory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <system_error>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/version.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// Returns the value that all problems have in a field, "mixed" when they differ, nothing without
// the field.
std::string common_text(const Dataset& dataset, std::string_view field) {
  std::string out;
  for (const Problem& problem : dataset.problems()) {
    const auto index = problem.schema().find(field);
    const std::string text = index ? problem.field_text(*index) : std::string();
    if (!out.empty() && out != text) {
      return "mixed";
    }
    out = text;
  }
  return out;
}

Json fold_json(const FoldFigures& fold) {
  Json out;
  for (const auto& [name, value] : fold.metrics.named()) {
    out[name] = value;
  }
  out["train_size"] = fold.train_rows;
  out["train_groups"] = fold.train_groups;
  out["val_size"] = fold.metrics.rows;
  out["val_problems"] = fold.metrics.problems;
  out["val_groups"] = fold.held_out_groups;
  Json ours;
  for (const auto& [name, value] : fold.ours) {
    ours[name] = value;
  }
  out["ours"] = std::move(ours);
  return out;
}

Json cv_metrics_json(const TrainedTarget& target) {
  const TrainResult& result = *target.result;
  Json out;
  out["target"] = to_string(result.target);
  out["log1p"] = result.log1p;
  out["objective"] = to_string(settled_objective(*target.options));
  Json folds = Json::array();
  std::vector<CvMetrics> metrics;
  for (const FoldFigures& fold : result.folds) {
    Json entry;
    entry["fold"] = folds.size();
    entry.update(fold_json(fold));
    folds.push_back(std::move(entry));
    metrics.push_back(fold.metrics);
  }
  out["folds"] = std::move(folds);
  Json mean = Json::object();
  for (const auto& [name, value] : mean_of(metrics).named()) {
    mean[name] = value;
  }
  out["mean"] = metrics.empty() ? Json::object() : std::move(mean);
  Json pooled = Json::object();
  for (const auto& [name, value] : result.metrics) {
    pooled[name] = value;
  }
  out["pooled"] = std::move(pooled);
  return out;
}

Json importances_json(const TrainResult& result) {
  Json out = Json::object();
  for (const FeatureImportance& importance : result.importances) {
    out[importance.feature] = {{"gain", importance.gain}, {"splits", importance.splits}};
  }
  return out;
}

Json manifest_json(const Dataset& dataset, std::span<const TrainedTarget> targets) {
  Json out;
  out["foretune"] = kVersion;
  out["seed"] = targets.front().options->seed;
  out["data"] = {{"fingerprint", dataset.fingerprint().hex()},
                 {"problems", dataset.problems().size()},
                 {"measurements", dataset.size()}};
  Json models;
  for (const TrainedTarget& target : targets) {
    models[std::string(target.name)] = Json::parse(target.result->model.card_json, nullptr, false);
  }
  out["models"] = std::move(models);
  return out;
}

// Describes the problems as Composable Kernel's own directories do, where the configs are its
// kernels.
void describe_problems(const Dataset& dataset, ModelDirectory& out) {
  const DatasetHeader& header = dataset.header();
  const std::string_view operation = ck_operation(header.config_schema);
  out.op_type = operation.empty() ? find_problem_schema(header.problem_type)->name : operation;
  out.dtype = common_text(dataset, "dtype");
  const auto dtype = parse_data_type(out.dtype);
  if (!operation.empty() && dtype && !ck_dtype_name(*dtype).empty()) {
    out.dtype = ck_dtype_name(*dtype);
  }
  if (header.problem_type == kConvProblem) {
    const std::string text = common_text(dataset, "op");
    const auto direction = parse_conv_operation(text);
    out.direction = direction ? to_string(static_cast<CkConvVariant>(*direction)) : text;
  }
  const std::string arch = ck_arch(header.fingerprint);
  out.arch = arch.empty() ? header.fingerprint.device : arch;
}

// Describes the features in the order that readers by position expect, with their engine and its
// numbers.
void describe_features(const FeatureTable& table, const Model& model, ModelDirectory& out) {
  const std::span<const FeatureInfo> columns = table.columns();
  std::vector<std::uint16_t> order = foreign_order(table);
  if (order.empty()) {
    order.resize(columns.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
  }
  const std::string_view engine = ck_engine_name(table);
  for (const std::uint16_t column : order) {
    const FeatureInfo& info = columns[column];
    out.feature_names.emplace_back(info.name);
    if (!engine.empty() && info.is_categorical) {
      out.categorical_features.emplace_back(info.name);
    }
  }
  out.feature_engine = engine.empty() ? table.name() : engine;
  out.hardware_json = engine.empty() ? text_of({{"device", model.fingerprint.device},
                                                {"facts", model.fingerprint.hardware.text()}})
                                     : engine_hardware_json(model.fingerprint.hardware);
}

// Returns the same trees over features in the order of the directory.
TreeModel reordered(TreeModel model, const std::vector<std::string>& feature_names) {
  std::vector<std::uint32_t> place;
  for (const std::string& name : model.feature_names) {
    const auto found = std::find(feature_names.begin(), feature_names.end(), name);
    place.push_back(static_cast<std::uint32_t>(found - feature_names.begin()));
  }
  for (std::uint32_t& feature : model.forest.feature) {
    feature = place[feature];
  }
  model.feature_names = feature_names;
  return model;
}

Result<ModelDirectory> directory_of(const Dataset& dataset,
                                    std::span<const TrainedTarget> targets) {
  const Model& first = targets.front().result->model;
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(first));
  ModelDirectory out;
  describe_problems(dataset, out);
  describe_features(*table, first, out);
  const Json manifest = manifest_json(dataset, targets);
  out.params_json = text_of(manifest["models"].front()["options"]);
  out.manifest_json = text_of(manifest);
  for (const TrainedTarget& target : targets) {
    out.targets.push_back({.name = std::string(target.name),
                           .model = reordered(target.result->predictor, out.feature_names),
                           .log1p = target.result->log1p});
  }
  return out;
}

Status check_targets(std::span<const TrainedTarget> targets) {
  if (targets.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there is no target to write");
  }
  std::set<std::string_view> seen;
  for (const TrainedTarget& target : targets) {
    if (!seen.insert(target.name).second) {
      return fail(ErrorCode::kInvalidArgument, "two models of the target ", target.name);
    }
  }
  return {};
}

Status write_files(const TrainedTarget& target, const std::filesystem::path& folder) {
  FORETUNE_TRY_STATUS(
      write_model(target.result->model, folder / concat("model_", target.name, ".ftm")));
  FORETUNE_TRY_STATUS(write_text_file_atomically(
      folder / concat("cv_metrics_", target.name, ".json"), text_of(cv_metrics_json(target))));
  return write_text_file_atomically(folder / concat("feature_importances_", target.name, ".json"),
                                    text_of(importances_json(*target.result)));
}

}  // namespace

std::string_view file_name_of(Target target) {
  return target == Target::kRelativeLog || target == Target::kLog ? "time" : to_string(target);
}

Status write_training_output(const Dataset& dataset, std::span<const TrainedTarget> targets,
                             const std::filesystem::path& folder, bool write_lightgbm) {
  FORETUNE_TRY_STATUS(check_targets(targets));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, folder.string(), " cannot be made: ", error.message());
  }
  for (const TrainedTarget& target : targets) {
    FORETUNE_TRY_STATUS(write_files(target, folder));
  }
  FORETUNE_TRY(const ModelDirectory models, directory_of(dataset, targets));
  return write_lightgbm ? write_model_directory(models, folder, ModelCompression::kBoth)
                        : write_model_documents(models, folder);
}

}  // namespace foretune
