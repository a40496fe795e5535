#include "trainer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "evaluation.h"
#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/features/feature_table.h"
#include "foretune/formats/tensorboard_events.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/gym/measured_evaluator.h"
#include "foretune/loop/gym/nest_task.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/policy/policy_body.h"
#include "foretune/problem/problem_type.h"
#include "learner.h"
#include "rollout.h"
#include "tasks.h"
#include "time_network.h"
#include "torch_policy.h"

namespace foretune::policy_training {
namespace {

using loop::gym::Benchmark;
using loop::gym::Evaluated;
using loop::gym::NestTask;

constexpr std::string_view kTable = "loop-nest";
constexpr std::size_t kTimeRows = 60000;
constexpr double kTimeShare = 0.1;  // of the run, for the network of times at the end
constexpr double kLongestTimeTraining = 45;
constexpr double kSecondsBetweenCheckpoints = 30;
constexpr double kSecondsBetweenLines = 5;
// Ape-X: actor i of n explores by 0.4 to the power of 1 + 7 i / (n - 1).
constexpr double kMostRandom = 0.4;
constexpr double kSpread = 7;
constexpr std::size_t kMostPool = 4096;
constexpr std::size_t kPortfolio = 32;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Speeds by a formula that prefers what the compiler can use, for runs that repeat to the bit.
class FormulaEvaluator final : public loop::gym::Evaluator {
 public:
  FormulaEvaluator(const loop::Computation& computation, const loop::VectorUnit& unit,
                   double peak_gflops)
      : computation_(computation), unit_(unit), peak_(peak_gflops) {}

  Evaluated evaluate(const loop::Nest& nest) override {
    const auto lowered = loop::lower(computation_, nest, unit_);
    if (!lowered) {
      return {.ok = false, .reason = lowered.error().message};
    }
    double registers = 1;
    for (auto level = static_cast<std::size_t>(lowered->nest.block);
         level < lowered->nest.loops.size(); ++level) {
      const auto rounds = static_cast<double>(lowered->nest.rounds(computation_, level));
      registers *= computation_.vars[lowered->nest.loops[level].var].is_reduction ? 1
                   : level == lowered->vector_level
                       ? std::ceil(rounds / static_cast<double>(lowered->lanes))
                       : rounds;
    }
    const double share = std::min(1.0, registers / 24) * (lowered->lanes > 1 ? 1 : 0.1);
    const double gflops = peak_ * std::max(0.01, share);
    return {.ok = true, .seconds = 1e-9 * computation_.flops() / gflops, .gflops = gflops};
  }

 private:
  loop::Computation computation_;
  loop::VectorUnit unit_;
  double peak_;
};

class Trainer {
 public:
  Trainer(const TrainPolicyOptions& options, const volatile std::sig_atomic_t& stop)
      : options_(options), stop_(stop) {}

  Result<double> run() {
    FORETUNE_TRY_STATUS(prepare());
    FORETUNE_TRY_STATUS(evaluate_start());
    FORETUNE_TRY_STATUS(learn());
    if (!is_paused()) {
      FORETUNE_TRY_STATUS(finish());
      FORETUNE_TRY_STATUS(evaluate("end"));
    }
    return last_log_share_ ? std::exp(*last_log_share_) : 0;
  }

 private:
  Status prepare() {
    isa_ = options_.isa.value_or(best_cpu_isa());
    if (isa_ > best_cpu_isa() || isa_ == CpuIsa::kGeneric) {
      return fail(ErrorCode::kUnsupported, "this CPU runs ", to_string(best_cpu_isa()), ", not ",
                  to_string(isa_));
    }
    FORETUNE_TRY(benchmarks_, benchmarks_of(options_.dataset, options_.tasks, options_.seed));
    if (!options_.test.empty()) {
      FORETUNE_TRY(test_, benchmarks_of(options_.test, options_.tasks, options_.seed + 1));
    }
    FORETUNE_TRY(table_, find_feature_table(kTable));
    FORETUNE_TRY_STATUS(describe_machine());
    const loop::PolicyMachine machine = policy_machine(info_.fingerprint.hardware);
    for (const Benchmark& benchmark : benchmarks_) {
      FORETUNE_TRY(Problem problem, loop::problem_of(benchmark.computation.name));
      problems_.push_back(std::move(problem));
      const loop::VectorUnit unit = loop::VectorUnit::of(isa_);
      Result<std::unique_ptr<NestTask>> task =
          options_.is_deterministic ? NestTask::create(benchmark.computation, unit,
                                                       std::make_unique<FormulaEvaluator>(
                                                           benchmark.computation, unit, peak_),
                                                       peak_, machine)
                                    : measured_task(benchmark, machine);
      if (!task) {
        return fail_because(task.error(), benchmark.name);
      }
      tasks_.push_back(*std::move(task));
      pointers_.push_back(tasks_.back().get());
    }
    policy_.emplace(options_.width, options_.seed);
    learner_ = options_.learns_values() ? make_q_learner(*policy_, options_)
                                        : make_on_policy_learner(*policy_, options_);
    elites_.emplace(tasks_.size());
    rows_.emplace(*table_, info_.fingerprint.hardware, kTimeRows, options_.seed);
    state_.identity = identity();
    return prepare_folder();
  }

