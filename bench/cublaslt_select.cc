// What a model's pick is worth beside cuBLASLt's own choice, on problems that it has not seen.
//
//   cublaslt_select --model cublaslt.ftm --shapes bench/shapes/cublaslt_test.csv --output test.ftd
//                   [--rounds 9] [--top 5] [--seconds 600] [--cublaslt FILE] [--json FILE] ...
//   cublaslt_select --model cublaslt.ftm --data test.ftd [--margin 0.02] [--json FILE]
//
// The first form measures on the device: for every problem the whole portfolio, and then in turns,
// --rounds rounds, the heuristic's first choice, the model's best --top and the best --top of the
// portfolio. The second form, which the first ends with, needs no device: it reads those
// measurements. Speeds are medians over the rounds, of the same run, relative to the heuristic's
// first choice.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/cublaslt_device.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/select/select.h"
#include "foretune/tune/collect.h"

namespace foretune {
namespace {

Config first_choice() { return CublasltConfig::rank(1).to_config(); }

// Measured times of one problem, once each.
using Times = std::map<Config, double>;

std::vector<Config> best_of(const Times& times, std::size_t count) {
  std::vector<std::pair<double, Config>> sorted;
  for (const auto& [config, time_ns] : times) {
    sorted.emplace_back(time_ns, config);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Config> best;
  for (std::size_t i = 0; i < std::min(count, sorted.size()); ++i) {
    best.push_back(sorted[i].second);
  }
  return best;
}

std::vector<Config> ranked(const Selector& selector, const Problem& problem, std::size_t count) {
  std::vector<Config> configs;
  for (const RankedCandidate& candidate : selector.rank(problem)) {
    if (configs.size() == count) {
      break;
    }
    configs.push_back(selector.config(candidate.candidate));
  }
  return configs;
}

void add_new(std::vector<Config>& configs, const std::vector<Config>& more) {
  for (const Config& config : more) {
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
      configs.push_back(config);
    }
  }
}

struct MeasureOptions {
  int rounds = 9;
  std::size_t top = 5;
};

Status measure_problem(const bench::CublasltDevice& device, const Selector& selector,
                       JournalWriter& journal, const Problem& problem,
                       const MeasureOptions& options) {
  FORETUNE_TRY(const std::unique_ptr<Space> space, device.family->space(problem));
  const std::vector<Config> picks = ranked(selector, problem, options.top);
  std::vector<Config> order{first_choice()};
  add_new(order, picks);
  const std::vector<Config> first = order;
  for (std::uint64_t i = 0; i < space->enumerable()->count(); ++i) {
    Config config = space->enumerable()->unrank(i);
    if (std::find(first.begin(), first.end(), config) == first.end()) {
      order.push_back(std::move(config));
    }
  }
  Times times;
  double best_ns = -1;
  for (const Config& config : order) {
    const Measurement measurement =
        device.measurer->measure({.problem = problem, .config = config, .incumbent_ns = best_ns});
    FORETUNE_TRY_STATUS(journal.append(measurement));
    const MetricValue* const time = measurement.find(MetricId::kTimeNs);
    if (measurement.outcome == Outcome::kOk && time != nullptr) {
      times[config] = time->value;
      best_ns = best_ns < 0 ? time->value : std::min(best_ns, time->value);
    }
  }
  std::vector<Config> contestants{first_choice()};
  add_new(contestants, picks);
  add_new(contestants, best_of(times, options.top));
  std::vector<Measurement> compared =
      device.measurer->compare(problem, contestants, options.rounds);
  for (Measurement& measurement : compared) {
    measurement.context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(journal.append(measurement));
  }
  return {};
}

Status measure_all(int argc, char** argv, const Selector& selector, const std::string& output,
                   Figures& figures) {
  FORETUNE_TRY(const std::string text, read_text_file(bench::argument(argc, argv, "shapes")));
  FORETUNE_TRY(const std::vector<Problem> problems, parse_shape_set(text));
  FORETUNE_TRY(const bench::CublasltDevice device, bench::open_cublaslt(argc, argv));
  DatasetHeader header = header_of(device.family->info());
  header.role = DatasetRole::kValidation;
  header.created_by = "bench/cublaslt_select";
  FORETUNE_TRY(const auto journal, JournalWriter::open(output, header));
  const MeasureOptions options{
      .rounds = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "rounds", 9)),
      .top = bench::count_argument<std::size_t>(argc, argv, "top", 5)};
  const double limit_s = bench::number_argument(argc, argv, "seconds", 600);
  const double begin_s = bench::seconds_now();
  std::size_t done = 0;
  for (const Problem& problem : problems) {
    if (bench::seconds_now() - begin_s > limit_s) {
      break;
    }
    FORETUNE_TRY_STATUS(measure_problem(device, selector, *journal, problem, options));
    ++done;
  }
  const double taken_s = bench::seconds_now() - begin_s;
  const auto rows = static_cast<double>(journal->row_count());
  std::printf("%zu of %zu problems measured in %.0f s\n", done, problems.size(), taken_s);
  figures.add("collect_seconds_per_shape",
              taken_s / static_cast<double>(std::max<std::size_t>(1, done)));
  figures.add("measurements_per_second", rows / taken_s);
  return journal->sync();
}

