// The metrics of CK Tile's heuristics by their own definitions, for comparison with their published
// figures. They cover measured, valid configs only, have no ties and take the first among equals.
//
//   CkMetricsBuilder builder;
//   builder.add(times_ns, predicted_log, flops);  // problem by problem
//   const CkMetrics metrics = builder.take();
//
// Times are positive. Rates are work / time with the same work for all configs of a problem.
// Thread safety: a builder is used by one thread. Cost: linear.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace foretune {

inline constexpr std::array<std::size_t, 4> kCkHitDepths{1, 3, 5, 10};

struct CkMetrics {
  std::size_t problems = 0;
  double mean_efficiency = 0;
  double median_efficiency = 0;
  double p10_efficiency = 0;
  double min_efficiency = 0;
  std::array<double, 4> top_k{};  // shares of problems by kCkHitDepths; the first is CK's NDCG@1
  // R2 and errors of TFLOPS over all configs of all problems, where large problems dominate. NaN
  // where the work of a problem is unknown.
  double r2 = 0;
  double rmse_tflops = 0;
  double mae_tflops = 0;
  double r2_log = 0;  // of ln(time)

  [[nodiscard]] double ndcg_at_1() const { return top_k[0]; }
};

// Collects problems and summarises them.
class CkMetricsBuilder {
 public:
  // Adds a problem. `predicted_log` are ln(ns) of the same configs, shifted by the caller where a
  // model leaves a constant per problem open. `flops` is 0 where it is unknown. Ignores problems
  // without a config.
  void add(std::span<const double> times_ns, std::span<const double> predicted_log, double flops);
  // Returns the metrics; all are NaN without a problem.
  [[nodiscard]] CkMetrics take() const;

 private:
  std::vector<double> efficiencies_;
  std::array<std::size_t, 4> hits_{};
  bool knows_work_ = true;
  std::vector<double> measured_tflops_;
  std::vector<double> predicted_tflops_;
  std::vector<double> measured_log_;
  std::vector<double> predicted_log_;
};

}  // namespace foretune
