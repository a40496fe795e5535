// The cpu-gemm family beside OpenBLAS, BLIS, oneDNN and LIBXSMM: for every shape of a list, the
// config that `foretune tune` found (stored in a data set) and every library, timed in turn, round
// by round, one thread or more. Says how our time compares with that of the best library of each
// shape, by regime, and how close large squares come to the multiply-add peak. With a model, also
// how the config that the selector picks, measuring nothing, compares with the best library.
//
//   foretune tune --shapeset bench/shapes/blas.csv --family-option threads=1 --output winners.ftd
//   gemm_vs_blas --winners winners.ftd [--threads 1] [--rounds 15] [--json FILE]
//                [--shapes bench/shapes/blas.csv] [--model gemm.ftm]
//
// Every contender's first result is checked against the reference; a wrong one ends the program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/gemm_peers.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/gemm.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

constexpr double kWindowSeconds = 5e-3;
constexpr double kProbeSeconds = 5e-3;
// Squares at least this large are held against the peak.
constexpr std::int64_t kLargeSquare = 1024;
// Libraries' threads wait for more work by spinning, OpenBLAS's for 2^26 cycles; whoever comes next
// would share the cores with them. After such a rest it takes some milliseconds before the threads
// of a contender are spread over the cores again.
constexpr auto kRest = std::chrono::milliseconds(40);
constexpr double kWarmUpSeconds = 10e-3;
// No result may lie above this share of the peak.
constexpr double kMostShare = 1.02;
constexpr std::size_t kResamples = 4000;

struct Shape {
  std::string regime;
  GemmProblem problem;
};

// A shape set whose first column names the regime.
Result<std::vector<Shape>> read_shapes(const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  FORETUNE_TRY(const std::vector<Problem> problems, parse_shape_set(text));
  std::vector<std::string> regimes;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty() && line.front() != '#') {
      regimes.emplace_back(line.substr(0, line.find(',')));
    }
  }
  if (regimes.size() != problems.size() + 1 || regimes.front() != "regime") {
    return fail(ErrorCode::kInvalidArgument, path, ": the first column must be 'regime'");
  }
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    FORETUNE_TRY(const GemmProblem problem, GemmProblem::from(problems[i]));
    shapes.push_back({regimes[i + 1], problem});
  }
  return shapes;
}

// The best confirmed config of every problem.
Result<std::unordered_map<Problem, Config>> read_winners(const std::string& path,
                                                         const FamilyInfo& info) {
  FORETUNE_TRY(const Dataset dataset, read_dataset(path));
  if (dataset.header().family != info.name ||
      dataset.header().config_schema != info.config_schema) {
    return fail(ErrorCode::kMismatch, path, " does not hold configs of this ", info.name);
  }
  std::unordered_map<Problem, std::pair<double, Config>> best;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Measurement row = dataset.measurement(i);
    const MetricValue* const time = row.find(MetricId::kTimeNs);
    if (row.outcome != Outcome::kOk || time == nullptr || (row.flags & kFlagReference) == 0) {
      continue;
    }
    const auto [known, is_new] = best.try_emplace(row.problem, time->value, row.config);
    if (!is_new && time->value < known->second.first) {
      known->second = {time->value, row.config};
    }
  }
  std::unordered_map<Problem, Config> winners;
  for (auto& [problem, winner] : best) {
    winners.emplace(problem, std::move(winner.second));
  }
  return winners;
}

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;  // per product, one for each round
};

double timed(const std::function<void()>& run) {
  double start = bench::seconds_now();
  run();
  const double once = bench::seconds_now() - start;
  if (once >= kWindowSeconds) {
    return once;
  }
  const int repeats = std::max(1, static_cast<int>(kWindowSeconds / once));
  start = bench::seconds_now();
  for (int i = 0; i < repeats; ++i) {
    run();
  }
  return (bench::seconds_now() - start) / repeats;
}

struct ShapeResult {
  const Shape* shape = nullptr;
  double ours_s = 0;
  double selected_s = 0;  // 0 without a model
  // The highest of the probes between the rounds of this shape: how fast a core multiplies depends
  // on what it did before.
  double peak_gflops = 0;
  std::map<std::string, double> peers_s;
  std::string best_peer;
  [[nodiscard]] double ratio() const { return peers_s.at(best_peer) / ours_s; }
  [[nodiscard]] double selected_ratio() const { return peers_s.at(best_peer) / selected_s; }
};

class Comparison {
 public:
  Comparison(const Family& family, Peers& peers, const Selector* selector, int threads, int rounds)
      : family_(family), peers_(peers), selector_(selector), threads_(threads), rounds_(rounds) {}

