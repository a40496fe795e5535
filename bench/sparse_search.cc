// Searches for the best config of sparse products with a model and without one, on real matrices.
//
//   sparse_search --data FOLDER --model FILE [--op spmm,spmv,sddmm] [--width 128] [--every 1]
//                 [--measurements 100] [--seconds 10] [--without 500] [--rounds 9] [--json FILE]
//
// FOLDER holds MatrixMarket files, of which every n-th by name is taken. With the model, all
// configs of the space are ranked and the first ones measured, a tenth of them at random, up to so
// many measurements or seconds. Without it, the local search measures `--without` configs, and what
// its best and the model's miss was not found by either. The bests of both, the model's first
// choice and the textbook config are timed in turns.
//
// `gap` is the time of a choice over the time of the search without the model, in percent: below 0
// the choice is faster. The convergence is the best time of either search over the best time after
// so many measurements, by the times of the searches themselves.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "bench/contest.h"
#include "foretune/base/statistics.h"
#include "foretune/families/sparse_cpu/sparse_cpu.h"
#include "foretune/family/family.h"
#include "foretune/formats/gzip.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_scorer.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/select/select.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

constexpr std::array kCounts{1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U};

struct Arguments {
  std::string folder;
  std::string operations;
  std::string width;
  std::size_t every = 1;
  std::uint64_t measurements = 100;
  double seconds = 10;
  std::uint64_t without = 500;
  int rounds = 9;
};

// The cost of a search, and its best time after each of kCounts measurements.
struct Searched {
  Config best;
  double seconds = 0;
  double ranking_s = 0;  // until the first measurement: drawing and scoring the configs
  double packing_s = 0;
  std::uint64_t measured = 0;
  std::vector<double> best_after;
};

// One product's figures, gaps in percent.
struct Product {
  Searched with;
  Searched without;
  double gap = 0;
  double pick_gap = 0;
  double textbook_gap = 0;
  bool abstained = false;
};

std::vector<double> best_after(const std::vector<TuneStep>& steps) {
  std::vector<double> out;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (steps[step].outcome == Outcome::kOk) {
      best = std::min(best, steps[step].time_ns);
    }
    if (std::find(kCounts.begin(), kCounts.end(), step + 1) != kCounts.end()) {
      out.push_back(best);
    }
  }
  out.resize(kCounts.size(), best);
  return out;
}

double packing_seconds(const TuneResult& result) {
  double out = 0;
  for (const TunedConfig& config : result.measured) {
    for (const MetricValue& value : config.values) {
      out += value.metric == kPackNs ? value.value * 1e-9 : 0;
    }
  }
  return out;
}

