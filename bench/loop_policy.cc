// Judges a learned policy's schedules of loop nests beside the textbook's first schedule
// and a search, all compared in turns in one run:
//
//   loop_policy --model policy.ftm [--products mm64_256_16_test25]
//               [--beyond bench/shapes/loop_policy.txt] [--search 200] [--isa avx2]
//               [--transfer other.ftm] [--seeds 10] [--json FILE]
//
// unmeasured: the policy's first proposal. ten: the fastest of 10 measurements of the strategy
// `policy`, the plain nest among them. search: the fastest of `--search` measurements of `guided`
// from the plain nest. The policy and the search know nothing of the textbook. Best known is the
// fastest of all four. Each problem's schedules are timed against each other at the end; means are
// geometric. --transfer: a policy that learned elsewhere, for other instructions or from products
// alone, asked the same. --seeds: how soon the policy and searches come near the best of six
// enumerated problems (loop_policy_regret.h), with so many seeds each.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/loop_policy_regret.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/formats/json.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/loop/gym/environment.h"
#include "foretune/loop/gym/measured_evaluator.h"
#include "foretune/loop/gym/observations.h"
#include "foretune/loop/gym/vector_environment.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/policy/policy_body.h"
#include "foretune/problem/problem_type.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

using loop::gym::Benchmark;
using loop::gym::NestTask;

constexpr std::size_t kMeasurements = 10;
constexpr std::size_t kLongest = 50;  // measurements of the policy until it is near the best known
constexpr double kNear = 0.95;
constexpr int kRounds = 15;

enum Rival : std::size_t {
  kUnmeasured,
  kTen,
  kTextbook,
  kSearch,
  kPlain,
  kRivals,
  // There with --transfer alone.
  kOtherUnmeasured = kRivals,
  kOtherTen,
  kAllRivals
};
constexpr std::array<const char*, kAllRivals> kNames = {"unmeasured", "ten",   "textbook", "search",
                                                        "plain",      "other", "other ten"};

struct Row {
  std::string name;
  std::array<double, kAllRivals> share{};  // of the peak; 0 where there is no such schedule
  double choose_us = 0;                    // until the unmeasured schedule was known
  double ten_ms = 0;                       // until the best of ten was known
  double measurements_to_near = 0;
  [[nodiscard]] double best() const {
    return *std::max_element(share.begin(), share.begin() + kRivals);
  }
};

class Bench {
 public:
  // `other` may be nullptr.
  Bench(const Model& model, const Model* other, CpuIsa isa, std::uint64_t search,
        double peak_gflops)
      : model_(model), other_(other), isa_(isa), search_(search), peak_(peak_gflops) {}

  [[nodiscard]] std::size_t rivals() const { return other_ == nullptr ? kRivals : kAllRivals; }

  // A policy may be asked for other instructions than it learned with.
  static Hardware hardware_of(const Model& model, CpuIsa isa) {
    Hardware hardware = model.fingerprint.hardware;
    const loop::VectorUnit unit = loop::VectorUnit::of(isa);
    hardware.set(HardwareValue::kVectorBytes, static_cast<double>(4 * unit.lanes));
    hardware.set(HardwareValue::kVectorRegisters, static_cast<double>(unit.registers));
    return hardware;
  }