  Result<ShapeResult> measure(const Shape& shape, const Config& winner) {
    const Problem problem = shape.problem.to_problem();
    FORETUNE_TRY(const auto data, family_.make_data(problem, 1));
    std::vector<Contender> contenders;
    FORETUNE_TRY_STATUS(add_ours("foretune", problem, winner, *data, contenders));
    std::size_t ours = 1;
    if (selector_ != nullptr) {
      const Choice choice = selector_->select(problem);
      if (!choice.has_candidate) {
        return fail(ErrorCode::kNotFound, "the model has nothing for ", problem.text());
      }
      FORETUNE_TRY_STATUS(add_ours("foretune, selected", problem,
                                   selector_->config(choice.candidate), *data, contenders));
      ++ours;
    }
    const GemmOperands operands = dynamic_cast<GemmData&>(*data).operands();
    for (const auto& peer : peers_.found) {
      // The libraries' interfaces lack const.
      std::function<void()> run =
          peer->prepare({.m = shape.problem.m(),
                         .n = shape.problem.n(),
                         .k = shape.problem.k(),
                         .a_by_columns = a_by_columns(shape.problem.layout()),
                         .b_by_columns = b_by_columns(shape.problem.layout()),
                         .a = const_cast<float*>(operands.a),  // NOLINT(*-const-cast)
                         .b = const_cast<float*>(operands.b),  // NOLINT(*-const-cast)
                         .c = operands.c});
      if (run) {
        contenders.push_back({peer->name(), std::move(run), {}});
      }
    }
    for (const Contender& contender : contenders) {
      data->poison();
      contender.run();
      if (const Support right = data->verify(); !right) {
        return fail(ErrorCode::kInvalidArgument, contender.name, " is wrong for ", problem.text(),
                    ": ", right.reason());
      }
    }
    double peak_gflops = 0;
    for (int round = 0; round < rounds_; ++round) {
      peak_gflops = std::max(peak_gflops, measure_fma_gflops(kProbeSeconds));
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        Contender& contender =
            contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
        if (threads_ > 1) {
          std::this_thread::sleep_for(kRest);
          const double start = bench::seconds_now();
          do {
            contender.run();
          } while (bench::seconds_now() - start < kWarmUpSeconds);
        }
        contender.seconds.push_back(timed(contender.run));
      }
    }
    ShapeResult result{
        .shape = &shape, .ours_s = median(contenders[0].seconds), .peak_gflops = peak_gflops};
    result.selected_s = selector_ != nullptr ? median(contenders[1].seconds) : 0;
    for (std::size_t i = ours; i < contenders.size(); ++i) {
      const double seconds = median(contenders[i].seconds);
      result.peers_s[contenders[i].name] = seconds;
      if (result.best_peer.empty() || seconds < result.peers_s[result.best_peer]) {
        result.best_peer = contenders[i].name;
      }
    }
    return result;
  }

 private:
  Status add_ours(const std::string& name, const Problem& problem, const Config& config,
                  ProblemData& data, std::vector<Contender>& out) const {
    FORETUNE_TRY(const auto artifact, family_.prepare(problem, config));
    FORETUNE_TRY(const std::shared_ptr<Run> run, artifact->bind(problem, data));
    out.push_back({name, [run] { run->run(); }, {}});
    return {};
  }

  const Family& family_;
  Peers& peers_;
  const Selector* selector_;
  int threads_;
  int rounds_;
};

void print_group(const std::string& name, const std::vector<double>& ratios, Figures& figures,
                 const std::string& suffix) {
  Rng rng(1);
  const BootstrapInterval interval = bootstrap_interval(ratios, &geometric_mean, kResamples, rng);
  const double wins = static_cast<double>(
      std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio >= 1; }));
  std::printf("%-8s %4zu shapes: %.3f (%.3f to %.3f), faster on %.0f\n", name.c_str(),
              ratios.size(), geometric_mean(ratios), interval.low, interval.high, wins);
  const std::string group = name == "all" ? "" : concat("_", name);
  figures.add(concat("geomean_vs_best", group, suffix), geometric_mean(ratios));
  figures.add(concat("geomean_vs_best_lower95", group, suffix), interval.low);
}