// What one problem's comparison says: speeds relative to the heuristic's first choice.
struct Verdict {
  double pick = 1;             // the model's first
  double careful = 1;          // that, or the heuristic's where the model expects too little
  std::optional<double> fast;  // the fast mode's pick; both measured once
  double best_of_top = 1;      // the fastest of the model's best few
  double best_of_ranks = 1;    // the fastest of the heuristic's answers, measured once each
  double oracle = 1;           // the fastest of all that took part
  bool is_careful_pick = false;
};

struct Candidates {
  std::map<Config, double> reference_ns;  // medians, in turns
  Times once_ns;
};

std::map<std::uint32_t, Candidates> read_candidates(const Dataset& dataset) {
  std::map<std::uint32_t, Candidates> problems;
  for (RowIndex row = 0; row < dataset.rows().size(); ++row) {
    const Measurement measurement = dataset.measurement(row);
    if (measurement.outcome != Outcome::kOk) {
      continue;
    }
    Candidates& candidates = problems[dataset.rows()[row].problem];
    if ((measurement.flags & kFlagReference) != 0) {
      candidates.reference_ns[measurement.config] = measurement.find(MetricId::kMedianNs)->value;
    } else {
      candidates.once_ns[measurement.config] = measurement.find(MetricId::kTimeNs)->value;
    }
  }
  return problems;
}

std::optional<double> score_of(const Selector& selector,
                               const std::vector<RankedCandidate>& ranking, const Config& config) {
  for (const RankedCandidate& candidate : ranking) {
    if (selector.config(candidate.candidate) == config) {
      return candidate.score;
    }
  }
  return std::nullopt;
}

// Nothing where the heuristic's choice or the pick did not take part.
std::optional<Verdict> judge(const Selector& selector, const Problem& problem,
                             const Candidates& candidates, double margin, std::size_t top) {
  const auto found = candidates.reference_ns.find(first_choice());
  const std::vector<RankedCandidate> ranking = selector.rank(problem);
  if (found == candidates.reference_ns.end() || ranking.empty()) {
    return std::nullopt;
  }
  const double first_ns = found->second;
  Verdict verdict;
  bool has_pick = false;
  for (std::size_t i = 0; i < std::min(top, ranking.size()); ++i) {
    const auto time = candidates.reference_ns.find(selector.config(ranking[i].candidate));
    if (time == candidates.reference_ns.end()) {
      continue;  // refused by the library: whoever runs the picks takes the next
    }
    const double speed = first_ns / time->second;
    verdict.best_of_top = has_pick ? std::max(verdict.best_of_top, speed) : speed;
    if (!has_pick) {
      has_pick = true;
      verdict.pick = speed;
      const std::optional<double> first_score = score_of(selector, ranking, first_choice());
      verdict.is_careful_pick = !first_score || *first_score - ranking[i].score >= margin;
      verdict.careful = verdict.is_careful_pick ? speed : 1;
    }
  }
  for (const auto& [config, time_ns] : candidates.reference_ns) {
    verdict.oracle = std::max(verdict.oracle, first_ns / time_ns);
  }
  const auto first_once = candidates.once_ns.find(first_choice());
  const Choice fast = selector.select_fast(problem).choice;
  if (fast.has_candidate && first_once != candidates.once_ns.end()) {
    const auto time = candidates.once_ns.find(selector.config(fast.candidate));
    if (time != candidates.once_ns.end()) {
      verdict.fast = first_once->second / time->second;
    }
  }
  for (const auto& [config, time_ns] : candidates.once_ns) {
    if (first_once != candidates.once_ns.end() && config.words[0] > 0) {
      verdict.best_of_ranks = std::max(verdict.best_of_ranks, first_once->second / time_ns);
    }
  }
  return has_pick ? std::optional<Verdict>(verdict) : std::nullopt;
}

