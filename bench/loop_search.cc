// Counts the measurements that each strategy needs. All trees that at most ten of LoopTune's
// actions lead to are measured once, and every strategy searches on these times, so that all see
// the same noise.
//
//   loop_search [--times FOLDER] [--steps 10] [--seeds 10] [--budget 1000] [--methods a,b]
//               [--problems N] [--lesson 3000] [--json FILE]
//
// FOLDER keeps the times, one file a problem (the thousandfold logarithm of ns, in the order of
// enumeration, 0: refused; gzip), and they are read from there when it has them. `guided+others`
// begins with a model of the other problems of the same type, or of all others when there is none
// of its type: it never trains on a row of the judged problem. Counts of measurements include
// failures.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/loop_problems.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/dataset.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/formats/compressed.h"
#include "foretune/formats/gzip.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/gym/recipe.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/measure.h"
#include "foretune/model/train/trainer.h"
#include "foretune/problem/problem_type.h"
#include "foretune/tune/strategy_contest.h"

namespace foretune {
namespace {

constexpr const char* kMethods =
    "base,recipe,random,greedy1,greedy2,beam2dfs,beam4dfs,beam2bfs,beam4bfs,annealing,evolution,"
    "mcts,guided";
constexpr std::string_view kWithPrior = "guided+others";

// All trees of a problem with their times.
struct Enumerated {
  std::string text;
  Problem problem;
  std::shared_ptr<Family> family;
  std::unique_ptr<Space> space;
  std::vector<Config> configs;                 // in the order of enumeration
  std::unordered_map<Config, double> time_ns;  // without refused configs
  double best_ns = std::numeric_limits<double>::infinity();
};

// Answers from the table.
class TableMeasurer final : public Measurer {
 public:
  explicit TableMeasurer(const Enumerated& table) : table_(table) {}

  Measurement measure(const Request& request) override {
    Measurement out{.problem = request.problem, .config = request.config, .context = context_};
    const auto found = table_.time_ns.find(request.config);
    if (found == table_.time_ns.end()) {
      out.outcome = Outcome::kPrepareFailed;
      out.reason = "refused";
      return out;
    }
    out.metrics = {{kTimeNs, found->second, 0, 1}};
    return out;
  }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int /*rounds*/) override {
    std::vector<Measurement> out;
    for (const Config& config : configs) {
      out.push_back(measure({.problem = problem, .config = config}));
    }
    return out;
  }
  const Context& context() const override { return context_; }

 private:
  const Enumerated& table_;
  Context context_{.threads = 1};
};

Result<std::vector<Config>> enumerate(const Space& space, std::size_t steps) {
  FORETUNE_TRY(const auto walk, create_walk("exhaustive", space, {.max_steps = steps}));
  std::vector<Config> all;
  Rng rng(1);
  while (true) {
    const std::vector<Config> batch = walk->ask(4096, rng);
    if (batch.empty()) {
      return all;
    }
    std::vector<Trial> trials;
    for (const Config& config : batch) {
      trials.push_back({.config = config, .value = 1});
    }
    walk->tell(trials);
    all.insert(all.end(), batch.begin(), batch.end());
  }
}

// Measures all trees, then times the fastest again, in turns, until their order is more than luck.
void measure(Enumerated& table) {
  constexpr std::size_t kFinalists = 200;
  constexpr int kRounds = 5;
  Protocol protocol = Protocol::brief(table.family->info());
  protocol.censor_factor = 0;
  const auto measurer = make_local_measurer(table.family, protocol, {.threads = 1});
  const auto time_of = [&](const Config& config) -> std::optional<double> {
    const Measurement found = measurer->measure({.problem = table.problem, .config = config});
    const MetricValue* const time = found.find(kTimeNs);
    return found.outcome == Outcome::kOk && time != nullptr ? std::optional(time->value)
                                                            : std::nullopt;
  };
  std::vector<std::pair<double, const Config*>> order;
  for (const Config& config : table.configs) {
    if (const auto time_ns = time_of(config)) {
      table.time_ns[config] = *time_ns;
      order.emplace_back(*time_ns, &config);
    }
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), kFinalists));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [first_ns, config] : order) {
      double& kept = table.time_ns[*config];
      kept = std::min(kept, time_of(*config).value_or(kept));
    }
  }
}

