#include <array>
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

using report_internal::array_of;
using report_internal::interval_json;
using report_internal::number;
using Json = nlohmann::ordered_json;

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

template <class Value, std::size_t kCount>
using NamedFigures = std::array<std::pair<const char*, Value>, kCount>;

NamedFigures<Interval, 5> efficiencies_of(const PickerResult& picker) {
  return {{{"mean_efficiency", picker.mean_efficiency},
           {"median_efficiency", picker.median_efficiency},
           {"p10_efficiency", picker.p10_efficiency},
           {"min_efficiency", picker.min_efficiency},
           {"geomean_efficiency", picker.geomean_efficiency}}};
}

NamedFigures<double, 4> hits_of(const PickerResult& picker) {
  return {{{"top1_hit", picker.top1_hit},
           {"top3_hit", picker.top3_hit},
           {"top5_hit", picker.top5_hit},
           {"top10_hit", picker.top10_hit}}};
}

// Figures of a model's predictions, here and as Composable Kernel computes them.
NamedFigures<double, 15> prediction_figures(const Evaluation& evaluation) {
  const CkMetrics& ck = evaluation.ck;
  return {{{"rmse_log", evaluation.rmse_log},
           {"rmse_log_absolute", evaluation.rmse_log_absolute},
           {"within_stated_error", evaluation.within_stated_error},
           {"within_twice_stated_error", evaluation.within_twice_stated_error},
           {"spearman_mean", evaluation.spearman_mean},
           {"spearman_median", evaluation.spearman_median},
           {"ndcg_at_1", ck.ndcg_at_1()},
           {"r2", ck.r2},
           {"r2_log", ck.r2_log},
           {"rmse_tflops", ck.rmse_tflops},
           {"mae_tflops", ck.mae_tflops},
           {"ck_mean_efficiency", ck.mean_efficiency},
           {"ck_median_efficiency", ck.median_efficiency},
           {"ck_p10_efficiency", ck.p10_efficiency},
           {"ck_min_efficiency", ck.min_efficiency}}};
}

Json metrics_json(const Evaluation& evaluation) {
  const PickerResult& model = evaluation.model;
  Json metrics = Json::object();
  for (const auto& [name, efficiency] : efficiencies_of(model)) {
    add_interval(metrics, name, efficiency);
  }
  add_interval(metrics, "top5_measured_efficiency", model.top5_measured_efficiency);
  for (const auto& [name, hit] : hits_of(model)) {
    metrics[name] = hit;
  }
  for (const auto& [name, value] : prediction_figures(evaluation)) {
    add_metric(metrics, name, value);
  }
  for (std::size_t i = 1; i < kCkHitDepths.size(); ++i) {
    add_metric(metrics, concat("ck_top", kCkHitDepths[i], "_hit"), evaluation.ck.top_k[i]);
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
  Json out = {{"key", picker.key},
              {"name", picker.name},
              {"tries", picker.tries},
              {"problems", picker.problems}};
  for (const auto& [name, efficiency] : efficiencies_of(picker)) {
    out[name] = interval_json(efficiency);
  }
  for (const auto& [name, hit] : hits_of(picker)) {
    out[name] = number(hit);
  }
  out["top5_measured_efficiency"] = interval_json(picker.top5_measured_efficiency);
  out["top5_judges_itself"] = picker.top5_judges_itself;
  out["measured_curve"] = array_of(picker.measured_curve, number);
  out["replaced"] = picker.replaced;
  out["failed"] = picker.failed;
  out["bounds"] = picker.bounds;
  out["model_gain"] = interval_json(picker.model_gain);
  out["model_speedup"] = number(picker.model_speedup);
  return out;
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

Json point_json(const PortfolioPoint& point) {
  return {{"configs", point.configs},
          {"mean_efficiency", number(point.mean_efficiency)},
          {"p10_efficiency", number(point.p10_efficiency)},
          {"min_efficiency", number(point.min_efficiency)}};
}

Json picked_json(const PickedProblem& picked) {
  return {{"problem", picked.problem},
          {"pick", picked.pick},
          {"best_ns", number(picked.best_ns)},
          {"efficiency", number(picked.efficiency)}};
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
  out["baselines"] = array_of(evaluation.baselines, picker_json);
  out["slices"] = array_of(evaluation.slices, slice_json);
  out["portfolio"] = array_of(evaluation.portfolio, point_json);
  out["worst"] = array_of(evaluation.worst, worst_json);
  out["problems"] = array_of(evaluation.picks, picked_json);
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
