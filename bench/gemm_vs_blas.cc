// The cpu-gemm family beside MKL, oneDNN, OpenBLAS, BLIS and LIBXSMM: for every shape of a list,
// the config that `foretune tune` found (stored in a data set), what foretune_sgemm does when it is
// called, and every library, planned and called, timed in turn, round by round, one thread or more.
// Says how our time compares with that of the best library of each shape, by regime, and how close
// large squares come to the multiply-add peak. With a model, also how the config that the selector
// picks, measuring nothing, compares with the best library.
//
//   foretune tune --shapeset bench/shapes/blas.csv --family-option threads=1 --output winners.ftd
//   gemm_vs_blas --winners winners.ftd [--threads 1] [--rounds 15] [--json FILE] [--tune 5]
//                [--shapes bench/shapes/blas.csv] [--model gemm.ftm] [--only square]
//                [--training-data train.ftd,more.csv]
//
// With --training-data the classes of shapes also say what the model was trained on.
// Winners belong to the CPU that they were found on. A shape without one that is legal here is
// tuned for --tune seconds first (0: left out), and the output says how many were.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/contest.h"
#include "bench/gemm_contest.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/journal.h"
#include "foretune/dispatch/sgemm.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/model_scorer.h"

namespace foretune {
namespace {

// Squares at least this large are compared with the peak.
constexpr std::int64_t kLargeSquare = 1024;
// No result may lie above this share of the peak.
constexpr double kMaxShare = 1.02;
constexpr std::size_t kResamples = 4000;

using Winners = std::unordered_map<Problem, Config>;

// Reads the best confirmed config of every problem, if it is legal on this CPU.
Result<Winners> read_winners(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(const Dataset dataset, read_dataset(path));
  if (dataset.header().family != info.name ||
      dataset.header().config_schema != info.config_schema) {
    return fail(ErrorCode::kMismatch, path, " does not hold configs of this ", info.name);
  }
  std::unordered_map<Problem, std::pair<double, Config>> best;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Measurement row = dataset.measurement(i);
    const MetricValue* const time = row.find(kTimeNs);
    if (row.outcome != Outcome::kOk || time == nullptr || (row.flags & kFlagReference) == 0 ||
        !info.space->why_not(row.config, row.problem, info.fingerprint.hardware)) {
      continue;
    }
    const auto [known, is_new] = best.try_emplace(row.problem, time->value, row.config);
    if (!is_new && time->value < known->second.first) {
      known->second = {time->value, row.config};
    }
  }
  Winners winners;
  for (auto& [problem, winner] : best) {
    winners.emplace(problem, std::move(winner.second));
  }
  return winners;
}

// Finds winners for problems that a list of winners lacks.
class Tuner {
 public:
  Tuner(std::shared_ptr<const Family> family, std::optional<Model> model, double seconds)
      : family_(std::move(family)), model_(std::move(model)), seconds_(seconds) {}

  Result<Config> tune(const Problem& problem) const {
    std::unique_ptr<Scorer> scorer;
    if (model_) {
      FORETUNE_TRY(scorer, make_scorer(*model_));
    }
    return bench::tuned_config(family_, problem, seconds_, scorer.get());
  }

 private:
  std::shared_ptr<const Family> family_;
  std::optional<Model> model_;
  double seconds_;
};

// Our speed over the fastest peer's, for every shape; over that of `library` if one is named.
// Shapes without such a peer are left out.
struct Ratios {
  std::vector<double> all;
  std::map<bench::ShapeClass, std::vector<double>> by_class;
  double worst = 0;
  std::string worst_shape;