std::string file_of(const std::string& folder, std::size_t index) {
  return concat(folder, "/loop-trees-", index, ".txt.gz");
}

Status write_times(const Enumerated& table, const std::string& path) {
  std::string text = concat(table.text, "\n");
  for (const Config& config : table.configs) {
    const auto found = table.time_ns.find(config);
    text += concat(found == table.time_ns.end()
                       ? 0
                       : static_cast<int>(std::lround(1000 * std::log(found->second))),
                   "\n");
  }
  return write_file_atomically(
      path, formats::deflate_gzip(std::as_bytes(std::span(text.data(), text.size()))));
}

Status read_times(Enumerated& table, const std::string& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, formats::read_maybe_compressed(path));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::vector<std::string_view> lines = split(text, '\n');
  if (lines.size() < table.configs.size() + 1 || lines[0] != table.text) {
    return fail(ErrorCode::kMismatch, path, " is not of ", table.text);
  }
  for (std::size_t i = 0; i < table.configs.size(); ++i) {
    if (const auto value = parse_int(lines[i + 1]); value && *value > 0) {
      table.time_ns[table.configs[i]] = std::exp(static_cast<double>(*value) / 1000);
    }
  }
  return {};
}

Result<Enumerated> make_table(std::size_t index, const std::string& folder, std::size_t steps,
                              const Fingerprint& fingerprint) {
  FORETUNE_TRY(Problem problem, loop::problem_of(bench::kEnumeratedNests[index]));
  Enumerated table{.text = bench::kEnumeratedNests[index], .problem = std::move(problem)};
  FORETUNE_TRY(table.family,
               make_loop_nest({.fingerprint = fingerprint,
                               .data_path = {},
                               .parameters = {{"type", std::string(table.problem.schema().name)},
                                              {"actions", loop::ActionSet().text()},
                                              {"defaults", "start"}}}));
  FORETUNE_TRY(table.space, table.family->space(table.problem));
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(table.configs, enumerate(*table.space, steps));
  const double enumerated_s = bench::seconds_now() - begin_s;
  const std::string path = file_of(folder, index);
  if (!folder.empty() && std::filesystem::exists(path)) {
    FORETUNE_TRY_STATUS(read_times(table, path));
  } else {
    measure(table);
    if (!folder.empty()) {
      FORETUNE_TRY_STATUS(write_times(table, path));
    }
  }
  for (const auto& [config, time_ns] : table.time_ns) {
    table.best_ns = std::min(table.best_ns, time_ns);
  }
  std::printf("%-46s %6zu trees, %5zu refused, %.1f s to enumerate; the best %.1f GFLOP/s\n",
              table.text.c_str(), table.configs.size(), table.configs.size() - table.time_ns.size(),
              enumerated_s, problem_work(table.problem)->flops / table.best_ns);
  std::fflush(stdout);
  return table;
}

// Adds a part of a table as measurements: `count` random ones, and a quarter as many of the
// fastest, since a search has to distinguish these.
void add_lesson(const Enumerated& table, std::size_t count, Rng& rng, Dataset& lessons) {
  TableMeasurer measurer(table);
  std::vector<std::pair<double, Config>> known;
  for (const auto& [config, time_ns] : table.time_ns) {
    known.emplace_back(time_ns, config);
  }
  std::sort(known.begin(), known.end());
  const std::size_t fastest = std::min(known.size(), count / 4);
  for (std::size_t i = fastest; i < std::min(known.size(), fastest + count); ++i) {
    std::swap(known[i], known[i + rng.below(known.size() - i)]);
  }
  known.resize(std::min(known.size(), fastest + count));
  for (const auto& [time_ns, config] : known) {
    lessons.add(measurer.measure({.problem = table.problem, .config = config}));
  }
}