  Result<Row> run(const Benchmark& benchmark) {
    LoopNestOptions options;
    options.isa = isa_;
    options.has_textbook_defaults = false;
    FORETUNE_TRY(const NestBench bench,
                 make_nest_bench(benchmark.computation, options, 1, model_.fingerprint));
    const FamilyInfo& info = bench.family->info();
    const std::unique_ptr<Measurer> measurer = make_local_measurer(
        bench.family, Protocol::brief(info),
        {.machine = info.fingerprint.digest(), .device = info.fingerprint.device, .threads = 1});
    FORETUNE_TRY(const std::unique_ptr<Space> space, bench.family->space(bench.problem));
    const loop::VectorUnit unit = loop::VectorUnit::of(isa_);
    const auto schedules = loop::ScheduleSpace::of_loops(benchmark.computation, unit);
    const auto config_of = [&](const loop::Nest& nest) {
      return schedules->config({.nest = nest, .cursor = 0});
    };
    Row row{.name = benchmark.name};
    std::vector<Config> found(rivals());
    FORETUNE_TRY(found[kUnmeasured], choose(model_, bench.problem, row.choose_us));
    const double begin = bench::seconds_now();
    FORETUNE_TRY(const TuneResult ten, tune(bench, *measurer, &model_, kMeasurements));
    row.ten_ms = 1e3 * (bench::seconds_now() - begin);
    found[kTen] = ten.finalists.front().config;
    FORETUNE_TRY(const TuneResult longer, tune(bench, *measurer, &model_, kLongest));
    FORETUNE_TRY(const TuneResult search, tune(bench, *measurer, nullptr, search_));
    if (other_ != nullptr) {
      double unused_us = 0;
      FORETUNE_TRY(found[kOtherUnmeasured], choose(*other_, bench.problem, unused_us));
      FORETUNE_TRY(const TuneResult other, tune(bench, *measurer, other_, kMeasurements));
      found[kOtherTen] = other.finalists.front().config;
    }
    found[kSearch] = search.finalists.front().config;
    const std::vector<loop::Nest> textbook = loop::textbook_nests(benchmark.computation, unit, 1);
    found[kPlain] = config_of(loop::Nest::plain(benchmark.computation));
    found[kTextbook] = textbook.empty() ? found[kPlain] : config_of(textbook.front());
    const std::vector<Measurement> measured = measurer->compare(bench.problem, found, kRounds);
    peak_ = std::max(peak_, measure_fma_gflops(0.02, isa_));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const MetricValue* const time = measured[i].find(kTimeNs);
      row.share[i] = time == nullptr ? 0 : benchmark.computation.flops() / time->value / peak_;
    }
    row.measurements_to_near =
        measurements_to(longer, benchmark.computation.flops() / (kNear * row.best() * peak_));
    return row;
  }

 private:
  Result<Config> choose(const Model& model, const Problem& problem, double& microseconds) const {
    Rng rng(1);
    const Hardware hardware = hardware_of(model, isa_);
    const double begin = bench::seconds_now();
    FORETUNE_TRY(const std::unique_ptr<ConfigProposer> proposer,
                 make_policy_proposer(model, problem, hardware));
    std::vector<Config> chosen = proposer->propose(1, rng);
    microseconds = 1e6 * (bench::seconds_now() - begin);
    if (chosen.empty()) {
      return fail(ErrorCode::kInternal, "the policy proposes nothing for '", problem.text(), "'");
    }
    return std::move(chosen.front());
  }

  // Follows the policy; without one, the search that it is compared with.
  static Result<TuneResult> tune(const NestBench& bench, Measurer& measurer, const Model* policy,
                                 std::uint64_t measurements) {
    TuneOptions options;
    options.policy = policy;
    options.strategy = policy == nullptr ? "guided" : "policy";
    options.budget.measurements = measurements;
    options.finalists = 3;
    options.rounds = 3;
    CollectHooks hooks;
    hooks.now_s = &bench::seconds_now;
    return tune_problem(*bench.family, measurer, nullptr, bench.problem, options, hooks);
  }

  static double measurements_to(const TuneResult& result, double time_ns) {
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
      if (result.steps[i].outcome == Outcome::kOk && result.steps[i].time_ns <= time_ns) {
        return static_cast<double>(i + 1);
      }
    }
    return static_cast<double>(kLongest + 1);
  }

  const Model& model_;
  const Model* other_;
  CpuIsa isa_;
  std::uint64_t search_;
  double peak_;
};

double mean_of(const std::vector<Row>& rows, double (*value)(const Row&)) {
  double sum = 0;
  for (const Row& row : rows) {
    sum += std::log(std::max(1e-9, value(row)));
  }
  return std::exp(sum / static_cast<double>(std::max<std::size_t>(1, rows.size())));
}

Result<std::vector<Row>> run_list(Bench& bench, const std::string& name) {
  FORETUNE_TRY(const std::vector<Benchmark> list, loop::gym::load_benchmarks(name));
  std::vector<Row> rows;
  std::printf("%-18s", "");
  for (std::size_t i = 0; i < bench.rivals(); ++i) {
    std::printf("%11s", kNames[i]);
  }
  std::printf("  choose   near\n");
  for (const Benchmark& benchmark : list) {
    auto row = bench.run(benchmark);
    if (!row) {
      return fail_because(row.error(), benchmark.name);
    }
    std::printf("%-18s", row->name.c_str());
    for (std::size_t i = 0; i < bench.rivals(); ++i) {
      std::printf("%10.1f%%", 100 * row->share[i]);
    }
    std::printf("%6.0fus %6.0f\n", row->choose_us, row->measurements_to_near);
    std::fflush(stdout);
    rows.push_back(*std::move(row));
  }
  return rows;
}

constexpr std::size_t kKnownSteps = 4000;

// A random legal action.
template <class Mask>
std::size_t random_action(const Mask& mask, std::size_t count, Rng& rng) {
  std::size_t action = rng.below(count);
  while (!mask[action]) {
    action = rng.below(count);
  }
  return action;
}

