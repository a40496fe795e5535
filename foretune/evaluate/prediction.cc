#include "foretune/evaluate/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "foretune/features/feature_table.h"
#include "foretune/models/infer/attribution.h"
#include "foretune/models/infer/forest.h"
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
  Explainer(const Selector& selector, const FeatureTable& table, const Problem& problem,
            std::span<const RankedCandidate> ranked)
      : selector_(selector),
        model_(selector.model()),
        table_(table),
        problem_(problem),
        ranked_(ranked) {}

  Result<Explanation> explain(std::size_t top) {
    Explanation out;
    if (!ranked_.empty()) {
      attribute(std::min(top, ranked_.size()), out);
    }
    FORETUNE_TRY_STATUS(count_ruled_out(out));
    return out;
  }

 private:
  [[nodiscard]] double network_score(std::span<const double> row) const {
    double sum = 0;
    for (const Network& network : model_.networks) {
      sum += predict_reference(network, row, problem_.fields());
    }
    return sum / static_cast<double>(model_.networks.size());
  }

  // Of networks: what one feature's value in place of the other's changes, the mean of putting the
  // second's into the first row and the first's into the second.
  void add_exchanges(std::span<const double> first, std::span<const double> second, double share,
                     std::vector<double>& parts) const {
    std::vector<double> row(first.begin(), first.end());
    std::vector<double> other(second.begin(), second.end());
    const double of_first = network_score(row);
    const double of_second = network_score(other);
    for (std::size_t f = 0; f < parts.size(); ++f) {
      if (first[f] == second[f]) {
        continue;
      }
      std::swap(row[f], other[f]);
      parts[f] +=
          share * 0.5 * ((network_score(row) - of_first) + (of_second - network_score(other)));
      std::swap(row[f], other[f]);
    }
  }

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
    const double network_share = model_.forests.empty()    ? 1
                                 : model_.networks.empty() ? 0
                                                           : model_.network_share;
    for (const Forest& forest : model_.forests) {
      const std::vector<Attribution> of_forest = attribute_paths(forest, rows, explained);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        for (std::size_t f = 0; f < width; ++f) {
          parts[i][f] += (1 - network_share) * of_forest[i].of_feature[f] /
                         static_cast<double>(model_.forests.size());
        }
      }
    }
    for (std::size_t i = 1; i < parts.size() && !model_.networks.empty(); ++i) {
      add_exchanges(std::span(rows).first(width), std::span(rows).subspan(i * width, width),
                    network_share, parts[i]);
    }
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

PredictedConfig predicted(const Selector& selector, const RankedCandidate& candidate,
                          double first_score, const std::optional<ProblemWork>& work) {
  const Model& model = selector.model();
  PredictedConfig out;
  out.candidate = candidate.candidate;
  out.config = selector.config_text(candidate.candidate);
  out.score = candidate.score;
  out.slower = std::expm1(candidate.score - first_score);
  if (model.target == "log") {
    out.time_ns = std::exp(candidate.score);
    if (model.residual_std > 0) {
      constexpr double kStds = 1.96;
      out.time_low_ns = std::exp(candidate.score - kStds * model.residual_std);
      out.time_high_ns = std::exp(candidate.score + kStds * model.residual_std);
    }
    if (work) {
      out.tflops = work->flops / out.time_ns * 1e-3;
      out.gb_per_s = work->bytes / out.time_ns;
    }
  }
  return out;
}

}  // namespace

Result<Prediction> predict(const Selector& selector, const Problem& problem,
                           const PredictOptions& options) {
  const Model& model = selector.model();
  if (problem.type() != model.problem_type) {
    return fail(ErrorCode::kMismatch, "the model is not for ", problem.schema().name, " problems");
  }
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  const std::vector<RankedCandidate> ranked = selector.rank(problem);
  Prediction out;
  out.problem = problem.text();
  out.choice = selector.select_uncached(problem);
  if (out.choice.has_candidate) {
    out.choice_text = selector.config_text(out.choice.candidate);
  }
  out.reason = out.choice.picked() ? "" : selector.explain(problem, out.choice);
  out.outside = outside_ranges(model, *table, problem);
  out.legal = ranked.size();
  out.pool = selector.pool_size();
  out.is_absolute = model.target == "log";
  out.residual_std = model.residual_std;
  out.machine = model.fingerprint;
  const std::optional<ProblemWork> work = problem_work(problem);
  for (std::size_t i = 0; i < std::min(options.top, ranked.size()); ++i) {
    out.ranked.push_back(predicted(selector, ranked[i], ranked[0].score, work));
    if (i > 0) {
      out.ranked[i].confidence =
          confidence_of(ranked[i].score - ranked[0].score, model.residual_std);
    }
  }
  if (ranked.size() > 1) {
    out.margin = ranked[1].score - ranked[0].score;
    out.confidence = confidence_of(out.margin, model.residual_std);
  }
  if (options.explain) {
    FORETUNE_TRY(out.explanation,
                 Explainer(selector, *table, problem, ranked).explain(options.top));
  }
  return out;
}

}  // namespace foretune