  Result<std::unique_ptr<NestTask>> measured_task(const Benchmark& benchmark,
                                                  const loop::PolicyMachine& machine) {
    std::shared_ptr<KnownMeasurements> known;
    if (!options_.cache.empty()) {
      const ProblemSchema& schema = *find_problem_schema(problems_.back().type());
      std::shared_ptr<KnownMeasurements>& file = known_[std::string(schema.name)];
      if (file == nullptr) {
        std::error_code code;
        std::filesystem::create_directories(options_.cache, code);
        FORETUNE_TRY(file, loop::gym::MeasuredEvaluator::open_known(
                               options_.cache / concat(schema.name, ".ftd"), benchmark.computation,
                               {.isa = isa_}));
      }
      known = file;
    }
    return NestTask::measured(benchmark.computation, isa_, peak_, machine, std::move(known));
  }

  Status describe_machine() {
    const CpuFacts facts = read_cpu_facts();
    CpuPeaks peaks;
    if (!options_.is_deterministic) {
      peaks = measure_cpu_peaks();
    }
    // The header names one type; the policy is for all that the feature table describes.
    FORETUNE_TRY(loop::Computation product, loop::matmul({.m = 64, .n = 64, .k = 64}));
    FORETUNE_TRY(const NestBench bench, make_nest_bench(std::move(product), {.isa = isa_}, 1,
                                                        cpu_fingerprint(facts, peaks)));
    info_ = bench.family->info();
    peak_ = options_.peak > 0           ? options_.peak
            : options_.is_deterministic ? 100
                                        : measure_fma_gflops(0.2, isa_);
    return {};
  }

  // Runs with other options or computations cannot go on from here.
  [[nodiscard]] std::uint64_t identity() const {
    std::string text = concat(to_string(options_.algorithm), " ", options_.steps, " ",
                              options_.episodes, " ", options_.actors, " ", options_.width, " ",
                              options_.batch, " ", options_.seed, " ", to_string(isa_));
    for (const Benchmark& benchmark : benchmarks_) {
      text += concat("\n", benchmark.computation.name);
    }
    return hash64(text);
  }

