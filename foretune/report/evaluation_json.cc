#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using report_internal::number;
using Json = nlohmann::ordered_json;
using report_internal::interval_json;

// Figures that are not known are left out of `metrics`, and null elsewhere.
void add_metric(Json& metrics, const std::string& name, double value) {
  if (std::isfinite(value)) {
    metrics[name] = value;
  }
}

void add_interval(Json& metrics, const std::string& name, const Interval& interval) {
  add_metric(metrics, name, interval.value);
  add_metric(metrics, name + "_low", interval.low);
  add_metric(metrics, name + "_high", interval.high);
}

// Names of vendors come from files; metric names stay lower case words.
std::string metric_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    out += is_upper ? static_cast<char>(c - 'A' + 'a') : is_plain ? c : '_';
  }
  return out;
}

Json metrics_json(const Evaluation& evaluation) {
  const PickerResult& model = evaluation.model;
  Json metrics = Json::object();
  add_interval(metrics, "mean_efficiency", model.mean_efficiency);
  add_interval(metrics, "median_efficiency", model.median_efficiency);
  add_interval(metrics, "p10_efficiency", model.p10_efficiency);
  add_interval(metrics, "min_efficiency", model.min_efficiency);
  add_interval(metrics, "geomean_efficiency", model.geomean_efficiency);
  add_interval(metrics, "top5_measured_efficiency", model.top5_measured_efficiency);
  metrics["top1_hit"] = model.top1_hit;
  metrics["top3_hit"] = model.top3_hit;
  metrics["top5_hit"] = model.top5_hit;
  metrics["top10_hit"] = model.top10_hit;
  add_metric(metrics, "rmse_log", evaluation.rmse_log);
  add_metric(metrics, "rmse_log_absolute", evaluation.rmse_log_absolute);
  add_metric(metrics, "within_stated_error", evaluation.within_stated_error);
  add_metric(metrics, "within_twice_stated_error", evaluation.within_twice_stated_error);
  add_metric(metrics, "spearman_mean", evaluation.spearman_mean);
  add_metric(metrics, "spearman_median", evaluation.spearman_median);
  const CkMetrics& ck = evaluation.ck;
  add_metric(metrics, "ndcg_at_1", ck.ndcg_at_1());
  add_metric(metrics, "r2", ck.r2);
  add_metric(metrics, "r2_log", ck.r2_log);
  add_metric(metrics, "rmse_tflops", ck.rmse_tflops);
  add_metric(metrics, "mae_tflops", ck.mae_tflops);
  add_metric(metrics, "ck_mean_efficiency", ck.mean_efficiency);
  add_metric(metrics, "ck_median_efficiency", ck.median_efficiency);
  add_metric(metrics, "ck_p10_efficiency", ck.p10_efficiency);
  add_metric(metrics, "ck_min_efficiency", ck.min_efficiency);
  for (std::size_t i = 1; i < kCkHitDepths.size(); ++i) {
    add_metric(metrics, concat("ck_top", kCkHitDepths[i], "_hit"), ck.top_k[i]);
  }
  add_metric(metrics, "strict_mean_efficiency", evaluation.strict_mean_efficiency);
  add_metric(metrics, "strict_p10_efficiency", evaluation.strict_p10_efficiency);
  for (const PickerResult& baseline : evaluation.baselines) {
    add_metric(metrics, metric_name(baseline.key) + "_efficiency", baseline.mean_efficiency.value);
    if (baseline.key == "best_single_config") {
      add_interval(metrics, "gain_over_best_single_config", baseline.model_gain);
      add_metric(metrics, "speedup_over_best_single_config", baseline.model_speedup);
    }
  }
  metrics["problems"] = model.problems;
  metrics["unseen_problems"] = evaluation.unseen_problems;
  metrics["skipped_problems"] = evaluation.skipped_problems;
  metrics["reference_problems"] = evaluation.reference_problems;
  metrics["training_problems"] = evaluation.training_problems;
  metrics["failed_picks"] = model.failed;
  metrics["censored_picks"] = model.bounds;
  metrics["unmeasured_picks"] = evaluation.unmeasured_picks;
  if (!evaluation.objective.empty()) {
    metrics["missed_bounds"] = evaluation.missed_bounds;
    metrics["missed_bounds_share"] =
        number(static_cast<double>(evaluation.missed_bounds) / static_cast<double>(model.problems));
  }
  metrics["warnings"] = evaluation.warnings.size();
  return metrics;
}