Status run(int argc, char** argv, Figures& figures) {
  const auto threads = parse_int(bench::argument(argc, argv, "threads", "1"));
  const auto rounds = parse_int(bench::argument(argc, argv, "rounds", "15"));
  if (!threads || *threads < 1 || !rounds || *rounds < 1) {
    return fail(ErrorCode::kInvalidArgument, "--threads and --rounds take a number");
  }
  Peers peers = load_peers();
  for (const auto& peer : peers.found) {
    peer->set_threads(static_cast<int>(*threads));
    std::printf("beside %s\n", peer->name().c_str());
  }
  for (const std::string& missing : peers.missing) {
    std::printf("without %s\n", missing.c_str());
  }
  if (peers.found.empty()) {
    return fail(ErrorCode::kNotFound, "no library to compare with");
  }
  FORETUNE_TRY(const std::vector<Shape> shapes,
               read_shapes(bench::argument(argc, argv, "shapes", "bench/shapes/blas.csv")));
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks(0.2));
  options.parameters = {{"threads", concat(*threads)}};
  FORETUNE_TRY(const auto family, make_cpu_gemm(options));
  FORETUNE_TRY(const auto winners,
               read_winners(bench::argument(argc, argv, "winners"), family->info()));

  std::unique_ptr<Selector> selector;
  if (const std::string model = bench::argument(argc, argv, "model"); !model.empty()) {
    FORETUNE_TRY(selector, Selector::open(model));
  }
  Comparison comparison(*family, peers, selector.get(), static_cast<int>(*threads),
                        static_cast<int>(*rounds));
  std::vector<ShapeResult> results;
  std::printf("%-8s %-22s %9s %9s %7s %9s  best library\n", "regime", "m x n x k", "GFLOP/s",
              "best lib", "ratio", "selected");
  for (const Shape& shape : shapes) {
    const auto winner = winners.find(shape.problem.to_problem());
    if (winner == winners.end()) {
      return fail(ErrorCode::kNotFound, "no tuned config of ", shape.problem.to_problem().text());
    }
    FORETUNE_TRY(ShapeResult result, comparison.measure(shape, winner->second));
    const double flops = shape.problem.flops() / 1e9;
    std::printf("%-8s %-22s %9.1f %9.1f %7.3f %9.3f  %s\n", shape.regime.c_str(),
                concat(shape.problem.m(), "x", shape.problem.n(), "x", shape.problem.k(), " ",
                       to_string(shape.problem.layout()))
                    .c_str(),
                flops / result.ours_s, flops / result.peers_s.at(result.best_peer), result.ratio(),
                selector ? result.selected_ratio() : 0.0, result.best_peer.c_str());
    std::fflush(stdout);
    results.push_back(std::move(result));
  }

  const std::string suffix = concat("_", *threads, "t");
  std::map<std::string, std::vector<double>> groups;
  std::vector<double> shares;
  std::vector<double> selected;
  double highest_peak = 0;
  const auto cores = static_cast<double>(*threads);
  for (const ShapeResult& result : results) {
    groups[result.shape->regime].push_back(result.ratio());
    groups["all"].push_back(result.ratio());
    if (selector) {
      selected.push_back(result.selected_ratio());
    }
    const GemmProblem& problem = result.shape->problem;
    if (problem.m() >= kLargeSquare && problem.m() == problem.n() && problem.n() == problem.k()) {
      shares.push_back(problem.flops() / result.ours_s / 1e9 / result.peak_gflops);
      highest_peak = std::max(highest_peak, result.peak_gflops);
    }
    // A rate beyond the peak would show that one of the two is measured wrongly.
    const double share = problem.flops() / result.ours_s / 1e9 / result.peak_gflops / cores;
    if (share > kMostShare) {
      return fail(ErrorCode::kInternal, problem.to_problem().text(), " reaches ", share,
                  " of the peak");
    }
  }
  std::printf("\nour speed over that of the best library of each shape, geometric mean\n");
  for (const auto& [name, ratios] : groups) {
    print_group(name, ratios, figures, suffix);
  }
  if (!selected.empty()) {
    Rng rng(1);
    const BootstrapInterval interval =
        bootstrap_interval(selected, &geometric_mean, kResamples, rng);
    std::printf("with the selector's pick: %.3f (%.3f to %.3f)\n", geometric_mean(selected),
                interval.low, interval.high);
    figures.add(concat("selected_vs_best", suffix), geometric_mean(selected));
  }
  if (*threads == 1 && !shares.empty()) {
    std::printf(
        "large squares reach %.1f %% of the highest probe beside them (up to %.1f GFLOP/s)\n",
        100 * geometric_mean(shares), highest_peak);
    figures.add("share_of_peak_large", geometric_mean(shares));
    figures.add("peak_gflops", highest_peak);
  }
  figures.add("problems", static_cast<double>(results.size()));
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("gemm_vs_blas", argc, argv, &foretune::run);
}
