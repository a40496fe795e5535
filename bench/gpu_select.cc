// What a model's pick is worth beside the choice of NVIDIA's library, on problems that it has not
// seen.
//
//   gpu_select --model cublaslt.ftm --shapes bench/shapes/cublaslt_test.csv --output test.ftd
//              [--family cublaslt | triton] [--rounds 9] [--top 5] [--seconds 600]
//              [--cublaslt FILE] [--kernels FILE] [--json FILE] ...
//   gpu_select --model cublaslt.ftm --data test.ftd [--margin 0.02] [--answers answers.tsv]
//              [--json FILE]
//              [--second triton.ftm --second-data triton_test.ftd]
//
// The first form measures on the device: for every problem the whole space, as far as --output does
// not hold it yet, and then in turns, --rounds rounds, the library's choice (the family's default
// config: cuBLASLt's first heuristic answer), the model's best --top others and the best --top of
// the space. The second form, which the first ends with, needs no device: it reads those
// measurements. Speeds are medians over the rounds, of the same run, relative to the library's
// choice. Where --answers says which config the library's choice is (`cublaslt_space --heuristic`
// lists them), a margin is over the model's score of that config, as in dispatch, else over that of
// the rank, which the model knows as what it is on average. With a second model and its
// measurements, of another family on the same problems, each problem goes to the family whose model
// expects more over that choice, which both families have.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/gpu_device.h"
#include "bench/selection_time.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/families.h"
#include "foretune/models/infer/model_scorer.h"
#include "foretune/select/select.h"
#include "foretune/tune/collect.h"