// Steps a second of random episodes that were played before, so that every schedule and action is
// known: masks and observations included.
Result<double> vector_rate(NestTask& task) {
  constexpr std::size_t kEpisodes = 16;
  double seconds = 0;
  std::vector<std::vector<std::uint32_t>> rounds(kKnownSteps / kEpisodes);
  for (int pass = 0; pass < 3; ++pass) {
    loop::gym::VectorEnvironment environment({&task}, {.episodes = kEpisodes, .max_steps = 10}, 3);
    Rng rng(1);
    const double begin = bench::seconds_now();
    for (std::vector<std::uint32_t>& actions : rounds) {
      for (std::size_t e = 0; pass == 0 && e < kEpisodes; ++e) {
        actions.push_back(static_cast<std::uint32_t>(random_action(
            environment.masks().subspan(e * loop::LoopActions::kCount, loop::LoopActions::kCount),
            loop::LoopActions::kCount, rng)));
      }
      FORETUNE_TRY_STATUS(environment.step(actions));
    }
    seconds = bench::seconds_now() - begin;
  }
  return kKnownSteps / seconds;
}

// The same of the environment with a cursor and LoopTune's actions.
Result<double> single_rate(const loop::Computation& computation, CpuIsa isa) {
  FORETUNE_TRY(const auto measured,
               loop::gym::MeasuredEvaluator::create(computation, {.isa = isa}));
  loop::gym::CachedEvaluator cached(*measured);
  FORETUNE_TRY(loop::gym::Environment environment,
               loop::gym::Environment::create(computation, loop::ActionSet(), cached, 100));
  std::vector<float> observed(environment.options().max_loops * loop::gym::kLoopsTensorColumns);
  double seconds = 0;
  std::vector<std::size_t> actions;
  for (int pass = 0; pass < 3; ++pass) {
    Rng rng(1);
    environment.reset();
    const double begin = bench::seconds_now();
    for (std::size_t i = 0; i < kKnownSteps; ++i) {
      if (environment.is_over()) {
        environment.reset();
      }
      if (pass == 0) {
        const std::vector<bool>& legal = environment.legal_actions();
        actions.push_back(random_action(legal, legal.size(), rng));
      }
      FORETUNE_TRY(const auto result, environment.step(environment.actions()[actions[i]]));
      static_cast<void>(result);
      loop::gym::write_loops_tensor(environment.computation(), environment.state(), observed);
    }
    seconds = bench::seconds_now() - begin;
  }
  return kKnownSteps / seconds;
}

Result<double> known_steps_ratio(CpuIsa isa, Figures& figures) {
  FORETUNE_TRY(const loop::Computation computation, loop::matmul({.m = 128, .n = 128, .k = 128}));
  FORETUNE_TRY(const auto task, NestTask::measured(computation, isa, 100));
  FORETUNE_TRY(const double vectors, vector_rate(*task));
  FORETUNE_TRY(const double single, single_rate(computation, isa));
  figures.add("known_steps_per_second", vectors);
  return vectors / single;
}

// Microseconds of one step of the policy: observation, mask and scores.
double step_us(const Model& model, CpuIsa isa) {
  const auto computation = loop::matmul({.m = 192, .n = 96, .k = 64});
  loop::PolicyMachine machine = policy_machine(model.fingerprint.hardware);
  PolicyWalker walker(*policy_of(model), *computation, loop::VectorUnit::of(isa), machine);
  std::vector<loop::Nest> nests;
  constexpr int kWalks = 200;
  Rng rng(1);
  walker.walk(&rng, nests);
  const double begin = bench::seconds_now();
  std::uint64_t steps = 0;
  for (int i = 0; i < kWalks; ++i) {
    nests.clear();
    steps += walker.walk(&rng, nests);
  }
  return 1e6 * (bench::seconds_now() - begin) / static_cast<double>(steps);
}

Result<Model> read_policy(const std::string& path) {
  FORETUNE_TRY(Model model, read_model(path));
  if (policy_of(model) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, path, " is no model of kind policy");
  }
  return model;
}

void add_products(const std::vector<Row>& products, Figures& figures) {
  figures.add("share_of_peak_unmeasured",
              mean_of(products, [](const Row& row) { return row.share[kUnmeasured]; }));
  figures.add("textbook_share_of_peak",
              mean_of(products, [](const Row& row) { return row.share[kTextbook]; }));
  const auto of_best = [](const Row& row) { return row.share[kTen] / row.best(); };
  figures.add("vs_best_10", mean_of(products, of_best));
  figures.add("vs_search_10", mean_of(products, [](const Row& row) {
                return row.share[kTen] / row.share[kSearch];
              }));
  double worst = 1;
  std::vector<double> near;
  double choose = 0;
  double ten = 0;
  for (const Row& row : products) {
    worst = std::min(worst, of_best(row));
    near.push_back(row.measurements_to_near);
    choose = std::max(choose, row.choose_us);
    ten = std::max(ten, row.ten_ms);
  }
  figures.add("worst_vs_best_10", worst);
  figures.add("measurements_to_95_percent", median(near));
  figures.add("choose_us_worst", choose);
  figures.add("ten_ms_worst", ten);
}