  void add(const Shape& shape, double ours_s, const std::map<std::string, double>& peers_s,
           const ShapeResult& result, const std::string& library = {}) {
    const std::string best = fastest(peers_s, result, library);
    if (best.empty() || ours_s <= 0) {
      return;
    }
    const double ratio = peers_s.at(best) / ours_s;
    all.push_back(ratio);
    for (const bench::ShapeClass& of : shape.classes) {
      by_class[of].push_back(ratio);
    }
    if (worst_shape.empty() || ratio < worst) {
      worst = ratio;
      worst_shape = shape.text();
    }
  }
};

void print_ratios(const std::string& name, const std::vector<double>& ratios) {
  Rng rng(1);
  const BootstrapInterval interval = bootstrap_interval(ratios, &geometric_mean, kResamples, rng);
  std::printf("  %-40s %4zu shapes: %.3f (%.3f to %.3f), least %.3f, faster on %zu\n", name.c_str(),
              ratios.size(), geometric_mean(ratios), interval.low, interval.high,
              *std::min_element(ratios.begin(), ratios.end()),
              static_cast<std::size_t>(std::count_if(ratios.begin(), ratios.end(),
                                                     [](double ratio) { return ratio >= 1; })));
}

void report(const std::string& title, const Ratios& ratios, bool by_class) {
  if (ratios.all.empty()) {
    return;
  }
  std::printf("%s (least: %s)\n", title.c_str(), ratios.worst_shape.c_str());
  for (const auto& [of, values] : ratios.by_class) {
    if (by_class || of.order == 0) {
      print_ratios(of.name, values);
    }
  }
}

// The libraries that figures are named after.
const std::vector<std::string> kLibraries{"mkl", "onednn", "openblas", "blis", "libxsmm"};

void summarise(const std::vector<Shape>& shapes, const std::vector<ShapeResult>& results,
               int threads, Figures& figures) {
  const std::string suffix = concat("_", threads, "t");
  const auto put = [&](const std::string& key, const Ratios& ratios, const char* worst_key) {
    if (!ratios.all.empty()) {
      figures.add(concat(key, suffix), geometric_mean(ratios.all));
      if (worst_key != nullptr) {
        figures.add(concat(worst_key, suffix), ratios.worst);
      }
    }
  };
  Ratios planned;
  Ratios selected;
  Ratios called;
  std::map<std::string, Ratios> planned_by;
  std::map<std::string, Ratios> called_by;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const ShapeResult& result = results[i];
    planned.add(shapes[i], result.ours_s, result.planned_s, result);
    selected.add(shapes[i], result.selected_s, result.planned_s, result);
    called.add(shapes[i], result.called_s, result.calls_s, result);
    for (const std::string& library : kLibraries) {
      planned_by[library].add(shapes[i], result.ours_s, result.planned_s, result, library);
      called_by[library].add(shapes[i], result.called_s, result.calls_s, result, library);
    }
  }
  std::printf("\nour speed over that of the best library of each shape, geometric means\n");
  report("planned", planned, true);
  report("planned, the selector's pick", selected, true);
  report("called: foretune_sgemm", called, true);
  put("geomean_vs_best", planned, "worst_vs_best");
  put("selected_vs_best", selected, "selected_worst");
  put("calls_vs_best", called, "calls_worst");
  const auto put_classes = [&](const char* key, const Ratios& ratios) {
    for (const auto& [of, values] : ratios.by_class) {
      if (of.order > 0) {
        figures.add(concat(key, " ", of.name, suffix), geometric_mean(values));
      }
    }
  };
  put_classes("geomean_vs_best", planned);
  put_classes("calls_vs_best", called);
  for (const std::string& library : kLibraries) {
    report(concat("planned, over ", library), planned_by[library], false);
    report(concat("called, over ", library), called_by[library], false);
    put(concat("geomean_vs_", library), planned_by[library], nullptr);
    put(concat("calls_vs_", library), called_by[library], nullptr);
  }
}

// Compares large squares with the peak; a rate beyond it would show that one of the two is measured
// wrongly.
Status hold_against_peak(const std::vector<Shape>& shapes, const std::vector<ShapeResult>& results,
                         int threads, Figures& figures) {
  std::vector<double> shares;
  double highest_peak = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const GemmProblem& problem = shapes[i].problem;
    const double share =
        problem.flops() / results[i].ours_s / 1e9 / results[i].peak_gflops / threads;
    if (share > kMaxShare) {
      return fail(ErrorCode::kInternal, problem.to_problem().text(), " reaches ", share,
                  " of the peak");
    }
    if (problem.m() >= kLargeSquare && problem.m() == problem.n() && problem.n() == problem.k()) {
      shares.push_back(share);
      highest_peak = std::max(highest_peak, results[i].peak_gflops);
    }
  }
  if (threads == 1 && !shares.empty()) {
    std::printf(
        "large squares reach %.1f %% of the highest probe beside them (up to %.1f GFLOP/s)\n",
        100 * geometric_mean(shares), highest_peak);
    figures.add("share_of_peak_large", geometric_mean(shares));
    figures.add("peak_gflops", highest_peak);
  }
  return {};
}

