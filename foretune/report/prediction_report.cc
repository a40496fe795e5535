// A prediction as text and as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/problem/problem.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using report_internal::clean_text;
using report_internal::left;
using report_internal::number;
using report_internal::number_text;
using report_internal::percent_text;
using report_internal::right;
using report_internal::time_text;
using Json = nlohmann::ordered_json;

// Effects that the text lists one by one.
constexpr std::size_t kShownEffects = 8;
constexpr std::size_t kShownRules = 8;

// "+3.2 %": what a part of a log ratio does to the time.
std::string effect_text(double log_ratio) {
  return concat(report_internal::gain_text(std::expm1(log_ratio)), " %");
}

// Four significant digits: features are sizes in thousands as well as shares.
std::string value_text(double value) {
  if (!std::isfinite(value)) {
    return concat(value);
  }
  const double size = std::fabs(value);
  const int decimals = size >= 1000 || value == std::floor(value) ? 0 : size >= 10 ? 2 : 4;
  return fixed(value, decimals);
}

class PredictionText {
 public:
  PredictionText(const Prediction& prediction, bool color)
      : prediction_(prediction), color_(color) {}

  std::string write() {
    out_ = concat(paint(kBold, clean_text(shown_problem(prediction_.problem))), "\n");
    verdict();
    ranking();
    if (prediction_.explanation) {
      effects(*prediction_.explanation);
      ruled_out(*prediction_.explanation);
    }
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kMetricWidth = 18;
  static constexpr std::string_view kBold = "\033[1m";
  static constexpr std::string_view kDim = "\033[2m";
  static constexpr std::string_view kYellow = "\033[33m";

  template <class... Parts>
  void add(const Parts&... parts) {
    out_ += concat(parts...);
  }
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const {
    return color_ ? concat(code, text, "\033[0m") : std::string(text);
  }

  // Differences on a scale that is no logarithm say nothing about ratios.
  [[nodiscard]] bool has_ratios() const {
    return prediction_.target.scale.kind != ValueScale::Kind::kLinear;
  }
  // Kernels go by their names where they have one.
  [[nodiscard]] const std::string& chosen() const {
    return prediction_.choice_kernel.empty() ? prediction_.choice_text : prediction_.choice_kernel;
  }
  [[nodiscard]] bool is_of_time() const { return prediction_.target.metric.name == kTimeNs; }

  void followed() {
    if (prediction_.objective.empty()) {
      return;
    }
    add("objective: ", prediction_.objective, "\n");
    add(count_text(prediction_.feasible), " of ", count_of(prediction_.legal, "candidate"),
        " are predicted to keep its bounds",
        prediction_.front
            ? concat(", ", count_text(*prediction_.front), " of them are on the predicted front")
            : std::string(),
        "\n");
  }

  void verdict() {
    const Choice& choice = prediction_.choice;
    followed();
    if (choice.picked()) {
      add(prediction_.front ? "knee: " : "pick: ", paint(kBold, clean_text(chosen())), "\n");
    } else {
      add(paint(kYellow, concat("abstains: ", clean_text(prediction_.reason))), "\n");
      if (choice.has_candidate) {
        add("fallback: ", clean_text(chosen()), "\n");
      }
    }
    if (choice.picked() && std::isfinite(prediction_.margin)) {
      if (has_ratios()) {
        add("margin: ", percent_text(std::expm1(prediction_.margin)), " % over the runner-up");
      } else {
        const MetricInfo& metric = prediction_.target.metric;
        add("margin: ",
            significant(prediction_.margin * std::fabs(prediction_.target.scale.step), 4),
            metric.unit.empty() ? "" : " ", metric.unit, " over the runner-up");
      }
      if (std::isfinite(prediction_.confidence)) {
        add(is_of_time() ? "; faster than it with a chance of "
                         : "; better than it with a chance of ",
            percent_text(prediction_.confidence), " %");
      }
      out_ += '\n';
    }
    if (!prediction_.ranked.empty() && std::isfinite(prediction_.ranked[0].time_low_ns)) {
      const PredictedConfig& first = prediction_.ranked[0];
      add("time of the first: ", time_text(first.time_ns), "; with a chance of 95 % ",
          time_text(first.time_low_ns), " to ", time_text(first.time_high_ns), "\n");
    }
    if (prediction_.generated > 0) {
      add("the best of ", count_of(prediction_.generated, "config"),
          " that were generated for this problem and scored\n");
    } else {
      add(count_text(prediction_.legal), " of ", count_of(prediction_.pool, "candidate"),
          " are legal and distinct here\n");
    }
    if (!prediction_.target.is_absolute && !prediction_.has_rates && !prediction_.ranked.empty()) {
      out_ += paint(kDim,
                    "The model predicts ratios within a problem, not times: train with --target "
                    "log for times and rates.");
      out_ += '\n';
    }
  }

  // Times have columns of their own already.
  [[nodiscard]] bool is_shown(std::size_t metric) const {
    return !(prediction_.is_absolute && prediction_.metrics[metric].metric.name == kTimeNs);
  }
  [[nodiscard]] std::string metric_heads() const {
    std::string out;
    for (std::size_t m = 0; m < prediction_.metrics.size(); ++m) {
      if (is_shown(m)) {
        out += right(prediction_.metrics[m].metric.name.substr(0, kMetricWidth - 1), kMetricWidth);
      }
    }
    return out;
  }
  [[nodiscard]] bool shows_packing() const {
    return std::any_of(
        prediction_.ranked.begin(), prediction_.ranked.end(),
        [](const PredictedConfig& entry) { return !std::isnan(entry.packing_pays_after); });
  }
  [[nodiscard]] std::string packing_text(const PredictedConfig& entry) const {
    return right(std::isnan(entry.packing_pays_after)
                     ? "-"
                     : report_internal::runs_text(entry.packing_pays_after),
                 kMetricWidth);
  }

  // "1.23 ms +-8 %": half of the interval in which 95 of 100 values lie.
  [[nodiscard]] std::string metric_values_text(const PredictedConfig& entry) const {
    std::string out;
    for (std::size_t m = 0; m < entry.metrics.size(); ++m) {
      if (!is_shown(m)) {
        continue;
      }
      const PredictedMetric& metric = entry.metrics[m];
      const std::string value = prediction_.metrics[m].metric.unit == "ns"
                                    ? time_text(metric.value)
                                    : significant(metric.value, 4);
      const double half = 50 * (metric.high - metric.low) / std::fabs(metric.value);
      const std::string spread = half > 0 && half < 1000
                                     ? concat(" +-", fixed(half, half < 10 ? 1 : 0), " %")
                                     : std::string();
      out += right(value + spread, kMetricWidth);
    }
    return out;
  }

  void ranking() {
    if (prediction_.ranked.empty()) {
      return;
    }
    const bool times = prediction_.has_rates;
    const bool reasons = prediction_.explanation && prediction_.ranked.size() > 1;
    out_ += '\n';
    out_ += paint(
        kDim, concat("  rank", times ? right("time", 10) : "", times ? right("TFLOPS", 9) : "",
                     times ? right("GB/s", 8) : "", right(is_of_time() ? "slower" : "worse", 10),
                     right("chance", 8), metric_heads(),
                     shows_packing() ? right("packing pays", kMetricWidth) : "", "  config"));
    out_ += '\n';
    for (std::size_t i = 0; i < prediction_.ranked.size(); ++i) {
      const PredictedConfig& entry = prediction_.ranked[i];
      add(right(concat(i + 1), 6));
      if (times) {
        add(right(time_text(entry.time_ns), 10), right(number_text(entry.tflops, 2), 9),
            right(number_text(entry.gb_per_s, 0), 8));
      }
      const bool is_ratio = i > 0 && has_ratios() && !prediction_.front;
      add(right(is_ratio ? concat(percent_text(entry.slower), " %") : "-", 10),
          right(percent_text(entry.confidence), 8), metric_values_text(entry),
          shows_packing() ? packing_text(entry) : "", "  ",
          clean_text(entry.kernel.empty() ? entry.config : entry.kernel),
          entry.keeps_bounds ? "" : "  (misses a bound)", "\n");
      if (reasons && i > 0 && !prediction_.explanation->main_effect[i - 1].feature.empty()) {
        const MainEffect& effect = prediction_.explanation->main_effect[i - 1];
        add(left("", times ? 53 : 26),
            paint(kDim, concat(effect_text(effect.log_ratio), " by ", effect.feature)), "\n");
      }
    }
    if (shows_packing()) {
      add(paint(kDim, "  packing pays: after so many runs, beside the fastest that packs nothing"),
          "\n");
    }
    if (std::isfinite(prediction_.confidence)) {
      add(paint(kDim, concat("  chance: that the first is ", is_of_time() ? "faster" : "better",
                             ", in %, from the model's held-out error")),
          "\n");
    }
  }

  void effects(const Explanation& explanation) {
    if (explanation.effects.empty()) {
      return;
    }
    add("\n", paint(kBold, "Why the first and not the second"), "\n");
    std::size_t name_width = 12;
    const std::size_t shown = std::min(kShownEffects, explanation.effects.size());
    for (std::size_t i = 0; i < shown; ++i) {
      name_width = std::max(name_width, explanation.effects[i].feature.size());
    }
    name_width = std::min<std::size_t>(name_width, 40);
    out_ += paint(kDim, concat("  ", left("feature", name_width), right("first", 12),
                               right("second", 12), right("slower by", 12)));
    out_ += '\n';
    double rest = 0;
    double sum = 0;  // the margin, where both keep the bounds of an objective
    for (std::size_t i = 0; i < explanation.effects.size(); ++i) {
      const FeatureEffect& effect = explanation.effects[i];
      sum += effect.log_ratio;
      if (i >= shown) {
        rest += effect.log_ratio;
        continue;
      }
      add("  ", left(effect.feature, name_width), right(value_text(effect.of_first), 12),
          right(value_text(effect.of_second), 12), right(effect_text(effect.log_ratio), 12), "\n");
    }
    if (explanation.effects.size() > shown) {
      add("  ", left(count_of(explanation.effects.size() - shown, "other"), name_width),
          right("", 24), right(effect_text(rest), 12), "\n");
    }
    add("  ", left("together", name_width), right("", 24),
        right(effect_text(std::isfinite(prediction_.margin) ? prediction_.margin : sum), 12), "\n");
  }

  void ruled_out(const Explanation& explanation) {
    if (explanation.ruled_out.empty() && explanation.represented == 0) {
      return;
    }
    add("\n", paint(kBold, "What ruled out the other candidates"), "\n");
    for (std::size_t i = 0; i < explanation.ruled_out.size(); ++i) {
      const RuledOut& rule = explanation.ruled_out[i];
      if (i == kShownRules) {
        const std::size_t rest = explanation.ruled_out.size() - i;
        add(right(concat(rest), 8), word_for(rest, "  further rule\n", "  further rules\n"));
        break;
      }
      add(right(count_text(rule.candidates), 8), "  ", clean_text(rule.reason), "\n");
    }
    if (explanation.represented > 0) {
      add(right(count_text(explanation.represented), 8),
          word_for(explanation.represented, "  runs", "  run"),
          " this problem just like a ranked candidate\n");
    }
  }

  const Prediction& prediction_;
  bool color_;
  std::string out_;
};

Json explanation_json(const Explanation& explanation) {
  Json out = {{"effects", Json::array()},
              {"main_effects", Json::array()},
              {"ruled_out", Json::array()},
              {"represented", explanation.represented}};
  for (const FeatureEffect& effect : explanation.effects) {
    out["effects"].push_back({{"feature", effect.feature},
                              {"description", effect.description},
                              {"first", number(effect.of_first)},
                              {"second", number(effect.of_second)},
                              {"log_ratio", effect.log_ratio}});
  }
  for (const MainEffect& effect : explanation.main_effect) {
    out["main_effects"].push_back({{"feature", effect.feature}, {"log_ratio", effect.log_ratio}});
  }
  for (const RuledOut& rule : explanation.ruled_out) {
    out["ruled_out"].push_back(
        {{"reason", rule.reason}, {"candidates", rule.candidates}, {"example", rule.example}});
  }
  return out;
}

void add_metrics(const Prediction& prediction, const PredictedConfig& entry, Json& out) {
  if (entry.metrics.empty()) {
    return;
  }
  out["keeps_bounds"] = entry.keeps_bounds;
  for (std::size_t m = 0; m < entry.metrics.size(); ++m) {
    const PredictedMetric& metric = entry.metrics[m];
    out["metrics"][prediction.metrics[m].metric.name] = {{"value", number(metric.value)},
                                                         {"low", number(metric.low)},
                                                         {"high", number(metric.high)},
                                                         {"z", number(metric.z)},
                                                         {"z_std", number(metric.z_std)}};
  }
}

}  // namespace

