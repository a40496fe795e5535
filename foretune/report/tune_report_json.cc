#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "foretune/base/figures.h"
#include "foretune/report/internal/json_values.h"
#include "foretune/report/internal/tune_analysis.h"
#include "foretune/report/tune_report.h"

namespace foretune {
namespace {

using report_internal::number;
using report_internal::TuneAnalysis;
using Json = nlohmann::ordered_json;

Json values_json(std::span<const MetricValue> values) {
  Json out = Json::object();
  for (const MetricValue& value : values) {
    out[value.metric] = number(value.value);
  }
  return out;
}

Json tuned_json(const TunedConfig& tuned, const ConfigSchema& schema) {
  const std::string config = to_text(schema, tuned.config);
  Json out = {{"config", config},
              {"values", values_json(tuned.values)},
              {"feasible", tuned.judgement.is_feasible()},
              {"kept", tuned.judgement.is_kept()}};
  if (!tuned.text.empty() && tuned.text != config) {
    out["description"] = tuned.text;
  }
  return out;
}

// Those of the final comparison have been timed often enough for a spread.
Json compared_json(const TunedConfig& tuned, const ConfigSchema& schema) {
  Json out = tuned_json(tuned, schema);
  Json spreads = Json::object();
  for (const MetricValue& value : tuned.values) {
    if (value.spread > 0) {
      spreads[value.metric] = number(value.spread);
    }
  }
  out["spreads"] = std::move(spreads);
  return out;
}

Json limits_json(const Judge& judge) {
  Json out = Json::array();
  const std::vector<MetricBound>& bounds = judge.objective().bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    out.push_back({{"metric", bounds[i].metric},
                   {"relation", bounds[i].is_upper ? "<=" : ">="},
                   {"limit", number(judge.limit(i))},
                   {"keep", bounds[i].keep ? number(judge.keep_limit(i)) : Json(nullptr)}});
  }
  return out;
}

Json targets_json(const Judge& judge, const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[judge.metrics()[i].name] = number(values[i]);
  }
  return out;
}

void add_front(Json& out, const TuneResult& result, const TuneAnalysis& analysis) {
  out["front"] = analysis.front;
  out["dominated"] = analysis.dominated;
  out["knee"] = analysis.knee ? Json(*analysis.knee) : Json(nullptr);
  out["hypervolume"] = {{"value", number(analysis.hypervolume)},
                        {"share", number(analysis.share)},
                        {"reference", targets_json(*result.judge, analysis.worst)},
                        {"best", targets_json(*result.judge, analysis.best)}};
}

Json result_json(const TunedProblem& tuned, const ConfigSchema& schema) {
  const TuneResult& result = tuned.result;
  const Judge& judge = *result.judge;
  const TuneAnalysis analysis = report_internal::analyse_tuning(result);
  Json out = {
      {"problem", tuned.problem.text()},
      {"objective", judge.objective().text()},
      {"metrics", Json::array()},
      {"measurements", result.progress.measured},
      {"legal_configs", result.legal_configs ? Json(*result.legal_configs) : Json(nullptr)},
      {"exhausted", result.exhausted},
      {"elapsed_s", number(result.progress.elapsed_s)},
      {"limits", limits_json(judge)},
      {"baseline", result.baseline.empty() ? Json(nullptr) : values_json(result.baseline)},
      {"configs", {{"met", analysis.met}, {"kept", analysis.kept}, {"missed", analysis.missed}}},
      {"finalists", Json::array()},
      {"default", result.by_default ? compared_json(*result.by_default, schema) : Json(nullptr)},
      {"measured", Json::array()}};
  for (const MetricInfo& info : judge.metrics()) {
    out["metrics"].push_back({{"name", info.name},
                              {"unit", info.unit},
                              {"direction", to_string(report_internal::is_maximised(judge, info)
                                                          ? Direction::kMaximise
                                                          : Direction::kMinimise)}});
  }
  for (const TunedConfig& finalist : result.finalists) {
    out["finalists"].push_back(compared_json(finalist, schema));
    if (const auto packing = report_internal::packing_of(result, finalist)) {
      out["finalists"].back()["packing_pays_after_runs"] = number(packing->pays_after);
    }
  }
  for (const TunedConfig& measured : result.measured) {
    out["measured"].push_back(tuned_json(measured, schema));
  }
  if (judge.objective().is_pareto()) {
    add_front(out, result, analysis);
  }
  return out;
}

}  // namespace

std::string tune_json(const Figures& figures, std::span<const TunedProblem> problems,
                      const ConfigSchema& schema) {
  Json out = Json::parse(figures.json());
  out["results"] = Json::array();
  for (const TunedProblem& tuned : problems) {
    out["results"].push_back(result_json(tuned, schema));
  }
  return report_internal::text_of(out);
}

}  // namespace foretune
