#include "foretune/evaluate/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "foretune/evaluate/internal/packing.h"
#include "foretune/evaluate/learned_rate.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

// Effects below this share of the time are rounding.
constexpr double kSmallestEffect = 1e-9;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double confidence_of(double margin, double residual_std) {
  return residual_std > 0 ? normal_cdf(margin / (residual_std * std::sqrt(2.0)))
                          : PredictedConfig::kUnknown;
}

class Explainer {
 public:
  // `model` is the one that scores are of.
  Explainer(const Selector& selector, const Model& model, const FeatureTable& table,
            const Problem& problem, std::span<const RankedCandidate> ranked)
      : selector_(selector), model_(model), table_(table), problem_(problem), ranked_(ranked) {}

  Result<Explanation> explain(std::size_t top) {
    Explanation out;
    if (!ranked_.empty()) {
      attribute(std::min(top, ranked_.size()), out);
    }
    FORETUNE_TRY_STATUS(count_ruled_out(out));
    return out;
  }

 private:
  // The legal candidates are the background: a feature counts by what it changes among them.
  void attribute(std::size_t top, Explanation& out) {
    const std::size_t width = table_.columns().size();
    std::vector<double> rows(ranked_.size() * width);
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      feature_row(table_, problem_, model_.fingerprint.hardware,
                  selector_.config(ranked_[i].candidate),
                  std::span(rows).subspan(i * width, width));
    }
    std::vector<std::size_t> explained(
        std::max<std::size_t>(top, std::min<std::size_t>(2, ranked_.size())));
    std::iota(explained.begin(), explained.end(), std::size_t{0});
    std::vector<std::vector<double>> parts(explained.size(), std::vector<double>(width, 0));
    const auto kind = find_model_kind(model_.kind);
    if (!kind || (*kind)->attribute == nullptr) {
      return;
    }
    (*kind)->attribute(model_, problem_, {.rows = rows, .explained = explained, .columns = &parts});
    for (std::size_t i = 1; i < parts.size(); ++i) {
      MainEffect largest;
      for (std::size_t f = 0; f < width; ++f) {
        const double effect = parts[i][f] - parts[0][f];
        const std::string name(table_.columns()[f].name);
        if (std::fabs(effect) > std::fabs(largest.log_ratio)) {
          largest = {name, effect};
        }
        if (i == 1 && std::fabs(effect) > kSmallestEffect) {
          out.effects.push_back({name, std::string(table_.columns()[f].description), rows[f],
                                 rows[width + f], effect});
        }
      }
      if (i < top) {
        out.main_effect.push_back(std::move(largest));
      }
    }
    std::stable_sort(out.effects.begin(), out.effects.end(), [](const auto& a, const auto& b) {
      return std::fabs(a.log_ratio) > std::fabs(b.log_ratio);
    });
  }

  Status count_ruled_out(Explanation& out) const {
    if (model_.config_schema.kind == SchemaKind::kSequence) {
      return {};  // what was not legal was not generated
    }
    FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model_.space_text));
    FORETUNE_TRY(const auto space, CompiledSpace::create(std::move(definition)));
    const Hardware& hardware = model_.fingerprint.hardware;
    std::map<std::size_t, RuledOut> by_constraint;
    std::size_t refused = 0;
    for (const Config& config : model_.pool) {
      const auto broken =
          space->broken_constraint(config.words.view(), problem_.fields(), hardware);
      if (!broken) {
        continue;
      }
      ++refused;
      RuledOut& entry = by_constraint[*broken];
      if (entry.candidates++ == 0) {
        const Constraint& constraint = space->definition().constraints[*broken];
        entry.reason = constraint.reason.empty() ? constraint.expression : constraint.reason;
        entry.example = concat(to_text(model_.config_schema, config), ": ",
                               space->why_not(config, problem_, hardware).reason());
      }
    }
    for (auto& [constraint, entry] : by_constraint) {
      out.ruled_out.push_back(std::move(entry));
    }
    std::stable_sort(
        out.ruled_out.begin(), out.ruled_out.end(),
        [](const RuledOut& a, const RuledOut& b) { return a.candidates > b.candidates; });
    out.represented = model_.pool.size() - refused - ranked_.size();
    return {};
  }

  const Selector& selector_;
  const Model& model_;
  const FeatureTable& table_;
  const Problem& problem_;
  std::span<const RankedCandidate> ranked_;
};

// The column of what the selector's scores are of.
std::size_t target_column(const Selector& selector) {
  return selector.judge() == nullptr
             ? 0
             : *column_of(selector.columns(), selector.judge()->metrics().front().name);
}

bool is_log_time(const ScoreColumn& column) {
  return column.metric.name == kTimeNs && column.scale.kind == ValueScale::Kind::kLog;
}

// Fills in the rates that follow from a time.
void add_rates(const std::optional<ProblemWork>& work, PredictedConfig& out) {
  if (work) {
    out.tflops = work->flops / out.time_ns * 1e-3;
    out.gb_per_s = work->bytes / out.time_ns;
  }
}

// `z` is of the target, whatever bounds are missed.
void add_time(double z, double residual_std, const std::optional<ProblemWork>& work,
              PredictedConfig& out) {
  out.time_ns = std::exp(z);
  if (residual_std > 0) {
    constexpr double kStds = 1.96;
    out.time_low_ns = std::exp(z - kStds * residual_std);
    out.time_high_ns = std::exp(z + kStds * residual_std);
  }
  add_rates(work, out);
}