  [[nodiscard]] std::filesystem::path folder() const {
    return options_.resume.empty() ? options_.folder : options_.resume;
  }
  Status prepare_folder() {
    if (folder().empty()) {
      return {};
    }
    std::error_code code;
    std::filesystem::create_directories(folder(), code);
    if (code) {
      return fail(ErrorCode::kIo, folder().string(), ": ", code.message());
    }
    if (!options_.resume.empty()) {
      FORETUNE_TRY_STATUS(
          read_checkpoint(checkpoint_path(), state_, *policy_, learner_->optimizer(), *elites_));
      first_round_ = state_.round;
    }
    FORETUNE_TRY(curves_, formats::TensorboardWriter::create(folder(), wall_time_s(), "policy"));
    return {};
  }
  [[nodiscard]] std::filesystem::path checkpoint_path() const {
    return folder() / "policy.checkpoint";
  }
  static double wall_time_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  [[nodiscard]] ActorOptions actor_options() const {
    ActorOptions out{.environment = {.episodes = options_.episodes,
                                     .max_steps = options_.steps,
                                     .reward = options_.reward,
                                     .price = options_.price},
                     .steps = 2 * std::size_t{options_.steps},
                     .epsilon = {}};
    if (options_.algorithm == Algorithm::kDqn) {
      out.epsilon = {std::max(0.05, 1 - 3 * progress())};
    } else if (options_.algorithm == Algorithm::kApex) {
      for (std::uint32_t i = 0; i < options_.episodes; ++i) {
        const double place =
            options_.episodes > 1 ? static_cast<double>(i) / (options_.episodes - 1) : 0;
        out.epsilon.push_back(std::pow(kMostRandom, 1 + kSpread * place));
      }
    }
    return out;
  }
  // Learners that allow for an older policy play the next round while they learn from this one.
  [[nodiscard]] bool plays_ahead() const {
    return options_.algorithm != Algorithm::kPpo && options_.algorithm != Algorithm::kA2c &&
           options_.algorithm != Algorithm::kDqn;
  }
  [[nodiscard]] double learning_seconds() const {
    return options_.seconds - std::min(kLongestTimeTraining, kTimeShare * options_.seconds);
  }
  [[nodiscard]] double progress() const {
    const double by_rounds =
        options_.iterations == 0 ? 0 : static_cast<double>(state_.round) / options_.iterations;
    // Time is not the same twice.
    const double by_time = options_.is_deterministic ? 0 : state_.seconds / learning_seconds();
    return std::min(1.0, std::max(by_rounds, by_time));
  }
  [[nodiscard]] bool is_paused() const {
    return options_.pause_after > 0 && state_.round >= first_round_ + options_.pause_after;
  }
  [[nodiscard]] bool is_over() const {
    return stop_ != 0 || is_paused() || progress() >= 1 ||
           (options_.is_deterministic && options_.iterations == 0);
  }
  [[nodiscard]] std::uint64_t seed_of(std::uint64_t round, std::uint64_t use) const {
    return Rng(options_.seed).split(round).split(use).next();
  }
  using Played = Result<std::vector<Segment>>;
  [[nodiscard]] Played play_round(const PolicyNetwork& network, std::uint64_t round) {
    return play_all(pointers_, network, actor_options(), options_.actors, seed_of(round, 0),
                    &*elites_);
  }

  Status learn() {
    at::set_num_threads(plays_ahead() ? 1 : static_cast<int>(options_.actors));
    std::future<Played> ahead;
    double last_checkpoint = now_s();
    double last_line = 0;
    while (!is_over()) {
      const double begin = now_s();
      Played played = ahead.valid() ? ahead.get() : play_round(policy_->exported(), state_.round);
      if (!played) {
        return fail_because(played.error(), "round ", state_.round);
      }
      keep_times();
      // The next round may change them while this one is learned from.
      const Elites elites(elites_->all());
      if (plays_ahead()) {
        ahead = std::async(std::launch::async,
                           [this, network = policy_->exported(), round = state_.round + 1] {
                             return play_round(network, round);
                           });
      }
      const double between = now_s();
      const LearnStats stats =
          learner_->learn(*played, elites, progress(), seed_of(state_.round, 1));
      ++state_.round;
      state_.seconds += now_s() - begin;
      remember_share(*played);
      for (const Segment& segment : *played) {
        state_.steps += segment.actions.size();
      }
      if (now_s() - last_line > kSecondsBetweenLines || is_over()) {
        last_line = now_s();
        FORETUNE_TRY_STATUS(report(*played, stats, between - begin));
      }
      if (!folder().empty() &&
          (now_s() - last_checkpoint > kSecondsBetweenCheckpoints || is_over())) {
        last_checkpoint = now_s();
        FORETUNE_TRY_STATUS(
            write_checkpoint(checkpoint_path(), state_, *policy_, learner_->optimizer(), *elites_));
      }
    }
    return {};
  }

  void keep_times() {
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      const std::vector<loop::gym::ScoredNest> evaluated = tasks_[task]->take_evaluated();
      if (evaluated.empty()) {
        continue;
      }
      const auto space =
          loop::ScheduleSpace::of_loops(tasks_[task]->computation(), tasks_[task]->unit());
      for (const loop::gym::ScoredNest& scored : evaluated) {
        rows_->add(task, problems_[task], space->config({.nest = scored.nest, .cursor = 0}),
                   scored.log_share);
      }
    }
  }

  // Mean over tasks of ln of the best share so far.
  [[nodiscard]] double best_so_far() const {
    double sum = 0;
    double count = 0;
    for (const NestTask* const task : pointers_) {
      if (const auto best = task->best()) {
        sum += best->log_share;
        ++count;
      }
    }
    return count > 0 ? std::exp(sum / count) : 0;
  }

  // Mean of ln of the shares that a round's episodes ended with; nothing where none ended.
  static std::optional<double> log_share_of(const std::vector<Segment>& played) {
    double sum = 0;
    double ended = 0;
    for (const Segment& segment : played) {
      for (const float share : segment.finals) {
        sum += static_cast<double>(share);
        ++ended;
      }
    }
    return ended > 0 ? std::optional(sum / ended) : std::nullopt;
  }

