#include "foretune/models/train/cv_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

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

void add_errors(std::span<const PredictedRow> rows, CvMetrics& out) {
  const auto count = static_cast<double>(rows.size());
  double mean_value = 0;
  for (const PredictedRow& row : rows) {
    mean_value += row.value / count;
  }
  double squares = 0;
  double absolutes = 0;
  double deviations = 0;
  for (const PredictedRow& row : rows) {
    const double error = row.prediction - row.value;
    squares += error * error;
    absolutes += std::abs(error);
    deviations += (row.value - mean_value) * (row.value - mean_value);
  }
  out.rmse = std::sqrt(squares / count);
  out.mae = absolutes / count;
  out.r2 = deviations > 0 ? 1 - squares / deviations : std::numeric_limits<double>::quiet_NaN();
}

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
  add_errors(rows, out);
  std::map<std::uint32_t, std::vector<const PredictedRow*>> by_problem;
  for (const PredictedRow& row : rows) {
    by_problem[row.problem].push_back(&row);
  }
  out.problems = by_problem.size();
  const double share = 1 / static_cast<double>(out.problems);
  std::vector<double> efficiency;
  for (auto& [problem, order] : by_problem) {
    const PredictedRow* const best =
        *std::min_element(order.begin(), order.end(),
                          [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->score < b->score; });
    efficiency.push_back(best->time_ns / order.front()->time_ns);
    const auto rank = std::find(order.begin(), order.end(), best) - order.begin();
    out.ndcg_at_1 += rank == 0 ? share : 0;
    out.top3_hit += rank < 3 ? share : 0;
    out.top5_hit += rank < 5 ? share : 0;
    out.top10_hit += rank < 10 ? share : 0;
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
