#include "foretune/model/train/cv_metrics.h"

#include <array>
#include <cmath>
#include <map>

#include "foretune/base/prediction_statistics.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

struct Field {
  const char* name;
  double CvMetrics::* member;
};
constexpr std::array<Field, 11> kFields{{{"rmse", &CvMetrics::rmse},
                                         {"mae", &CvMetrics::mae},
                                         {"r2", &CvMetrics::r2},
                                         {"mean_efficiency", &CvMetrics::mean_efficiency},
                                         {"p10_efficiency", &CvMetrics::p10_efficiency},
                                         {"p50_efficiency", &CvMetrics::p50_efficiency},
                                         {"min_efficiency", &CvMetrics::min_efficiency},
                                         {"ndcg_at_1", &CvMetrics::ndcg_at_1},
                                         {"top3_hit", &CvMetrics::top3_hit},
                                         {"top5_hit", &CvMetrics::top5_hit},
                                         {"top10_hit", &CvMetrics::top10_hit}}};

struct Hit {
  std::size_t depth;
  double CvMetrics::* member;
};
constexpr std::array<Hit, 4> kHits{{{1, &CvMetrics::ndcg_at_1},
                                    {3, &CvMetrics::top3_hit},
                                    {5, &CvMetrics::top5_hit},
                                    {10, &CvMetrics::top10_hit}}};

// Side by side, for statistics over them.
struct Columns {
  std::vector<double> measured;
  std::vector<double> predicted;

  void add(double of_row, double prediction) {
    measured.push_back(of_row);
    predicted.push_back(prediction);
  }
};

}  // namespace

std::vector<std::pair<std::string, double>> CvMetrics::named() const {
  std::vector<std::pair<std::string, double>> out;
  for (const Field& field : kFields) {
    out.emplace_back(field.name, this->*field.member);
  }
  return out;
}

CvMetrics cv_metrics(std::span<const PredictedRow> rows) {
  CvMetrics out;
  out.rows = rows.size();
  if (rows.empty()) {
    return out;
  }
  Columns values;
  std::map<std::uint32_t, Columns> of_problem;
  for (const PredictedRow& row : rows) {
    values.add(row.value, row.prediction);
    of_problem[row.problem].add(row.time_ns, row.score);
  }
  const PredictionErrors errors = prediction_errors(values.measured, values.predicted);
  out.rmse = errors.rmse;
  out.mae = errors.mae;
  out.r2 = errors.r2;
  out.problems = of_problem.size();
  const double share = 1 / static_cast<double>(out.problems);
  std::vector<double> efficiency;
  for (const auto& [problem, times] : of_problem) {
    efficiency.push_back(pick_efficiency(times.measured, times.predicted));
    for (const Hit& hit : kHits) {
      out.*hit.member += is_top_k(times.measured, times.predicted, hit.depth) ? share : 0;
    }
  }
  out.mean_efficiency = mean(efficiency);
  out.p10_efficiency = quantile(efficiency, 0.1);
  out.p50_efficiency = median(efficiency);
  out.min_efficiency = quantile(efficiency, 0);
  return out;
}

CvMetrics mean_of(std::span<const CvMetrics> folds) {
  CvMetrics out;
  for (const CvMetrics& fold : folds) {
    out.problems += fold.problems;
    out.rows += fold.rows;
  }
  for (const Field& field : kFields) {
    std::vector<double> values;
    for (const CvMetrics& fold : folds) {
      if (std::isfinite(fold.*field.member)) {
        values.push_back(fold.*field.member);
      }
    }
    out.*field.member = mean(values);
  }
  return out;
}

}  // namespace foretune