  void remember_share(const std::vector<Segment>& played) {
    constexpr double kNewest = 0.1;
    if (const std::optional<double> share = log_share_of(played)) {
      last_log_share_ =
          last_log_share_ ? *last_log_share_ + kNewest * (*share - *last_log_share_) : *share;
    }
  }

  Status report(const std::vector<Segment>& played, const LearnStats& stats, double play_s) {
    const std::optional<double> log_share = log_share_of(played);
    const double share = log_share ? std::exp(*log_share) : 0;
    std::uint64_t evaluations = 0;
    for (const NestTask* const task : pointers_) {
      evaluations += task->evaluations();
    }
    const std::string line =
        concat("round ", state_.round, " seconds ", std::lround(state_.seconds), " steps ",
               state_.steps, " measured ", evaluations, " share ", fixed(share, 4), " best ",
               fixed(best_so_far(), 4), " loss ", fixed(stats.loss, 3), " entropy ",
               fixed(stats.entropy, 3), " play ", fixed(play_s, 3), "\n");
    if (std::fputs(line.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
      return fail(ErrorCode::kCancelled, "nobody reads the progress any more");
    }
    if (curves_) {
      const auto step = static_cast<std::int64_t>(state_.round);
      const double wall = wall_time_s();
      FORETUNE_TRY_STATUS(curves_->add_scalar("share_of_peak", step, share, wall));
      FORETUNE_TRY_STATUS(curves_->add_scalar("best_share_of_peak", step, best_so_far(), wall));
      FORETUNE_TRY_STATUS(curves_->add_scalar("loss", step, stats.loss, wall));
      FORETUNE_TRY_STATUS(curves_->add_scalar("entropy", step, stats.entropy, wall));
      FORETUNE_TRY_STATUS(curves_->flush());
      table_of_rounds_ +=
          concat(state_.round, ",", state_.seconds, ",", state_.steps, ",", evaluations, ",", share,
                 ",", best_so_far(), ",", stats.loss, ",", stats.entropy, "\n");
      return write_text_file_atomically(
          folder() / "rounds.csv",
          concat("round,seconds,steps,measured,share,best,loss,entropy\n", table_of_rounds_));
    }
    return {};
  }

  Status finish() {
    for (const auto& [type, file] : known_) {
      FORETUNE_TRY_STATUS(file->status());
    }
    at::set_num_threads(static_cast<int>(options_.actors));
    // A limit of time would make a repeated run another one.
    constexpr double kNoLimit = 1e9;
    const double limit =
        options_.is_deterministic ? kNoLimit : std::max(1.0, options_.seconds - learning_seconds());
    FORETUNE_TRY(TimeNetwork times, train_time_network(*rows_, limit, options_.seed));
    std::printf("times: %zu schedules, residual %.3f\n", rows_->size(), times.residual_std);
    set_model(std::move(times));
    if (!options_.model.empty()) {
      FORETUNE_TRY_STATUS(write_model(*model_, options_.model));
    }
    return {};
  }

  void set_model(TimeNetwork times) {
    Model model;
    model.family = info_.name;
    model.problem_type = info_.problem_type;
    model.problem_schema = find_problem_schema(info_.problem_type)->id();
    model.config_schema = info_.config_schema;
    model.feature_table = table_->name();
    model.feature_table_id = feature_table_id(*table_);
    model.fingerprint = info_.fingerprint;
    model.target = "relative-log";
    model.residual_std = times.residual_std;
    model.seed = options_.seed;
    const std::size_t columns = feature_count(*table_, FeatureKind::kProblem);
    std::vector<double> row(columns);
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      table_->problem_row(problems_[task], info_.fingerprint.hardware, row);
      if (model.problem_range.empty()) {
        for (const double value : row) {
          model.problem_range.emplace_back(value, value);
        }
      }
      for (std::size_t c = 0; c < columns; ++c) {
        model.problem_range[c].first = std::min(model.problem_range[c].first, row[c]);
        model.problem_range[c].second = std::max(model.problem_range[c].second, row[c]);
      }
    }
    add_pool(model);
    model.card_json =
        concat(R"({"trainer": ")", to_string(options_.algorithm), R"(", "rounds": )", state_.round,
               R"(, "steps": )", state_.steps, R"(, "seconds": )",
               options_.is_deterministic ? 0 : state_.seconds, R"(, "computations": )",
               tasks_.size(), R"(, "share_of_peak": )", best_so_far(), "}");
    PolicyBody body;
    body.policy = policy_->exported();
    elites_->fix_constants_of(body.policy);
    for (std::size_t operation = 0; operation < loop::LoopActions::kOperations; ++operation) {
      if (!tasks_.front()->actions().offers(operation)) {
        never_choose(body.policy, operation);
      }
    }
    body.max_steps = options_.steps;
    body.temperature = options_.learns_values() ? 0.1 : 1;
    body.networks.push_back(std::move(times.network));
    foretune::set_policy(model, std::move(body));
    model_ = std::move(model);
  }