// Fills in the time and the rates that follow from the learned one, which is kept as it is.
void add_learned(const LearnedRate& rate, double score, const std::optional<ProblemWork>& work,
                 PredictedConfig& out) {
  const double value = rate.value(score);
  out.time_ns = rate.time_ns(value, work);
  add_rates(work, out);
  if (rate.unit == LearnedRate::Unit::kTflops) {
    out.tflops = value;
  } else if (rate.unit == LearnedRate::Unit::kGigabytesPerSecond) {
    out.gb_per_s = value;
  }
}

}  // namespace

Result<Prediction> predict(const Selector& selector, const Problem& problem,
                           const PredictOptions& options) {
  const Model& whole = selector.model();
  if (problem.type() != whole.problem_type) {
    return fail(ErrorCode::kMismatch, "the model is not for ", problem.schema().name, " problems");
  }
  const std::size_t target = target_column(selector);
  const Model& model = column_model(whole, target);
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  const std::vector<RankedCandidate> ranked = selector.rank(problem);
  Prediction out;
  out.problem = problem.text();
  out.choice = selector.select_uncached(problem);
  const auto name_of = [&](std::uint32_t candidate) {
    return options.kernel_name ? options.kernel_name(problem, selector.config(candidate))
                               : std::string();
  };
  if (out.choice.has_candidate) {
    out.choice_text = selector.describe(out.choice.candidate, problem);
    out.choice_kernel = name_of(out.choice.candidate);
  }
  out.reason = out.choice.picked() ? "" : selector.explain(problem, out.choice);
  out.outside = outside_ranges(model, *table, problem);
  out.legal = ranked.size();
  out.pool = selector.pool_size();
  out.target = selector.columns()[target];
  out.is_absolute = out.target.is_absolute && is_log_time(out.target);
  const std::optional<LearnedRate> rate =
      selector.judge() == nullptr ? learned_rate_of(model) : std::nullopt;
  out.has_rates = out.is_absolute || rate;
  out.residual_std = model.residual_std;
  out.machine = whole.fingerprint;
  if (&column_model(whole, 0) != &whole) {
    out.metrics.assign(selector.columns().begin(), selector.columns().end());
  }
  if (selector.judge() != nullptr) {
    out.objective = selector.judge()->objective().text();
  }
  std::vector<std::uint32_t> candidates;
  for (const RankedCandidate& entry : ranked) {
    out.feasible += keeps_bounds(entry.score) ? 1U : 0U;
    candidates.push_back(entry.candidate);
  }
  const std::size_t listed = std::min(options.top, ranked.size());
  // Packing is compared with the fastest of all candidates.
  if (listed == 0 || !evaluate_internal::predicts_packing(out)) {
    candidates.resize(listed);
  }
  std::vector<std::vector<PredictedMetric>> metrics;
  if (!out.metrics.empty()) {
    metrics = selector.predict_metrics(problem, candidates);
  }
  const std::optional<ProblemWork> work = problem_work(problem);
  double first_z = 0;
  for (std::size_t i = 0; i < listed; ++i) {
    PredictedConfig& entry = out.ranked.emplace_back();
    entry.candidate = candidates[i];
    entry.config = selector.describe(candidates[i], problem);
    entry.kernel = name_of(candidates[i]);
    entry.score = ranked[i].score;
    entry.keeps_bounds = keeps_bounds(entry.score);
    double z = entry.score;
    if (!metrics.empty()) {
      z = metrics[i][target].z;
      entry.metrics = metrics[i];
    }
    first_z = i == 0 ? z : first_z;
    entry.slower = std::expm1(z - first_z);
    if (out.is_absolute) {
      add_time(z, model.residual_std, work, entry);
    } else if (rate) {
      add_learned(*rate, entry.score, work, entry);
    }
    if (i > 0 && entry.keeps_bounds) {
      entry.confidence = confidence_of(z - first_z, model.residual_std);
    }
  }
  if (ranked.size() > 1 && keeps_bounds(ranked[1].score)) {
    out.margin = ranked[1].score - ranked[0].score;
    out.confidence = confidence_of(out.margin, model.residual_std);
  }
  evaluate_internal::add_packing(metrics, out);
  if (options.explain) {
    FORETUNE_TRY(out.explanation,
                 Explainer(selector, model, *table, problem, ranked).explain(options.top));
  }
  return out;
}

Status add_predicted_target(const Model& model, const Problem& problem,
                            std::span<const Config> configs, Prediction& prediction) {
  const std::optional<LearnedRate> rate = learned_rate_of(model);
  if (!rate || configs.size() != prediction.ranked.size()) {
    return fail(ErrorCode::kMismatch, "the model of ", model.target, " predicts no time or rate");
  }
  FORETUNE_TRY(const std::vector<double> scores, score_configs(model, problem, configs));
  for (std::size_t i = 0; i < configs.size(); ++i) {
    PredictedConfig& entry = prediction.ranked[i];
    const double value = rate->value(scores[i]);
    switch (rate->unit) {
      case LearnedRate::Unit::kTflops:
        entry.tflops = value;
        break;
      case LearnedRate::Unit::kMilliseconds:
        entry.time_ns = value * 1e6;
        entry.time_low_ns = PredictedConfig::kUnknown;
        entry.time_high_ns = PredictedConfig::kUnknown;
        break;
      case LearnedRate::Unit::kGigabytesPerSecond:
        entry.gb_per_s = value;
        break;
    }
  }
  prediction.has_rates = true;
  return {};
}

}  // namespace foretune