struct Line {
  std::string name;
  std::string metric;
  std::vector<double> speeds;

  void print(Figures& figures) const {
    const auto slower =
        std::count_if(speeds.begin(), speeds.end(), [](double speed) { return speed < 0.98; });
    const double geomean = geometric_mean(speeds);
    const double share = static_cast<double>(slower) / static_cast<double>(speeds.size());
    std::printf("%-44s %8.4f %8.3f %8.3f %8.3f %8.1f\n", name.c_str(), geomean,
                quantile(speeds, 0.1), quantile(speeds, 0.5), quantile(speeds, 0.9), 100 * share);
    figures.add(metric == "oracle_" ? std::string("cublaslt_oracle_geomean")
                                    : concat("cublaslt_", metric, "geomean_vs_heuristic"),
                geomean);
    figures.add(concat("cublaslt_", metric, "share_slower_than_098"), share);
  }
};

// The median time of one unseen problem, in us.
double select_us(const Selector& selector, const std::vector<Problem>& problems, bool fast) {
  std::vector<double> each_us;
  for (int round = 0; round < 5; ++round) {
    for (const Problem& problem : problems) {
      const double begin_s = bench::seconds_now();
      const bool answered = fast ? selector.select_fast(problem).choice.has_candidate
                                 : selector.select_uncached(problem).has_candidate;
      if (answered) {
        each_us.push_back(1e6 * (bench::seconds_now() - begin_s));
      }
    }
  }
  return each_us.empty() ? 0 : median(each_us);
}

Status report(const Selector& selector, const Dataset& dataset, double margin, std::size_t top,
              Figures& figures) {
  Line pick{"the model's pick", "", {}};
  Line careful{concat("... or the heuristic's within ", 100 * margin, " %"), "careful_", {}};
  Line best_of_top{concat("best of the model's first ", top, ", measured"), "top_", {}};
  Line fast{"the fast mode's pick, measured once", "fast_", {}};
  Line ranks{"best of the heuristic's answers, measured", "ranks_", {}};
  Line oracle{"the fastest of the portfolio", "oracle_", {}};
  std::vector<Problem> problems;
  std::size_t kept = 0;
  for (const auto& [index, candidates] : read_candidates(dataset)) {
    const Problem& problem = dataset.problems()[index];
    const std::optional<Verdict> verdict = judge(selector, problem, candidates, margin, top);
    if (!verdict) {
      std::printf("left out: %s\n", problem.text().c_str());
      continue;
    }
    problems.push_back(problem);
    pick.speeds.push_back(verdict->pick);
    careful.speeds.push_back(verdict->careful);
    best_of_top.speeds.push_back(verdict->best_of_top);
    ranks.speeds.push_back(verdict->best_of_ranks);
    if (verdict->fast) {
      fast.speeds.push_back(*verdict->fast);
    }
    oracle.speeds.push_back(verdict->oracle);
    kept += verdict->is_careful_pick ? 0U : 1U;
  }
  if (problems.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem was compared");
  }
  std::printf("%zu problems; speed over the heuristic's first choice\n%-44s %8s %8s %8s %8s %8s\n",
              problems.size(), "", "geomean", "P10", "median", "P90", "% < 0.98");
  for (const Line* line : {&pick, &careful, &fast, &best_of_top, &ranks, &oracle}) {
    if (!line->speeds.empty()) {
      line->print(figures);
    }
  }
  std::printf(
      "the heuristic's choice is kept on %zu; a new problem takes %.1f us, %.2f us by the "
      "fast mode\n",
      kept, select_us(selector, problems, false), select_us(selector, problems, true));
  figures.add("problems", static_cast<double>(problems.size()));
  return {};
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const std::unique_ptr<Selector> selector,
               Selector::open(bench::argument(argc, argv, "model")));
  std::string data = bench::argument(argc, argv, "data");
  if (data.empty()) {
    data = bench::argument(argc, argv, "output");
    if (data.empty()) {
      return fail(ErrorCode::kInvalidArgument, "give --data, or --shapes and --output");
    }
    FORETUNE_TRY_STATUS(measure_all(argc, argv, *selector, data, figures));
  }
  FORETUNE_TRY(const Dataset dataset, read_dataset(data));
  return report(*selector, dataset, bench::number_argument(argc, argv, "margin", 0),
                bench::count_argument<std::size_t>(argc, argv, "top", 5), figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("cublaslt_select", argc, argv, foretune::run);
}