std::vector<Row> rows_of(const std::vector<Row>& rows, const std::string& prefix) {
  std::vector<Row> chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen),
               [&](const Row& row) { return row.name.starts_with(prefix); });
  return chosen;
}

// Figures of the rows whose names begin like this.
void add_beyond(const std::vector<Row>& rows, const std::string& prefix, const std::string& suffix,
                Figures& figures) {
  const std::vector<Row> chosen = rows_of(rows, prefix);
  if (chosen.empty()) {
    return;
  }
  double worst = 1;
  for (const Row& row : chosen) {
    worst = std::min(worst, row.share[kTen] / row.best());
  }
  figures.add("beyond_products_vs_search" + suffix,
              mean_of(chosen, [](const Row& row) { return row.share[kTen] / row.share[kSearch]; }));
  figures.add("beyond_products_vs_textbook" + suffix, mean_of(chosen, [](const Row& row) {
                return row.share[kTen] / row.share[kTextbook];
              }));
  figures.add("beyond_products_unmeasured_vs_textbook" + suffix,
              mean_of(chosen, [](const Row& row) {
                return row.share[kUnmeasured] / row.share[kTextbook];
              }));
  figures.add("beyond_products_vs_best_10" + suffix,
              mean_of(chosen, [](const Row& row) { return row.share[kTen] / row.best(); }));
  figures.add("beyond_products_worst_vs_best_10" + suffix, worst);
}

void add_transfer(const std::vector<Row>& rows, const std::string& prefix, const std::string& name,
                  Figures& figures) {
  const std::vector<Row> chosen = rows_of(rows, prefix);
  figures.add(
      name, mean_of(chosen, [](const Row& row) { return row.share[kOtherTen] / row.share[kTen]; }));
  figures.add(name + "_unmeasured", mean_of(chosen, [](const Row& row) {
                return row.share[kOtherUnmeasured] / row.share[kUnmeasured];
              }));
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string isa_name = bench::argument(argc, argv, "isa");
  const CpuIsa isa = parse_cpu_isa(isa_name).value_or(best_cpu_isa());
  FORETUNE_TRY(const Model model, read_policy(bench::argument(argc, argv, "model")));
  std::unique_ptr<Model> other;
  if (const std::string path = bench::argument(argc, argv, "transfer"); !path.empty()) {
    FORETUNE_TRY(Model read, read_policy(path));
    other = std::make_unique<Model>(std::move(read));
  }
  Bench bench(model, other.get(), isa,
              bench::count_argument<std::uint64_t>(argc, argv, "search", 200),
              measure_fma_gflops(0.2, isa));
  FORETUNE_TRY(const double ratio, known_steps_ratio(isa, figures));
  figures.add("known_steps_ratio", ratio);
  figures.add("step_us", step_us(model, isa));
  if (const auto card = formats::parse_json(model.card_json)) {
    const formats::Json* const seconds = formats::member(*card, "seconds");
    if (seconds != nullptr && seconds->is_number()) {
      figures.add("training_seconds", seconds->get<double>());
    }
  }
  FORETUNE_TRY(const std::vector<Row> products,
               run_list(bench, bench::argument(argc, argv, "products", "mm64_256_16_test25")));
  add_products(products, figures);
  const std::string beyond = bench::argument(argc, argv, "beyond", "bench/shapes/loop_policy.txt");
  std::vector<Row> others;
  if (beyond != "none") {
    FORETUNE_TRY(others, run_list(bench, beyond));
    add_beyond(others, "", "", figures);
    for (const char* const kind : {"conv", "reduce", "map", "mm"}) {
      add_beyond(others, kind, concat(" ", kind), figures);
    }
  }
  if (other != nullptr) {
    add_transfer(products, "", "transfer_isa", figures);
    add_transfer(others, "conv", "transfer_conv", figures);
  }
  if (const auto seeds = bench::count_argument<std::uint64_t>(argc, argv, "seeds", 0); seeds > 0) {
    FORETUNE_TRY_STATUS(bench::report_regret(model, isa, seeds, figures));
  }
  for (const auto& [name, value] : figures.metrics) {
    std::printf("%-40s %.4g\n", name.c_str(), value);
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_policy", argc, argv, foretune::run);
}