class Bench {
 public:
  static Result<Bench> open(const Arguments& arguments, const std::string& model_path) {
    Bench bench(arguments);
    FORETUNE_TRY(bench.model_, read_model(model_path));
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks(0.5));
    options.threads = 1;
    options.payload_folders = {arguments.folder};
    FORETUNE_TRY(bench.family_, create_sparse_cpu(options, &formats::inflate_gzip));
    FORETUNE_TRY(bench.scorer_, make_scorer(*bench.model_));
    FORETUNE_TRY(bench.selector_, Selector::create(*bench.model_));
    FORETUNE_TRY(bench.store_, PayloadStore::open(options.payload_folders, &formats::inflate_gzip));
    return bench;
  }

  Status run(Figures& figures) {
    FORETUNE_TRY(const std::vector<std::string> files, matrix_files());
    std::vector<Product> all;
    for (const std::string_view operation : split(arguments_.operations, ',')) {
      std::printf("%s\n  %-38s %5s %6s %7s %7s %7s %8s  config\n", std::string(operation).c_str(),
                  "matrix", "meas.", "s", "gap", "pick", "without", "textbook");
      std::vector<Product> products;
      for (const std::string& file : files) {
        FORETUNE_TRY(products.emplace_back(), search(std::string(operation), file));
      }
      report(std::string(operation), products, figures);
      all.insert(all.end(), products.begin(), products.end());
    }
    report("all", all, figures);
    return {};
  }

 private:
  explicit Bench(const Arguments& arguments) : arguments_(arguments) {}

  [[nodiscard]] Result<std::vector<std::string>> matrix_files() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(arguments_.folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".mtx") || name.ends_with(".mtx.gz")) {
        names.push_back(name);
      }
    }
    std::sort(names.begin(), names.end());
    std::vector<std::string> chosen;
    for (std::size_t i = 0; i < names.size(); i += arguments_.every) {
      chosen.push_back(names[i]);
    }
    if (chosen.empty()) {
      return fail(ErrorCode::kNotFound, "there are no matrices in ",
                  foretune::quoted(arguments_.folder, 200));
    }
    return chosen;
  }

  Result<Searched> searched(const Problem& problem, const Scorer* scorer, const Budget& budget) {
    Context context;
    context.machine = family_->info().fingerprint.digest();
    context.device = family_->info().fingerprint.device;
    context.threads = 1;
    Protocol protocol;
    protocol.windows = 2;
    protocol.max_windows = 3;
    const std::unique_ptr<Measurer> measurer = make_local_measurer(family_, protocol, context);
    CollectHooks hooks;
    hooks.now_s = &bench::seconds_now;
    TuneOptions options;
    options.strategy = scorer != nullptr ? "model" : "local";
    options.scorer = scorer;
    options.budget = budget;
    Searched out;
    const double begin = bench::seconds_now();
    if (scorer != nullptr) {
      StrategyOptions ranking;
      ranking.scorer = scorer;
      ranking.hardware = family_->info().fingerprint.hardware;
      FORETUNE_TRY(const std::unique_ptr<Space> space, family_->space(problem));
      FORETUNE_TRY(const auto strategy, create_strategy("model", problem, *space, ranking));
      Rng rng(options.seed);
      (void)strategy->ask(1, rng);
      out.ranking_s = bench::seconds_now() - begin;
    }
    const double measuring = bench::seconds_now();
    FORETUNE_TRY(const TuneResult result,
                 tune_problem(*family_, *measurer, nullptr, problem, options, hooks));
    out.best = result.finalists.front().config;
    out.seconds = bench::seconds_now() - measuring;
    out.packing_s = packing_seconds(result);
    out.measured = result.progress.measured;
    out.best_after = best_after(result.steps);
    return out;
  }

  // Returns the median seconds of each config, timed in turns.
  Result<std::vector<double>> timed(const Problem& problem, const std::vector<Config>& configs) {
    FORETUNE_TRY(const auto data, family_->make_data(problem, 1));
    std::vector<std::shared_ptr<Run>> runs;
    std::vector<bench::Contender> contenders;
    for (const Config& config : configs) {
      FORETUNE_TRY(const auto artifact, family_->prepare(problem, config));
      FORETUNE_TRY(auto run, artifact->bind(problem, *data));
      runs.push_back(std::move(run));
      contenders.push_back({[run = runs.back()] { run->run(); }, {}});
    }
    bench::time_in_turn(contenders, arguments_.rounds, false);
    std::vector<double> out;
    for (const bench::Contender& contender : contenders) {
      out.push_back(median(contender.seconds));
    }
    return out;
  }

  Result<Product> search(const std::string& operation, const std::string& file) {
    FORETUNE_TRY(const std::string text,
                 store_->resolve_names(concat("sparse op=", operation,
                                              " n=", operation == "spmv" ? "1" : arguments_.width,
                                              " payload=@", file)));
    FORETUNE_TRY(Problem problem, Problem::parse(text));
    FORETUNE_TRY(problem, store_->resolve(problem));
    Product out;
    FORETUNE_TRY(out.with, searched(problem, scorer_.get(),
                                    Budget{.seconds = arguments_.seconds,
                                           .measurements = arguments_.measurements}));
    FORETUNE_TRY(out.without,
                 searched(problem, nullptr, Budget{.measurements = arguments_.without}));
    const Choice choice = selector_->select(problem);
    const Config textbook = family_->default_configs(problem).front();
    const Config pick = choice.has_candidate ? selector_->config(choice.candidate) : textbook;
    out.abstained = !choice.picked();
    FORETUNE_TRY(const std::vector<double> seconds,
                 timed(problem, {out.with.best, out.without.best, pick, textbook}));
    const auto gap = [&](std::size_t i) { return 100 * (seconds[i] / seconds[1] - 1); };
    out.gap = gap(0);
    out.pick_gap = gap(2);
    out.textbook_gap = gap(3);
    std::printf(
        "  %-38s %5zu %6.1f %6.1f%% %6.1f%% %6.1fs %7.1f%%  %s%s\n",
        file.substr(0, file.find(".mtx")).c_str(), static_cast<std::size_t>(out.with.measured),
        out.with.seconds, out.gap, out.pick_gap, out.without.seconds, out.textbook_gap,
        to_text(family_->info().config_schema, pick).c_str(), out.abstained ? " (abstained)" : "");
    std::fflush(stdout);
    return out;
  }

  static double percentile_of(const std::vector<Product>& products, double Product::* field,
                              double share) {
    std::vector<double> values;
    for (const Product& product : products) {
      values.push_back(product.*field);
    }
    return quantile(values, share);
  }

  static void report(const std::string& name, const std::vector<Product>& products,
                     Figures& figures) {
    const std::string head = name == "all" ? "" : name + "_";
    std::vector<double> measured;
    std::vector<double> seconds;
    double ranking = 0;
    double packing = 0;
    double searching = 0;
    double without = 0;
    double abstained = 0;
    for (const Product& product : products) {
      measured.push_back(static_cast<double>(product.with.measured));
      seconds.push_back(product.with.seconds);
      ranking += product.with.ranking_s;
      packing += product.with.packing_s;
      searching += product.with.seconds;
      without += product.without.seconds;
      abstained += product.abstained ? 1 : 0;
    }
    figures.add(head + "measurements_median", median(measured));
    figures.add(head + "seconds_median", median(seconds));
    figures.add(head + "seconds_without_over_with", without / searching);
    figures.add(head + "ranking_share", ranking / searching);
    figures.add(head + "packing_share", packing / searching);
    figures.add(head + "abstained", abstained);
    std::printf(
        "%s: %.0f measurements and %.1f s in the median, %.1f times as long without the "
        "model; ranking takes %.1f %%, packing %.1f %%; %.0f abstentions\n",
        name.c_str(), median(measured), median(seconds), without / searching,
        100 * ranking / searching, 100 * packing / searching, abstained);
    for (const auto& [label, field] :
         {std::pair("search", &Product::gap), std::pair("pick", &Product::pick_gap),
          std::pair("textbook", &Product::textbook_gap)}) {
      const double middle = percentile_of(products, field, 0.5);
      const double high = percentile_of(products, field, 0.9);
      const double worst = percentile_of(products, field, 1);
      const std::string prefix =
          head + (std::string_view(label) == "search" ? "" : concat(label, "_"));
      figures.add(prefix + "gap_percent", middle);
      figures.add(prefix + "gap_p90_percent", high);
      figures.add(prefix + "worst_gap_percent", worst);
      std::printf("  gap of the %-9s median %6.1f %%, P90 %6.1f %%, worst %6.1f %%\n", label,
                  middle, high, worst);
    }
    std::printf("  best found after");
    for (const unsigned count : kCounts) {
      std::printf(" %6u", count);
    }
    for (const bool has_model : {true, false}) {
      std::printf("\n  %-16s", has_model ? "with the model" : "without");
      for (std::size_t i = 0; i < kCounts.size(); ++i) {
        std::vector<double> shares;
        for (const Product& product : products) {
          const double best =
              std::min(product.with.best_after.back(), product.without.best_after.back());
          shares.push_back(best / (has_model ? product.with : product.without).best_after[i]);
        }
        figures.add(concat(head, has_model ? "with" : "without", "_share_after_", kCounts[i]),
                    mean(shares));
        std::printf(" %5.1f%%", 100 * mean(shares));
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  Arguments arguments_;
  std::optional<Model> model_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Selector> selector_;
  std::shared_ptr<const Family> family_;
  std::shared_ptr<PayloadStore> store_;
};

Status run(int argc, char** argv, Figures& figures) {
  const Arguments arguments{
      .folder = bench::argument(argc, argv, "data"),
      .operations = bench::argument(argc, argv, "op", "spmm,spmv,sddmm"),
      .width = bench::argument(argc, argv, "width", "128"),
      .every = std::max<std::size_t>(1, bench::count_argument<std::size_t>(argc, argv, "every", 1)),
      .measurements = bench::count_argument<std::uint64_t>(argc, argv, "measurements", 100),
      .seconds = bench::number_argument(argc, argv, "seconds", 10),
      .without = bench::count_argument<std::uint64_t>(argc, argv, "without", 500),
      .rounds = static_cast<int>(bench::count_argument(argc, argv, "rounds", 9U))};
  FORETUNE_TRY(Bench bench, Bench::open(arguments, bench::argument(argc, argv, "model")));
  return bench.run(figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("sparse_search", argc, argv, &foretune::run);
}