Json picker_json(const PickerResult& picker) {
  Json curve = Json::array();
  for (const double value : picker.measured_curve) {
    curve.push_back(number(value));
  }
  return {{"key", picker.key},
          {"name", picker.name},
          {"tries", picker.tries},
          {"problems", picker.problems},
          {"mean_efficiency", interval_json(picker.mean_efficiency)},
          {"median_efficiency", interval_json(picker.median_efficiency)},
          {"p10_efficiency", interval_json(picker.p10_efficiency)},
          {"min_efficiency", interval_json(picker.min_efficiency)},
          {"geomean_efficiency", interval_json(picker.geomean_efficiency)},
          {"top1_hit", number(picker.top1_hit)},
          {"top3_hit", number(picker.top3_hit)},
          {"top5_hit", number(picker.top5_hit)},
          {"top10_hit", number(picker.top10_hit)},
          {"top5_measured_efficiency", interval_json(picker.top5_measured_efficiency)},
          {"top5_judges_itself", picker.top5_judges_itself},
          {"measured_curve", std::move(curve)},
          {"replaced", picker.replaced},
          {"failed", picker.failed},
          {"bounds", picker.bounds},
          {"model_gain", interval_json(picker.model_gain)},
          {"model_speedup", number(picker.model_speedup)}};
}

Json slice_json(const Slice& slice) {
  return {{"dimension", slice.dimension},
          {"value", slice.value},
          {"problems", slice.problems},
          {"mean_efficiency", number(slice.mean_efficiency)},
          {"p10_efficiency", number(slice.p10_efficiency)},
          {"min_efficiency", number(slice.min_efficiency)}};
}

Json worst_json(const WorstCase& entry) {
  return {{"problem", entry.problem},
          {"efficiency", number(entry.efficiency)},
          {"pick", entry.pick},
          {"pick_ns", entry.pick_ns > 0 ? number(entry.pick_ns) : Json(nullptr)},
          {"best", entry.best},
          {"best_ns", number(entry.best_ns)},
          {"rank", entry.rank > 0 ? Json(entry.rank) : Json(nullptr)},
          {"candidates", entry.candidates},
          {"note", entry.note}};
}

}  // namespace

std::string report_json(const Evaluation& evaluation, const std::string& name,
                        const std::string& command, const Fingerprint& machine) {
  Json out = Json::object();
  out["name"] = name;
  out["metrics"] = metrics_json(evaluation);
  out["machine"] = report_internal::machine_json(machine);
  out["command"] = command;
  out["model"] = picker_json(evaluation.model);
  out["baselines"] = Json::array();
  for (const PickerResult& baseline : evaluation.baselines) {
    out["baselines"].push_back(picker_json(baseline));
  }
  out["slices"] = Json::array();
  for (const Slice& slice : evaluation.slices) {
    out["slices"].push_back(slice_json(slice));
  }
  out["portfolio"] = Json::array();
  for (const PortfolioPoint& point : evaluation.portfolio) {
    out["portfolio"].push_back({{"configs", point.configs},
                                {"mean_efficiency", number(point.mean_efficiency)},
                                {"p10_efficiency", number(point.p10_efficiency)},
                                {"min_efficiency", number(point.min_efficiency)}});
  }
  out["worst"] = Json::array();
  for (const WorstCase& entry : evaluation.worst) {
    out["worst"].push_back(worst_json(entry));
  }
  out["problems"] = Json::array();
  for (const PickedProblem& picked : evaluation.picks) {
    out["problems"].push_back({{"problem", picked.problem},
                               {"pick", picked.pick},
                               {"best_ns", number(picked.best_ns)},
                               {"efficiency", number(picked.efficiency)}});
  }
  if (!evaluation.objective.empty()) {
    out["objective"] = evaluation.objective;
  }
  out["facts"] = Json::object();
  for (const auto& [fact, value] : evaluation.facts) {
    out["facts"][fact] = value;
  }
  out["warnings"] = evaluation.warnings;
  return report_internal::text_of(out);
}

}  // namespace foretune