void print_row(const Shape& shape, const ShapeResult& result, Figures& figures) {
  const double gflop = shape.problem.flops() / 1e9;
  const std::string best = fastest(result.planned_s, result);
  const std::string best_call = fastest(result.calls_s, result);
  const double ratio = result.planned_s.at(best) / result.ours_s;
  const double selected = result.selected_s > 0 ? result.planned_s.at(best) / result.selected_s : 0;
  const double called = result.calls_s.at(best_call) / result.called_s;
  std::printf("%-8s %-20s %8.1f %8.1f %7.3f %8.3f %8.3f  %s; %s\n", shape.regime.c_str(),
              shape.text().c_str(), gflop / result.ours_s, gflop / result.planned_s.at(best), ratio,
              selected, called, best.c_str(), best_call.c_str());
  std::fflush(stdout);
  figures.add(concat("ratio ", shape.text()), ratio);
  figures.add(concat("called ", shape.text()), called);
}

Result<int> number(int argc, char** argv, std::string_view name, std::string_view fallback) {
  const auto value = parse_int(bench::argument(argc, argv, name, fallback));
  if (!value || *value < 1) {
    return fail(ErrorCode::kInvalidArgument, "--", name, " takes a number from 1");
  }
  return static_cast<int>(*value);
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const int threads, number(argc, argv, "threads", "1"));
  FORETUNE_TRY(const int rounds, number(argc, argv, "rounds", "15"));
  Peers peers = load_peers(threads);
  for (const auto& peer : peers.found) {
    std::printf("beside %s\n", peer->name().c_str());
    figures.machine.emplace_back(peer->library(), peer->name());
  }
  for (const std::string& missing : peers.missing) {
    std::printf("without %s\n", missing.c_str());
  }
  if (peers.found.empty()) {
    return fail(ErrorCode::kNotFound, "no library to compare with");
  }
  std::optional<bench::TrainedShapes> trained;
  if (const std::string paths = bench::argument(argc, argv, "training-data"); !paths.empty()) {
    FORETUNE_TRY(trained, bench::TrainedShapes::read(paths));
  }
  FORETUNE_TRY(const std::vector<Shape> listed,
               read_shapes(bench::argument(argc, argv, "shapes", "bench/shapes/blas.csv"),
                           trained ? &*trained : nullptr));
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks(0.2));
  options.parameters = {{"threads", concat(threads)}};
  FORETUNE_TRY(const std::shared_ptr<const Family> family, make_cpu_gemm(options));
  foretune_set_num_threads(threads);
  Winners winners;
  if (const std::string path = bench::argument(argc, argv, "winners"); !path.empty()) {
    FORETUNE_TRY(winners, read_winners(path, family->info()));
  }
  std::optional<Model> model;
  std::unique_ptr<Selector> selector;
  if (const std::string path = bench::argument(argc, argv, "model"); !path.empty()) {
    FORETUNE_TRY(model, read_model(path));
    FORETUNE_TRY(selector, Selector::open(path));
  }
  const double tune_s = bench::number_argument(argc, argv, "tune", 5);
  const Tuner tuner(family, std::move(model), tune_s);
  const std::string only = bench::argument(argc, argv, "only");
  const Contest contest{*family, peers, selector.get(), threads, rounds};

  std::vector<Shape> shapes;
  std::vector<ShapeResult> results;
  int tuned = 0;
  int left_out = 0;
  std::printf("%-8s %-20s %8s %8s %7s %8s %8s  best library; best call\n", "regime", "m x n x k",
              "GFLOP/s", "best lib", "ratio", "selected", "called");
  for (const Shape& shape : listed) {
    if (!only.empty() && only != shape.regime) {
      continue;
    }
    const Problem problem = shape.problem.to_problem();
    auto winner = winners.find(problem);
    if (winner == winners.end() && tune_s <= 0) {
      ++left_out;
      continue;
    }
    if (winner == winners.end()) {
      FORETUNE_TRY(Config found, tuner.tune(problem));
      winner = winners.emplace(problem, std::move(found)).first;
      ++tuned;
    }
    FORETUNE_TRY(ShapeResult result, measure_shape(contest, shape, winner->second));
    print_row(shape, result, figures);
    shapes.push_back(shape);
    results.push_back(std::move(result));
  }
  if (tuned + left_out > 0) {
    std::printf(
        "without a winner for this CPU: %d shapes were tuned for %.0f s each, %d left out\n", tuned,
        tune_s, left_out);
  }
  if (results.empty()) {
    return fail(ErrorCode::kNotFound, "no shape is left to measure");
  }
  summarise(shapes, results, threads, figures);
  figures.add("problems", static_cast<double>(results.size()));
  return hold_against_peak(shapes, results, threads, figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("gemm_vs_blas", argc, argv, &foretune::run);
}
