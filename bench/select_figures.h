// Helpers of the files of bench/select: time the scorer, and print and keep a figure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "bench/bench_json.h"
#include "bench/select_setup.h"
#include "foretune/model/forest/forest_scorer.h"
#include "foretune/model/model_file.h"
#include "foretune/select/foretune.h"

namespace foretune::bench {

template <class Work>
double milliseconds(const Work& work) {
  const double start_s = bench::seconds_now();
  work();
  return 1e3 * (bench::seconds_now() - start_s);
}

class ScoredPool {
 public:
  ScoredPool(const Setup& setup, CpuIsa isa) {
    const auto scorer = must(forest_scorer({setup.forest}, *setup.table, 0, isa));
    pool_ = must(scorer->prepare({setup.words, kWidth}, setup.hardware));
    workspace_.resize(pool_->workspace_bytes());
    scores_.resize(pool_->size());
  }
  const std::vector<double>& score(const Problem& problem) {
    pool_->score(problem, workspace_, scores_, {});
    return scores_;
  }
  double mean_ms(const std::vector<Problem>& problems) {
    return milliseconds([&] {
             for (const Problem& problem : problems) {
               score(problem);
             }
           }) /
           static_cast<double>(problems.size());
  }

 private:
  std::unique_ptr<PreparedPool> pool_;
  std::vector<std::byte> workspace_;
  std::vector<double> scores_;
};

inline void report(Figures& figures, const char* name, double value, const char* text) {
  figures.add(name, value);
  std::printf("%-34s %12.4g  %s\n", name, value, text);
}

inline foretune_gemm to_c(const Problem& problem) {
  return {.m = problem.field(1),
          .n = problem.field(2),
          .k = problem.field(3),
          .batch = 1,
          .op = FORETUNE_MM,
          .dtype = static_cast<std::int32_t>(problem.field(5)),
          .layout = static_cast<std::int32_t>(problem.field(6))};
}

// Times the first answer from the model's file on, through the C interface. Each run is a process
// of its own (`program` --cold-start fast|exact --model FILE --problem TEXT) that calls
// run_cold_start(). The file stays in the system's cache.
void report_cold_start(Figures& figures, const char* program, const Setup& setup, Model model,
                       int runs);
int run_cold_start(int argc, char** argv);
// A forest of 2,000 trees beside LightGBM, both on one thread.
void report_large_forest(Figures& figures, int argc, char** argv, const SpaceDefinition& space,
                         int runs);
// Reports the work that an exact search for the best candidate could skip: it drops a candidate
// that no values of the remaining trees, among those that occur, can make the best.
void report_early_stop(Figures& figures, const Setup& setup);

}  // namespace foretune::bench