namespace foretune {
namespace {

using Device = bench::GpuDevice<Family>;

// Of the time that a selection takes.
constexpr int kTimedRuns = 5;

// Measured times of one problem, in ns.
using Times = std::map<Config, double>;

struct Candidates {
  Times reference_ns;  // medians, in turns
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

// The library's choice takes part in any case.
std::vector<Config> ranked_others(const Selector& selector, const Problem& problem,
                                  const Config& library, std::size_t count) {
  std::vector<Config> configs;
  for (const RankedCandidate& candidate : selector.rank(problem)) {
    Config config = selector.config(candidate.candidate);
    if (configs.size() == count) {
      break;
    }
    if (config != library) {
      configs.push_back(std::move(config));
    }
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

// Every config of the space once, `first` before the others, so that these are stopped early.
Result<Times> measure_space(const Device& device, JournalWriter& journal, const Problem& problem,
                            const std::vector<Config>& first) {
  FORETUNE_TRY(const std::unique_ptr<Space> space, device.family->space(problem));
  std::vector<Config> order = first;
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
  return times;
}

// `times`: of an earlier run; without one of the library's choice the space is measured.
Status measure_problem(const Device& device, const Config& library, const Selector& selector,
                       JournalWriter& journal, const Problem& problem, Times times,
                       const MeasureOptions& options) {
  std::vector<Config> contestants{library};
  add_new(contestants, ranked_others(selector, problem, library, options.top));
  if (!times.contains(library)) {
    FORETUNE_TRY(times, measure_space(device, journal, problem, contestants));
  }
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
  std::string family_name = bench::argument(argc, argv, "family");
  if (family_name.empty()) {
    family_name = "cublaslt";
  }
  FORETUNE_TRY(const Device device,
               bench::open_gpu<Family>(argc, argv, [&](const FamilyOptions& options) {
                 return create_family(family_name, options);
               }));
  DatasetHeader header = header_of(device.family->info());
  header.role = DatasetRole::kValidation;
  header.created_by = "bench/gpu_select";
  std::map<std::string, Times> before;
  if (std::filesystem::exists(output)) {
    FORETUNE_TRY(const Dataset old, read_dataset(output));
    for (const auto& [index, candidates] : read_candidates(old)) {
      before[old.problems()[index].text()] = candidates.once_ns;
    }
  }
  FORETUNE_TRY(const auto journal, JournalWriter::open(output, header));
  const std::uint64_t rows_before = journal->row_count();
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
    const std::vector<Config> defaults = device.family->default_configs(problem);
    if (defaults.empty()) {
      std::printf("left out: %s: %s\n", problem.text().c_str(),
                  device.family->supports(problem).reason().c_str());
      continue;
    }
    FORETUNE_TRY_STATUS(measure_problem(device, defaults.front(), selector, *journal, problem,
                                        before[problem.text()], options));
    ++done;
  }
  const double taken_s = bench::seconds_now() - begin_s;
  const auto rows = static_cast<double>(journal->row_count() - rows_before);
  std::printf("%zu of %zu problems measured in %.0f s\n", done, problems.size(), taken_s);
  figures.add("collect_seconds_per_shape",
              taken_s / static_cast<double>(std::max<std::size_t>(1, done)));
  figures.add("measurements_per_second", rows / taken_s);
  return journal->sync();
}

// What one problem's comparison says: speeds relative to the library's choice.
struct Verdict {
  double pick = 1;             // the model's first
  double expected_gain = 0;    // what the model expects of it: ln of its speed
  double careful = 1;          // that, or the library's where the model expects too little
  std::optional<double> fast;  // the fast mode's pick; both measured once
  double best_of_top = 1;      // the fastest of the model's best few
  double best_of_ranks = 1;    // the fastest of the heuristic's answers, measured once each
  double oracle = 1;           // the fastest of all that took part
  bool is_careful_pick = false;
  bool is_in_turns = true;  // or the pick took no part in the comparison: measured once
  // Without the library's choice: the first and the best few of the others over the fastest other.
  std::optional<double> own_efficiency;
  double own_top_efficiency = 0;
};

// The config behind the library's first answer, by the problem's text.
using Answers = std::map<std::string, Config>;

Result<Answers> read_answers(const std::string& path) {
  Answers answers;
  if (path.empty()) {
    return answers;
  }
  FORETUNE_TRY(const std::string text, read_text_file(path));
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(line, '\t');
    if (parts.size() == 3 && parts[1] == "1") {
      FORETUNE_TRY(const Config config, parse_config(cublaslt_schema(), parts[2]));
      answers.emplace(parts[0], config);
    }
  }
  return answers;
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

// Over the library's choice, by times of the same kind.
std::optional<double> speed_over(const Times& times_ns, const Config& library,
                                 const Config& config) {
  const auto first = times_ns.find(library);
  const auto time = times_ns.find(config);
  return first == times_ns.end() || time == times_ns.end()
             ? std::nullopt
             : std::optional(first->second / time->second);
}

// Nothing where the library's choice or the pick was not measured.
Result<std::optional<Verdict>> judge(const Selector& selector, const Problem& problem,
                                     const Config& library, const Candidates& candidates,
                                     const Answers& answers, double margin, std::size_t top) {
  const auto found = candidates.reference_ns.find(library);
  const std::vector<RankedCandidate> ranking = selector.rank(problem);
  if (found == candidates.reference_ns.end() || ranking.empty()) {
    return std::optional<Verdict>();
  }
  const double first_ns = found->second;
  const auto answer = answers.find(problem.text());
  std::optional<double> library_score = score_of(selector, ranking, library);
  if (answer != answers.end()) {
    FORETUNE_TRY(library_score, score_config(selector.model(), problem, answer->second));
  }
  Verdict verdict;
  bool has_pick = false;
  std::vector<double> own;  // speeds of the model's first others
  for (std::size_t i = 0; i < ranking.size() && own.size() < top; ++i) {
    const Config config = selector.config(ranking[i].candidate);
    const std::optional<double> in_turns = speed_over(candidates.reference_ns, library, config);
    const std::optional<double> measured =
        in_turns ? in_turns : speed_over(candidates.once_ns, library, config);
    if (!measured) {
      continue;  // refused, or wrong: whoever runs the picks takes the next
    }
    // The same algorithm by another name.
    const bool is_library = answer != answers.end() && config == answer->second;
    const double speed = is_library ? 1 : *measured;
    // The best of several that were measured once is the luckiest: only the first counts then.
    if (i < top && (in_turns || !has_pick)) {
      verdict.best_of_top = has_pick ? std::max(verdict.best_of_top, speed) : speed;
    }
    if (config != library) {
      own.push_back(in_turns || own.empty() ? speed : 0);
    }
    if (!has_pick) {
      has_pick = true;
      verdict.is_in_turns = in_turns.has_value();
      verdict.pick = speed;
      verdict.expected_gain = library_score.value_or(ranking[i].score) - ranking[i].score;
      verdict.is_careful_pick = !library_score || verdict.expected_gain >= margin;
      verdict.careful = verdict.is_careful_pick ? speed : 1;
    }
  }
  double fastest_other = 0;
  for (const auto& [config, time_ns] : candidates.reference_ns) {
    fastest_other = std::max(fastest_other, config == library ? 0 : first_ns / time_ns);
  }
  verdict.oracle = std::max(1.0, fastest_other);
  if (!own.empty()) {
    verdict.own_efficiency = std::min(1.0, own.front() / fastest_other);
    verdict.own_top_efficiency =
        std::min(1.0, *std::max_element(own.begin(), own.end()) / fastest_other);
  }
  const Choice fast = selector.select_fast(problem).choice;
  if (fast.has_candidate) {
    verdict.fast = speed_over(candidates.once_ns, library, selector.config(fast.candidate));
  }
  for (std::int32_t rank = 1; rank <= kCublasltHeuristicRanks; ++rank) {
    const auto speed =
        speed_over(candidates.once_ns, library, CublasltConfig::rank(rank).to_config());
    verdict.best_of_ranks = std::max(verdict.best_of_ranks, speed.value_or(1));
  }
  return has_pick ? std::optional<Verdict>(verdict) : std::nullopt;
}

struct Line {
  std::string name;
  std::string metric;
  std::vector<double> speeds;

  void print(std::string_view family, Figures& figures) const {
    const auto slower =
        std::count_if(speeds.begin(), speeds.end(), [](double speed) { return speed < 0.98; });
    const double geomean = geometric_mean(speeds);
    const double share = static_cast<double>(slower) / static_cast<double>(speeds.size());
    std::printf("%-44s %8.4f %8.3f %8.3f %8.3f %8.1f\n", name.c_str(), geomean,
                quantile(speeds, 0.1), quantile(speeds, 0.5), quantile(speeds, 0.9), 100 * share);
    figures.add(metric == "oracle_" ? concat(family, "_oracle_geomean")
                                    : concat(family, "_", metric, "geomean_vs_heuristic"),
                geomean);
    figures.add(concat(family, "_", metric, "share_slower_than_098"), share);
  }
};

void print_head(std::size_t problems) {
  std::printf("%zu problems; speed over the library's choice\n%-44s %8s %8s %8s %8s %8s\n",
              problems, "", "geomean", "P10", "median", "P90", "% < 0.98");
}

struct Judged {
  std::string family;
  std::map<std::string, Verdict> verdicts;  // by the problem's text
  std::vector<Problem> problems;
};

Result<Judged> judge_all(const Selector& selector, const Dataset& dataset, const Answers& answers,
                         double margin, std::size_t top) {
  Judged judged;
  judged.family = dataset.header().family;
  FamilyOptions options;
  options.fingerprint = dataset.header().fingerprint;
  FORETUNE_TRY(const std::unique_ptr<Family> family,
               create_detached_family(judged.family, options));
  for (const auto& [index, candidates] : read_candidates(dataset)) {
    const Problem& problem = dataset.problems()[index];
    const std::vector<Config> defaults = family->default_configs(problem);
    std::optional<Verdict> verdict;
    if (!defaults.empty()) {
      FORETUNE_TRY(verdict,
                   judge(selector, problem, defaults.front(), candidates, answers, margin, top));
    }
    if (!verdict) {
      std::printf("left out: %s\n", problem.text().c_str());
      continue;
    }
    judged.verdicts.emplace(problem.text(), *verdict);
    judged.problems.push_back(problem);
  }
  if (judged.problems.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem was compared");
  }
  return judged;
}

void report(const Selector& selector, const Judged& judged, double margin, std::size_t top,
            Figures& figures) {
  Line pick{"the model's pick", "", {}};
  Line careful{concat("... or the library's within ", 100 * margin, " %"), "careful_", {}};
  Line best_of_top{concat("best of the model's first ", top, ", measured"), "top_", {}};
  Line fast{"the fast mode's pick, measured once", "fast_", {}};
  Line ranks{"best of the heuristic's answers, measured", "ranks_", {}};
  Line oracle{"the fastest of the space", "oracle_", {}};
  std::size_t kept = 0;
  std::size_t once = 0;
  std::vector<double> own;
  std::vector<double> own_top;
  for (const auto& [text, verdict] : judged.verdicts) {
    if (verdict.own_efficiency) {
      own.push_back(*verdict.own_efficiency);
      own_top.push_back(verdict.own_top_efficiency);
    }
    pick.speeds.push_back(verdict.pick);
    careful.speeds.push_back(verdict.careful);
    best_of_top.speeds.push_back(verdict.best_of_top);
    if (judged.family == "cublaslt") {
      ranks.speeds.push_back(verdict.best_of_ranks);
    }
    if (verdict.fast) {
      fast.speeds.push_back(*verdict.fast);
    }
    oracle.speeds.push_back(verdict.oracle);
    kept += verdict.is_careful_pick ? 0U : 1U;
    once += verdict.is_in_turns ? 0U : 1U;
  }
  std::printf("%s: ", judged.family.c_str());
  print_head(judged.problems.size());
  for (const Line* line : {&pick, &careful, &fast, &best_of_top, &ranks, &oracle}) {
    if (!line->speeds.empty()) {
      line->print(judged.family, figures);
    }
  }
  if (!own.empty()) {
    std::printf(
        "without the library's choice, over the fastest other in turns: first %.2f %% "
        "(P10 %.2f, min %.1f), best of %zu %.2f %%\n",
        100 * mean(own), 100 * quantile(own, 0.1), 100 * quantile(own, 0), top,
        100 * mean(own_top));
    figures.add(concat(judged.family, "_top1_mean_efficiency"), mean(own));
    figures.add(concat(judged.family, "_p10_efficiency"), quantile(own, 0.1));
    figures.add(concat(judged.family, "_top", top, "_efficiency"), mean(own_top));
  }
  std::printf(
      "%zu picks took no part in the comparison and were measured once; the library's choice is "
      "kept on %zu; a new problem takes %.1f us, %.2f us by the fast "
      "mode\n",
      once, kept, bench::selection_us(selector, judged.problems, kTimedRuns, false),
      bench::selection_us(selector, judged.problems, kTimedRuns, true));
  figures.add("problems", static_cast<double>(judged.problems.size()));
}

// Both families on the problems that both have.
void report_union(const Judged& first, const Judged& second, double margin, Figures& figures) {
  Line pick{"the pick that its model expects most of", "", {}};
  Line careful{concat("... or the library's within ", 100 * margin, " %"), "careful_", {}};
  Line best_of_top{"best of the first few of both, measured", "top_", {}};
  Line oracle{"the fastest of both spaces", "oracle_", {}};
  std::size_t from_second = 0;
  for (const auto& [text, a] : first.verdicts) {
    const auto found = second.verdicts.find(text);
    if (found == second.verdicts.end()) {
      continue;
    }
    const Verdict& b = found->second;
    const Verdict& chosen = b.expected_gain > a.expected_gain ? b : a;
    from_second += &chosen == &b ? 1U : 0U;
    pick.speeds.push_back(chosen.pick);
    careful.speeds.push_back(chosen.expected_gain >= margin ? chosen.pick : 1);
    best_of_top.speeds.push_back(std::max(a.best_of_top, b.best_of_top));
    oracle.speeds.push_back(std::max(a.oracle, b.oracle));
  }
  std::printf("%s or %s, whichever expects more: ", first.family.c_str(), second.family.c_str());
  print_head(pick.speeds.size());
  if (pick.speeds.empty()) {
    return;
  }
  for (const Line* line : {&pick, &careful, &best_of_top, &oracle}) {
    line->print("union", figures);
  }
  std::printf("%zu picks are of %s\n", from_second, second.family.c_str());
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
  const double margin = bench::number_argument(argc, argv, "margin", 0);
  const auto top = bench::count_argument<std::size_t>(argc, argv, "top", 5);
  FORETUNE_TRY(const Dataset dataset, read_dataset(data));
  FORETUNE_TRY(const Answers answers, read_answers(bench::argument(argc, argv, "answers")));
  FORETUNE_TRY(const Judged judged, judge_all(*selector, dataset, answers, margin, top));
  report(*selector, judged, margin, top, figures);
  const std::string second_path = bench::argument(argc, argv, "second");
  if (second_path.empty()) {
    return {};
  }
  FORETUNE_TRY(const std::unique_ptr<Selector> second, Selector::open(second_path));
  FORETUNE_TRY(const Dataset second_dataset,
               read_dataset(bench::argument(argc, argv, "second-data")));
  FORETUNE_TRY(const Judged second_judged, judge_all(*second, second_dataset, {}, margin, top));
  report(*second, second_judged, margin, top, figures);
  report_union(judged, second_judged, margin, figures);
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("gpu_select", argc, argv, foretune::run);
}