// Trains a model on the other problems of the same type, or on all others when there are none.
Result<Model> learn_others(const std::vector<Enumerated>& tables, std::size_t left_out,
                           std::size_t count) {
  std::vector<const Enumerated*> all;
  std::vector<const Enumerated*> alike;
  for (const Enumerated& table : tables) {
    if (&table != &tables[left_out]) {
      all.push_back(&table);
      if (table.problem.type() == tables[left_out].problem.type()) {
        alike.push_back(&table);
      }
    }
  }
  const std::vector<const Enumerated*>& others = alike.empty() ? all : alike;
  Dataset lessons(header_of(others.front()->family->info()));
  Rng rng(7);
  for (const Enumerated* const other : others) {
    add_lesson(*other, count, rng, lessons);
  }
  TrainOptions options;
  options.folds = 0;
  options.gbdt.trees = 300;
  options.gbdt.leaves = 63;
  options.gbdt.learning_rate = 0.1;
  FORETUNE_TRY(TrainResult trained, train_gbdt(lessons, options));
  return std::move(trained.model);
}

// Results of one method on all problems and seeds.
struct Tally {
  std::vector<double> needed;  // measurements to 95 %; the budget + 1 when it never got there
  std::vector<double> share_at_20;
  std::vector<double> share_at_100;
  std::vector<double> share_at_end;
  std::vector<double> measured;
  double seconds = 0;
};

double share_after(const std::vector<TuneStep>& steps, std::size_t count, double best_ns) {
  double least_ns = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(count, steps.size()); ++i) {
    least_ns = std::min(least_ns, steps[i].time_ns);
  }
  return best_ns / least_ns;
}

// Returns the number of measurements to come within 5 % of the best; 0 when it never did.
std::size_t measurements_to_95(const std::vector<TuneStep>& steps, double best_ns) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (best_ns / steps[i].time_ns >= 0.95) {
      return i + 1;
    }
  }
  return 0;
}

Result<std::vector<TuneStep>> search(const Enumerated& table, const std::string& name,
                                     const Model* prior, std::size_t steps, std::size_t budget,
                                     std::uint64_t seed) {
  const bool is_recipe = name == "recipe";
  FORETUNE_TRY(const Contestant contestant, Contestant::parse(is_recipe            ? "base"
                                                              : name == kWithPrior ? "guided"
                                                                                   : name));
  TuneOptions options;
  options.strategy = contestant.strategy;
  options.lookahead = contestant.lookahead;
  options.width = contestant.width;
  options.max_steps = steps;
  options.budget.measurements = budget;
  options.seed = seed;
  options.prior = name == kWithPrior ? prior : nullptr;
  if (is_recipe) {
    options.first =
        loop::gym::recipe_configs(dynamic_cast<const loop::ScheduleSpace&>(*table.space));
  }
  TableMeasurer measurer(table);
  FORETUNE_TRY(TuneResult found,
               search_problem(*table.family, measurer, nullptr, table.problem, options, {}));
  return std::move(found.steps);
}

std::vector<std::string> methods_of(int argc, char** argv, std::size_t problems) {
  std::vector<std::string> methods;
  const std::string named = bench::argument(argc, argv, "methods", kMethods);
  for (const std::string_view name : split(named, ',')) {
    methods.emplace_back(name);
  }
  if (named == kMethods && problems > 1) {
    methods.emplace_back(kWithPrior);
  }
  return methods;
}