  // The best schedules of the computations, for users of models that know of no policies.
  void add_pool(Model& model) const {
    std::unordered_set<Config> seen;
    for (const std::unique_ptr<NestTask>& task : tasks_) {
      const auto best = task->best();
      if (!best || model.pool.size() >= kMostPool) {
        continue;
      }
      const auto space = loop::ScheduleSpace::of_loops(task->computation(), task->unit());
      Config config = space->config({.nest = best->nest, .cursor = 0});
      if (seen.insert(config).second) {
        model.pool.push_back(std::move(config));
      }
    }
    for (std::uint32_t i = 0; i < std::min(model.pool.size(), kPortfolio); ++i) {
      model.portfolio.push_back(i);
    }
  }

  // Before anything was learned, times are unknown, too: a network of zeros takes every schedule
  // for as good as another, and the first one is where the untrained policy's walk began.
  Status evaluate_start() {
    TimeNetwork times;
    times.network = unknown_times(*table_);
    set_model(std::move(times));
    const Status status = evaluate("start");
    model_.reset();
    return status;
  }

  Status evaluate(const std::string& when) {
    if (folder().empty() || options_.eval_size == 0 || options_.is_deterministic || stop_ != 0) {
      return {};
    }
    // Another program may have had the core when the run began.
    const double peak = options_.peak > 0 ? peak_ : std::max(peak_, measure_fma_gflops(0.2, isa_));
    const EvaluationSettings settings{.isa = isa_,
                                      .peak_gflops = peak,
                                      .machine = policy_machine(info_.fingerprint.hardware),
                                      .measurements = options_.eval_measurements,
                                      .seed = options_.seed};
    const std::filesystem::path where =
        folder() / when / std::string(to_string(options_.algorithm));
    std::error_code code;
    std::filesystem::create_directories(where, code);
    for (const auto& [name, list] : {std::pair("train", &benchmarks_), std::pair("test", &test_)}) {
      std::vector<Benchmark> some(list->begin(),
                                  list->begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                      list->size(), options_.eval_size)));
      FORETUNE_TRY(const auto rows, evaluate_policy(*model_, some, settings));
      if (rows.empty()) {
        continue;
      }
      using E = EvaluatedBenchmark;
      std::printf("%s %s: start %.3f, unmeasured %.3f, best of %u %.3f, textbook %.3f\n",
                  when.c_str(), name, geometric_mean(rows, &E::start),
                  geometric_mean(rows, &E::unmeasured), options_.eval_measurements,
                  geometric_mean(rows, &E::best), geometric_mean(rows, &E::textbook));
      FORETUNE_TRY_STATUS(write_evaluation(where / concat(name, ".csv"), rows));
    }
    return {};
  }

  const TrainPolicyOptions& options_;
  const volatile std::sig_atomic_t& stop_;
  CpuIsa isa_ = CpuIsa::kAvx2;
  double peak_ = 0;
  FamilyInfo info_;
  const FeatureTable* table_ = nullptr;
  std::vector<Benchmark> benchmarks_;
  std::vector<Benchmark> test_;
  std::vector<Problem> problems_;
  std::map<std::string, std::shared_ptr<KnownMeasurements>> known_;  // by type of problem
  std::vector<std::unique_ptr<NestTask>> tasks_;
  std::vector<NestTask*> pointers_;
  std::optional<TorchPolicy> policy_;
  std::unique_ptr<Learner> learner_;
  std::optional<Elites> elites_;
  std::optional<TimeRows> rows_;
  std::optional<Model> model_;
  std::optional<formats::TensorboardWriter> curves_;
  std::string table_of_rounds_;
  RunState state_;
  std::uint64_t first_round_ = 0;         // of this call
  std::optional<double> last_log_share_;  // of the episodes' ends, a mean that forgets
};

}  // namespace

Result<double> train_policy(const TrainPolicyOptions& options,
                            const volatile std::sig_atomic_t& stop) {
  return Trainer(options, stop).run();
}

}  // namespace foretune::policy_training
