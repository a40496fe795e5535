#include "foretune/models/train/output_directory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/models/exchange/model_directory.h"
#include "foretune/version.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// The value that all problems have in a field, "mixed" when they differ, nothing without the field.
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

ModelDirectory directory_of(const Dataset& dataset, std::span<const TrainedTarget> targets) {
  const DatasetHeader& header = dataset.header();
  ModelDirectory out;
  out.op_type = find_problem_schema(header.problem_type)->name;
  out.dtype = common_text(dataset, "dtype");
  out.arch = header.fingerprint.device;
  const TrainResult& first = *targets.front().result;
  out.feature_names = first.predictor.feature_names;
  out.feature_engine = first.model.feature_table;
  out.hardware_json = text_of(
      {{"device", header.fingerprint.device}, {"facts", header.fingerprint.hardware.text()}});
  const Json manifest = manifest_json(dataset, targets);
  out.params_json = text_of(manifest["models"].front()["options"]);
  out.manifest_json = text_of(manifest);
  for (const TrainedTarget& target : targets) {
    out.targets.push_back({.name = std::string(target.name),
                           .model = target.result->predictor,
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
  const ModelDirectory models = directory_of(dataset, targets);
  return write_lightgbm ? write_model_directory(models, folder, ModelCompression::kGzip)
                        : write_model_documents(models, folder);
}

}  // namespace foretune
