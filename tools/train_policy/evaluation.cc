#include "evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/gym/nest_task.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/policy/policy_body.h"

namespace foretune::policy_training {
namespace {

using loop::gym::Benchmark;
using loop::gym::NestTask;

double share_of(NestTask& task, const loop::Nest& nest) {
  const std::optional<double> log_share = task.log_share(nest);
  return log_share ? std::exp(*log_share) : 0;
}

Result<EvaluatedBenchmark> evaluate_one(const Model& model, const Benchmark& benchmark,
                                        const EvaluationSettings& settings) {
  FORETUNE_TRY(const std::unique_ptr<NestTask> task,
               NestTask::measured(benchmark.computation, settings.isa, settings.peak_gflops,
                                  settings.machine));
  FORETUNE_TRY(const Problem problem, loop::problem_of(benchmark.computation.name));
  EvaluatedBenchmark out{.name = benchmark.name};
  Rng rng(settings.seed);
  const auto space = loop::ScheduleSpace::of_loops(task->computation(), task->unit());
  const auto begin = std::chrono::steady_clock::now();
  FORETUNE_TRY(const std::unique_ptr<ConfigProposer> proposer,
               make_policy_proposer(model, problem, model.fingerprint.hardware));
  const std::vector<Config> first = proposer->propose(1, rng);
  out.choose_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  std::vector<Config> tried = first;
  for (Config& config : proposer->propose(settings.measurements, rng)) {
    if (tried.size() < settings.measurements &&
        std::find(tried.begin(), tried.end(), config) == tried.end()) {
      tried.push_back(std::move(config));
    }
  }
  for (std::size_t i = 0; i < tried.size(); ++i) {
    FORETUNE_TRY(const loop::Nest nest, space->nest(tried[i]));
    const double share = share_of(*task, nest);
    out.best = std::max(out.best, share);
    out.unmeasured = i == 0 ? share : out.unmeasured;
  }
  out.start = share_of(*task, loop::Nest::plain(task->computation()));
  const std::vector<loop::Nest> textbook =
      loop::textbook_nests(task->computation(), task->unit(), 1);
  out.textbook = textbook.empty() ? 0 : share_of(*task, textbook.front());
  return out;
}

}  // namespace

Result<std::vector<EvaluatedBenchmark>> evaluate_policy(const Model& model,
                                                        const std::vector<Benchmark>& benchmarks,
                                                        const EvaluationSettings& settings) {
  std::vector<EvaluatedBenchmark> out;
  for (const Benchmark& benchmark : benchmarks) {
    auto evaluated = evaluate_one(model, benchmark, settings);
    if (!evaluated) {
      return fail_because(evaluated.error(), benchmark.name);
    }
    out.push_back(*std::move(evaluated));
  }
  return out;
}

double geometric_mean(const std::vector<EvaluatedBenchmark>& rows,
                      double EvaluatedBenchmark::* column) {
  if (rows.empty()) {
    return 0;
  }
  double sum = 0;
  for (const EvaluatedBenchmark& row : rows) {
    sum += std::log(std::max(1e-6, row.*column));
  }
  return std::exp(sum / static_cast<double>(rows.size()));
}

Status write_evaluation(const std::filesystem::path& path,
                        const std::vector<EvaluatedBenchmark>& rows) {
  std::string out = "benchmark,start,unmeasured,best,textbook,choose_us\n";
  for (const EvaluatedBenchmark& row : rows) {
    out += concat("\"", row.name, "\",", row.start, ",", row.unmeasured, ",", row.best, ",",
                  row.textbook, ",", row.choose_us, "\n");
  }
  using E = EvaluatedBenchmark;
  out += concat("geometric mean,", geometric_mean(rows, &E::start), ",",
                geometric_mean(rows, &E::unmeasured), ",", geometric_mean(rows, &E::best), ",",
                geometric_mean(rows, &E::textbook), ",", geometric_mean(rows, &E::choose_us), "\n");
  return write_text_file_atomically(path, out);
}

}  // namespace foretune::policy_training