void add_figures(const std::string& name, const Tally& tally, std::size_t reached,
                 Figures& figures) {
  const std::string median = concat(
      fixed(quantile(tally.needed, 0.5), 0), " (", fixed(quantile(tally.needed, 0.25), 0), " to ",
      fixed(quantile(tally.needed, 0.75), 0), "), ", reached, "/", tally.needed.size());
  std::printf("%-16s %38s %8.3f %8.3f %8.3f %9.0f %7.1f\n", name.c_str(), median.c_str(),
              geometric_mean(tally.share_at_20), geometric_mean(tally.share_at_100),
              geometric_mean(tally.share_at_end), quantile(tally.measured, 0.5), tally.seconds);
  std::fflush(stdout);
  figures.add(concat("measurements_to_95_percent ", name), quantile(tally.needed, 0.5));
  figures.add(concat("share_of_optimum_at_100 ", name), geometric_mean(tally.share_at_100));
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string folder = bench::argument(argc, argv, "times");
  const auto steps = bench::count_argument<std::size_t>(argc, argv, "steps", 10);
  const auto seeds = bench::count_argument<std::uint64_t>(argc, argv, "seeds", 10);
  const auto budget = bench::count_argument<std::size_t>(argc, argv, "budget", 1000);
  const auto lesson = bench::count_argument<std::size_t>(argc, argv, "lesson", 3000);
  const auto problems = std::min(bench::kEnumeratedNests.size(),
                                 bench::count_argument<std::size_t>(argc, argv, "problems", 100));
  const std::vector<std::string> methods = methods_of(argc, argv, problems);
  const Fingerprint fingerprint = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks(0.1));
  std::vector<Enumerated> tables;
  for (std::size_t i = 0; i < problems; ++i) {
    FORETUNE_TRY(Enumerated table, make_table(i, folder, steps, fingerprint));
    tables.push_back(std::move(table));
  }
  std::vector<Model> priors;
  const bool needs_priors = std::find(methods.begin(), methods.end(), kWithPrior) != methods.end();
  for (std::size_t i = 0; needs_priors && i < problems; ++i) {
    FORETUNE_TRY(Model prior, learn_others(tables, i, lesson));
    priors.push_back(std::move(prior));
  }
  std::printf("%-16s %38s %8s %8s %8s %9s %7s\n", "", "to 95 %: median (quartiles), reached",
              "at 20", "at 100", "at end", "measured", "s");
  for (const std::string& name : methods) {
    Tally tally;
    std::size_t reached = 0;
    double worst = 0;
    const double begin_s = bench::seconds_now();
    for (std::size_t i = 0; i < tables.size(); ++i) {
      std::vector<double> of_problem;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        FORETUNE_TRY(
            const std::vector<TuneStep> found,
            search(tables[i], name, needs_priors ? &priors[i] : nullptr, steps, budget, seed));
        const double best_ns = tables[i].best_ns;
        const std::size_t needed = measurements_to_95(found, best_ns);
        reached += needed > 0 ? 1 : 0;
        of_problem.push_back(static_cast<double>(needed > 0 ? needed : budget + 1));
        tally.share_at_20.push_back(share_after(found, 20, best_ns));
        tally.share_at_100.push_back(share_after(found, 100, best_ns));
        tally.share_at_end.push_back(share_after(found, budget, best_ns));
        tally.measured.push_back(static_cast<double>(found.size()));
      }
      tally.needed.insert(tally.needed.end(), of_problem.begin(), of_problem.end());
      const double median = quantile(of_problem, 0.5);
      worst = std::max(worst, median);
      figures.add(concat("measurements_to_95_percent ", name, " ", tables[i].text), median);
      if (name == kWithPrior) {
        std::printf("  %-46s median %.0f\n", tables[i].text.c_str(), median);
        figures.add(concat("measurements_to_95_percent_with_prior ", tables[i].text), median);
      }
    }
    tally.seconds = bench::seconds_now() - begin_s;
    add_figures(name, tally, reached, figures);
    if (name == kWithPrior) {
      figures.add("measurements_to_95_percent_with_prior", quantile(tally.needed, 0.5));
      figures.add("measurements_to_95_percent_with_prior_worst_problem", worst);
    }
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_search", argc, argv, foretune::run);
}