std::string prediction_text(const Prediction& prediction, bool color) {
  return PredictionText(prediction, color).write();
}

namespace {

Json prediction_document(const Prediction& prediction, const std::string& command) {
  const Choice& choice = prediction.choice;
  Json out = {{"name", "predict"},
              {"metrics",
               {{"picked", choice.picked() ? 1 : 0},
                {"candidate", choice.candidate},
                {"margin", number(prediction.margin)},
                {"confidence", number(prediction.confidence)},
                {"residual_std", prediction.residual_std},
                {"legal_candidates", prediction.legal},
                {"candidates", prediction.pool},
                {"generated", prediction.generated}}},
              {"machine", report_internal::machine_json(prediction.machine)},
              {"command", command},
              {"problem", prediction.problem},
              {"absolute_times", prediction.is_absolute},
              {"pick", choice.picked() ? Json(prediction.choice_text) : Json(nullptr)},
              {"abstained", choice.picked() ? Json(nullptr) : Json(prediction.reason)},
              {"fallback", !choice.picked() && choice.has_candidate ? Json(prediction.choice_text)
                                                                    : Json(nullptr)},
              {"outside_training", Json::array()},
              {"ranking", Json::array()}};
  for (const OutsideRange& outside : prediction.outside) {
    out["outside_training"].push_back({{"feature", outside.feature},
                                       {"value", number(outside.value)},
                                       {"low", number(outside.low)},
                                       {"high", number(outside.high)}});
  }
  if (!prediction.metrics.empty()) {
    out["objective"] = prediction.objective.empty() ? Json(nullptr) : Json(prediction.objective);
    out["feasible_candidates"] = prediction.feasible;
    out["front"] = prediction.front ? Json(*prediction.front) : Json(nullptr);
  }
  for (std::size_t i = 0; i < prediction.ranked.size(); ++i) {
    const PredictedConfig& entry = prediction.ranked[i];
    out["ranking"].push_back({{"rank", i + 1},
                              {"candidate", entry.candidate},
                              {"config", entry.config},
                              {"score", entry.score},
                              {"slower", entry.slower},
                              {"confidence", number(entry.confidence)},
                              {"time_ns", number(entry.time_ns)},
                              {"time_low_ns", number(entry.time_low_ns)},
                              {"time_high_ns", number(entry.time_high_ns)},
                              {"tflops", number(entry.tflops)},
                              {"gb_per_s", number(entry.gb_per_s)}});
    if (!entry.kernel.empty()) {
      out["ranking"].back()["kernel"] = entry.kernel;
    }
    add_metrics(prediction, entry, out["ranking"].back());
    if (!std::isnan(entry.packing_pays_after)) {
      out["ranking"].back()["packing_pays_after_runs"] = number(entry.packing_pays_after);
    }
  }
  if (prediction.explanation) {
    out["explanation"] = explanation_json(*prediction.explanation);
  }
  return out;
}

// Figures over the first config of every list that has one.
struct FirstConfigs {
  std::size_t picked = 0;
  std::vector<double> tflops;
  std::set<std::string> configs;
};

FirstConfigs first_configs_of(std::span<const Prediction> predictions) {
  FirstConfigs out;
  for (const Prediction& prediction : predictions) {
    out.picked += prediction.choice.picked() ? 1U : 0U;
    if (prediction.ranked.empty()) {
      continue;
    }
    const PredictedConfig& first = prediction.ranked.front();
    out.configs.insert(first.config);
    if (std::isfinite(first.tflops)) {
      out.tflops.push_back(first.tflops);
    }
  }
  return out;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string listed_line(const PredictedConfig& entry, bool has_rates) {
  std::string out;
  if (has_rates) {
    out += concat(right(time_text(entry.time_ns), 12), right(number_text(entry.tflops, 2), 10),
                  " TFLOPS", right(number_text(entry.gb_per_s, 0), 8), " GB/s");
  } else {
    out += right(concat("+", percent_text(entry.slower), " %"), 12);
  }
  return concat(out, "  ", clean_text(entry.kernel.empty() ? entry.config : entry.kernel), "\n");
}

}  // namespace

std::string prediction_json(const Prediction& prediction, const std::string& command) {
  return report_internal::text_of(prediction_document(prediction, command));
}

std::string predictions_text(std::span<const Prediction> predictions, bool color) {
  std::string out;
  for (const Prediction& prediction : predictions) {
    const std::string problem = clean_text(shown_problem(prediction.problem));
    out += color ? concat("\033[1m", problem, "\033[0m\n") : concat(problem, "\n");
    if (!prediction.choice.picked()) {
      out += concat("  abstains: ", clean_text(prediction.reason), "\n");
    }
    for (const PredictedConfig& entry : prediction.ranked) {
      out += listed_line(entry, prediction.has_rates);
    }
  }
  const FirstConfigs summary = first_configs_of(predictions);
  out += concat(count_of(predictions.size(), "problem"), ", ", count_text(summary.picked),
                " with a pick; ", count_of(summary.configs.size(), "config"),
                word_for(summary.configs.size(), " comes", " come"), " first\n");
  if (!summary.tflops.empty()) {
    const auto [least, most] = std::minmax_element(summary.tflops.begin(), summary.tflops.end());
    out += concat("TFLOPS of the first: mean ", number_text(mean_of(summary.tflops), 2), ", from ",
                  number_text(*least, 2), " to ", number_text(*most, 2), "\n");
  }
  return out;
}

std::string predictions_json(std::span<const Prediction> predictions, const std::string& command) {
  const FirstConfigs summary = first_configs_of(predictions);
  Json metrics = {{"problems", predictions.size()},
                  {"picked", summary.picked},
                  {"first_configs", summary.configs.size()}};
  if (!summary.tflops.empty()) {
    metrics["mean_tflops"] = mean_of(summary.tflops);
    metrics["min_tflops"] = *std::min_element(summary.tflops.begin(), summary.tflops.end());
    metrics["max_tflops"] = *std::max_element(summary.tflops.begin(), summary.tflops.end());
  }
  Json out = {
      {"name", "predict"},
      {"metrics", std::move(metrics)},
      {"machine", predictions.empty() ? Json::object()
                                      : report_internal::machine_json(predictions.front().machine)},
      {"command", command},
      {"problems", Json::array()}};
  for (const Prediction& prediction : predictions) {
    Json entry = prediction_document(prediction, command);
    for (const char* const shared : {"name", "machine", "command"}) {
      entry.erase(shared);
    }
    out["problems"].push_back(std::move(entry));
  }
  return report_internal::text_of(out);
}

}  // namespace foretune
