#include "foretune/model/train/train_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/model_card.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

using train_internal::add_identifiers;
using train_internal::begin_card;
using train_internal::make_model;
using train_internal::make_training_set;
using train_internal::table_for;
using train_internal::TrainingSet;

Status check_metric_options(const TrainOptions& options, std::span<const std::string> metrics) {
  if (metrics.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a model of several metrics names at least one");
  }
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (std::find(metrics.begin(), metrics.begin() + static_cast<std::ptrdiff_t>(i), metrics[i]) !=
        metrics.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fail(ErrorCode::kInvalidArgument, "the metric ", metrics[i], " is named twice");
    }
  }
  if (options.target != Target::kRelativeLog && options.target != Target::kLog) {
    return fail(ErrorCode::kInvalidArgument, "metrics are learned as logarithms, not as ",
                to_string(options.target));
  }
  if (options.warm_start != nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a warm start continues a model of time alone");
  }
  return {};
}

// One metric: how it is seen, and what came of the training.
struct Part {
  MetricInfo info;
  ValueScale scale;
  std::vector<RowIndex> rows;  // of the data set, behind each row of the view
  double median_relative_error = kNotANumber;
  TrainResult result;
};

// The error of values on held-out problems. Zeros have no relative one.
double median_relative_error(const Dataset& view, const ValueScale& scale,
                             std::span<const double> held_out) {
  constexpr double kSmallest = 1e-6;
  const double zero =
      kSmallest * (scale.kind == ValueScale::Kind::kLinear ? std::fabs(scale.step) : scale.offset);
  std::vector<double> errors;
  for (RowIndex i = 0; i < view.size() && i < held_out.size(); ++i) {
    const Dataset::Row& row = view.rows()[i];
    if (row.outcome != Outcome::kOk || !std::isfinite(held_out[i]) || !(row.time_ns > 0)) {
      continue;
    }
    const double value = scale.to_value(std::log(static_cast<double>(row.time_ns)));
    if (std::fabs(value) > zero) {
      errors.push_back(std::fabs(scale.to_value(held_out[i]) - value) / std::fabs(value));
    }
  }
  return errors.empty() ? kNotANumber : median(errors);
}

Result<Part> train_part(const Dataset& dataset, const ModelTypeEntry& type,
                        const TrainOptions& common, const std::string& metric,
                        const ProgressHook& progress) {
  Part out;
  FORETUNE_TRY(out.info, find_metric(dataset, metric));
  FORETUNE_TRY(out.scale, fit_scale(dataset, out.info));
  const Dataset view = metric_view(dataset, metric, out.scale, {}, &out.rows);
  TrainOptions options = common;
  options.target = Target::kLog;
  options.choose_target = false;
  ProgressHook hook;
  if (progress) {
    hook = [&](const TrainProgress& of_part) {
      TrainProgress named = of_part;
      named.stage = concat(metric, ": ", of_part.stage);
      return progress(named);
    };
  }
  FORETUNE_TRY(out.result, type.train(view, options, hook));
  out.median_relative_error = median_relative_error(view, out.scale, out.result.held_out_scores);
  return out;
}

// Held-out figures, the metric's name in front.
std::vector<std::pair<std::string, double>> figures_of(std::span<const Part> parts) {
  std::vector<std::pair<std::string, double>> out;
  for (const Part& part : parts) {
    for (const auto& [name, value] : part.result.metrics) {
      out.emplace_back(concat(part.info.name, "_", name), value);
    }
    if (std::isfinite(part.median_relative_error)) {
      out.emplace_back(concat(part.info.name, "_median_relative_error"),
                       part.median_relative_error);
    }
  }
  return out;
}

// The whole without its parts: candidates, portfolio and domain where all metrics are known.
Result<Model> make_whole(const Dataset& dataset, const TrainOptions& options,
                         std::span<const Part> parts) {
  std::vector<MetricInfo> infos;
  for (const Part& part : parts) {
    infos.push_back(part.info);
  }
  const Part& first = parts.front();
  const Dataset view = metric_view(dataset, first.info.name, first.scale, infos);
  FORETUNE_TRY(const FeatureTable* const table, table_for(dataset, options.feature_table));
  const Result<TrainingSet> set = make_training_set(view, *table, options.weight_decay);
  if (!set) {
    return fail_because(set.error(), "no measurement has all of these metrics");
  }
  FORETUNE_TRY(Model model, make_model(view, *table, *set, options));
  // Scores are absolute, ln(ns), only of time.
  const bool is_time = first.info.name == kTimeNs && first.scale.kind == ValueScale::Kind::kLog;
  model.target = to_string(is_time ? Target::kLog : Target::kRelativeLog);
  model.residual_std = first.result.model.residual_std;
  model.data_fingerprint = dataset.fingerprint();
  nlohmann::ordered_json card =
      begin_card("metrics", dataset.header().family, dataset.header().fingerprint, table->name());
  card["data"] = {{"fingerprint", model.data_fingerprint.hex()},
                  {"problems", dataset.problems().size()},
                  {"measurements", dataset.size()},
                  {"with_all_metrics", set->size()}};
  add_identifiers(dataset, card["data"]);
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();
  for (const auto& [name, value] : figures_of(parts)) {
    figures[name] = value;
  }
  card["held_out"] = {{"folds", options.folds}, {"metrics", figures}};
  for (const Part& part : parts) {
    card["metrics"][part.info.name] = {{"unit", part.info.unit},
                                       {"direction", to_string(part.info.direction)},
                                       {"learned", part.scale.text()},
                                       {"kind", part.result.model.kind}};
  }
  model.card_json = card.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return model;
}

}  // namespace

Result<TrainResult> train_metrics(const Dataset& dataset, const ModelTypeEntry& type,
                                  const TrainOptions& options, std::span<const std::string> metrics,
                                  const ProgressHook& progress) {
  FORETUNE_TRY_STATUS(check_metric_options(options, metrics));
  // A name that is not there is said before anything is trained.
  for (const std::string& metric : metrics) {
    FORETUNE_TRY_STATUS(find_metric(dataset, metric).map([](const MetricInfo&) {}));
  }
  std::vector<Part> parts;
  for (const std::string& metric : metrics) {
    auto part = train_part(dataset, type, options, metric, progress);
    if (!part) {
      return fail_because(part.error(), metric);
    }
    parts.push_back(*std::move(part));
  }
  TrainResult out;
  out.target = Target::kLog;
  FORETUNE_TRY(out.model, make_whole(dataset, options, parts));
  out.held_out_scores.assign(dataset.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < parts.front().rows.size(); ++i) {
    out.held_out_scores[parts.front().rows[i]] = parts.front().result.held_out_scores[i];
  }
  out.metrics = figures_of(parts);
  std::vector<MetricModel> models;
  for (Part& part : parts) {
    Model own = std::move(part.result.model);
    own.pool = out.model.pool;
    own.portfolio = out.model.portfolio;
    models.push_back({part.info, part.scale, std::make_shared<const Model>(std::move(own))});
  }
  set_metrics(out.model, std::move(models));
  return out;
}

}  // namespace foretune
