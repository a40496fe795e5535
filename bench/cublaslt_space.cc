// Finds the options of cuBLASLt that win. For every problem of a list, times all configs that the
// library accepts, with early stopping and in random order, and the ranks of its heuristic, into
// one data set. From such data it chooses the configs worth measuring elsewhere, as the family's
// list.
//
//   cublaslt_space --shapes bench/shapes/cublaslt_space.csv --output space.ftd [--seconds 20]
//                  [--splits 2,3,4,6,8,16] [--driver FILE] [--cublaslt FILE] [--nvml FILE]
//                  [--clock_log FILE] [--workspace_mb N] [--finals ROUNDS]
//   cublaslt_space --portfolio 2000 --space space.ftd --output configs.txt
//   cublaslt_space --list answers --shapes shapes.csv --output answers.tsv
//   cublaslt_space --list configs --shapes shapes.csv --output configs.txt [--splits 2,3,4,6,8,16]
//
// A problem is cut off after --seconds; its measurements are then a random part. With --finals the
// built-in portfolio is measured, too, ahead of all others, and at the end the heuristic's first
// choice, the best twelve of the portfolio and the best twelve of all run in turns. The second form
// needs no device. The third lists the configs of the heuristic's answers: problem, rank, config.
// The fourth lists all configs that the library accepts for at least one of the problems.
//
//   cublaslt_space --resolve answers.tsv --space in.ftd --output out.ftd [--least-bound NS]
//
// The fifth adds to a data set what its ranks of the heuristic stand for: a measured rank is also a
// measurement of the config that the heuristic named, unless that was measured itself. The output
// has today's rules of the space and only what they allow, and no bounds below --least-bound of
// configs that were stopped early: some are the gap between two launches.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/gpu_device.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/cublaslt/cublaslt.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/measure/dataset_header.h"

namespace foretune {
namespace {

struct Arguments {
  std::string shapes;
  std::string output;
  std::string space;
  double seconds = 20;
  std::vector<std::int32_t> splits;
  int finals = 0;  // rounds
  std::size_t portfolio = 0;
  std::string list;     // answers, configs or nothing
  std::string resolve;  // file of answers
  double least_bound_ns = 0;
};

Result<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  arguments.shapes = bench::argument(argc, argv, "shapes");
  arguments.output = bench::argument(argc, argv, "output");
  arguments.space = bench::argument(argc, argv, "space");
  arguments.seconds = bench::number_argument(argc, argv, "seconds", 20);
  arguments.finals = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "finals", 0));
  arguments.portfolio = bench::count_argument<std::size_t>(argc, argv, "portfolio", 0);
  arguments.list = bench::argument(argc, argv, "list");
  if (!arguments.list.empty() && arguments.list != "answers" && arguments.list != "configs") {
    return fail(ErrorCode::kInvalidArgument, "--list takes answers or configs, not ",
                arguments.list);
  }
  const std::string splits = bench::argument(argc, argv, "splits", "2,3,4,6,8,16");
  for (const std::string_view part : split(splits, ',')) {
    const auto number = parse_int(part);
    if (!number || *number < 2 || *number > 64) {
      return fail(ErrorCode::kInvalidArgument, "--splits takes numbers from 2 to 64, not ", part);
    }
    arguments.splits.push_back(static_cast<std::int32_t>(*number));
  }
  arguments.resolve = bench::argument(argc, argv, "resolve");
  arguments.least_bound_ns = bench::number_argument(argc, argv, "least-bound", 0);
  const bool reads_space = arguments.portfolio > 0 || !arguments.resolve.empty();
  if (arguments.output.empty() || reads_space != arguments.shapes.empty() ||
      reads_space == arguments.space.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "give --shapes and --output, or --space, --output and ",
                "--portfolio or --resolve");
  }
  return arguments;
}

// Explicit configs of a problem, with times in ns; fastest first once sorted.
using Ranking = std::vector<std::pair<double, Config>>;

// More than a handful, since the fastest of many configs that were measured once are the luckiest.
constexpr std::size_t kFinalists = 12;

// Below 0: none yet.
double faster(double best_ns, double time_ns) {
  return best_ns < 0 ? time_ns : std::min(best_ns, time_ns);
}

// The results of one problem.
struct Walk {
  Ranking ranking;               // measured configs of the space, in the order of measuring
  std::size_t of_portfolio = 0;  // number of leading entries of `ranking` from the portfolio
  // Medians in turns.
  double final_first_ns = -1;
  double final_portfolio_ns = -1;
  double final_best_ns = -1;
  std::size_t configs = 0;
  std::size_t measured = 0;
  std::size_t ok = 0;
  std::size_t wrong = 0;
  double first_ns = -1;      // time of the heuristic's first choice
  double best_rank_ns = -1;  // best time of all its choices
  double best_ns = -1;
  double enumerate_s = 0;
  double measure_s = 0;

  void learn(const CublasltConfig& config, const Measurement& measurement) {
    ++measured;
    wrong += measurement.outcome == Outcome::kWrongResult ? 1U : 0U;
    const MetricValue* const time = measurement.find(kTimeNs);
    if (measurement.outcome != Outcome::kOk || time == nullptr) {
      return;
    }
    ++ok;
    best_ns = faster(best_ns, time->value);
    if (config.heuristic == 1) {
      first_ns = time->value;
    }
    if (config.heuristic > 0) {
      best_rank_ns = best_ns;
    } else {
      ranking.emplace_back(time->value, measurement.config);
    }
  }

  void print(const Problem& problem) const {
    std::printf("%-52s %7zu %7zu %6zu %5zu %9.2f %9.2f %9.2f %6.3f %6.1f %6.1f %6.0f\n",
                problem.text().c_str(), configs, measured, ok, wrong, first_ns / 1e3,
                best_rank_ns / 1e3, best_ns / 1e3, first_ns / best_ns, enumerate_s, measure_s,
                1e6 * measure_s / static_cast<double>(std::max<std::size_t>(1, measured)));
    if (final_first_ns > 0 && final_portfolio_ns > 0) {
      std::printf(
          "  in turns: first %.2f, best of the portfolio %.2f (%.3f x), of all %.2f (%.3f x)\n",
          final_first_ns / 1e3, final_portfolio_ns / 1e3, final_first_ns / final_portfolio_ns,
          final_best_ns / 1e3, final_first_ns / final_best_ns);
    }
    std::fflush(stdout);
  }
};

Ranking best_of(Ranking ranking) {
  const std::size_t count = std::min(kFinalists, ranking.size());
  std::partial_sort(ranking.begin(), ranking.begin() + static_cast<std::ptrdiff_t>(count),
                    ranking.end());
  ranking.resize(count);
  return ranking;
}

Status compare_finalists(int rounds, Measurer& measurer, JournalWriter& journal,
                         const Problem& problem, Walk& walk) {
  const auto end = walk.ranking.begin() + static_cast<std::ptrdiff_t>(walk.of_portfolio);
  std::vector<Config> contestants{CublasltConfig::rank(1).to_config()};
  for (const auto& [time_ns, config] : best_of(Ranking(walk.ranking.begin(), end))) {
    contestants.push_back(config);
  }
  const std::size_t rest = contestants.size();
  for (const auto& [time_ns, config] : best_of(walk.ranking)) {
    if (std::find(contestants.begin(), contestants.end(), config) == contestants.end()) {
      contestants.push_back(config);
    }
  }
  std::vector<Measurement> compared = measurer.compare(problem, contestants, rounds);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    compared[i].context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(journal.append(compared[i]));
    const MetricValue* const time = compared[i].find(kMedianNs);
    if (compared[i].outcome != Outcome::kOk || time == nullptr) {
      continue;
    }
    if (i == 0) {
      walk.final_first_ns = time->value;
      continue;
    }
    walk.final_best_ns = faster(walk.final_best_ns, time->value);
    if (i < rest) {
      walk.final_portfolio_ns = faster(walk.final_portfolio_ns, time->value);
    }
  }
  return {};
}

// Returns all configs of the portfolio, then those of `configs` that are not among them.
Result<std::vector<CublasltConfig>> with_portfolio(const CublasltFamily& family,
                                                   const Problem& problem,
                                                   const std::vector<CublasltConfig>& configs,
                                                   std::size_t& of_portfolio) {
  std::vector<CublasltConfig> order;
  std::set<Config> known;
  FORETUNE_TRY(const std::unique_ptr<Space> space, family.space(problem));
  for (std::uint64_t i = 0; i < space->enumerable()->count(); ++i) {
    Config config = space->enumerable()->unrank(i);
    FORETUNE_TRY(const CublasltConfig parsed, CublasltConfig::from(config));
    if (parsed.heuristic == 0 && known.insert(std::move(config)).second) {
      order.push_back(parsed);
    }
  }
  of_portfolio = order.size();
  for (const CublasltConfig& config : configs) {
    if (!known.contains(config.to_config())) {
      order.push_back(config);
    }
  }
  return order;
}

Result<Walk> walk(const Arguments& arguments, const CublasltFamily& family, Measurer& measurer,
                  JournalWriter& journal, const Problem& problem, Rng rng) {
  Walk walk;
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(std::vector<CublasltConfig> configs, family.enumerate(problem, arguments.splits));
  walk.configs = configs.size();
  rng.shuffle(std::span(configs));
  // Splits of k help few problems and are most of the space.
  std::stable_partition(configs.begin(), configs.end(),
                        [](const CublasltConfig& config) { return config.split_k == 1; });
  std::size_t of_portfolio = 0;
  if (arguments.finals > 0) {
    FORETUNE_TRY(configs, with_portfolio(family, problem, configs, of_portfolio));
  }
  std::vector<CublasltConfig> order;
  for (std::int32_t rank = 1; rank <= kCublasltHeuristicRanks; ++rank) {
    order.push_back(CublasltConfig::rank(rank));
  }
  of_portfolio += order.size();
  order.insert(order.end(), configs.begin(), configs.end());
  const double start_s = bench::seconds_now();
  walk.enumerate_s = start_s - begin_s;
  for (const CublasltConfig& config : order) {
    if (bench::seconds_now() - start_s > arguments.seconds) {
      break;
    }
    const Measurement measurement = measurer.measure(
        {.problem = problem, .config = config.to_config(), .incumbent_ns = walk.best_ns});
    FORETUNE_TRY_STATUS(journal.append(measurement));
    walk.learn(config, measurement);
    if (walk.measured == of_portfolio) {
      walk.of_portfolio = walk.ranking.size();
    }
  }
  walk.measure_s = bench::seconds_now() - start_s;
  if (arguments.finals > 0) {
    FORETUNE_TRY_STATUS(compare_finalists(arguments.finals, measurer, journal, problem, walk));
  }
  return walk;
}

Status measure_all(const Arguments& arguments, const bench::GpuDevice<CublasltFamily>& device) {
  FORETUNE_TRY(const std::vector<Problem> problems, read_shape_set(arguments.shapes));
  DatasetHeader header = header_of(device.family->info());
  header.created_by = "bench/cublaslt_space";
  FORETUNE_TRY(const auto journal, JournalWriter::open(arguments.output, header));
  std::printf("%-52s %7s %7s %6s %5s %9s %9s %9s %6s %6s %6s %6s\n", "problem, times in us",
              "configs", "tried", "ok", "wrong", "first", "best of 8", "best", "gain", "list s",
              "run s", "each");
  const Rng rng(1);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Result<Walk> walked =
        walk(arguments, *device.family, *device.measurer, *journal, problems[i], rng.split(i));
    if (!walked) {
      std::printf("%s: %s\n", problems[i].text().c_str(), walked.error().message.c_str());
      continue;
    }
    walked->print(problems[i]);
  }
  return journal->sync();
}

Status list_answers(const Arguments& arguments, const bench::GpuDevice<CublasltFamily>& device) {
  FORETUNE_TRY(const std::vector<Problem> problems, read_shape_set(arguments.shapes));
  std::string table;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(const std::vector<CublasltConfig> answers, device.family->heuristic(problem));
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      table += concat(problem.text(), "\t", rank + 1, "\t",
                      to_text(cublaslt_schema(), answers[rank].to_config()), "\n");
    }
  }
  return write_text_file_atomically(arguments.output, table);
}

Status list_configs(const Arguments& arguments, const bench::GpuDevice<CublasltFamily>& device) {
  FORETUNE_TRY(const std::vector<Problem> problems, read_shape_set(arguments.shapes));
  std::set<Config> accepted;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(const std::vector<CublasltConfig> configs,
                 device.family->enumerate(problem, arguments.splits));
    for (const CublasltConfig& config : configs) {
      accepted.insert(config.to_config());
    }
  }
  std::string lines;
  for (const Config& config : accepted) {
    lines += to_text(cublaslt_schema(), config);
    lines += '\n';
  }
  return write_text_file_atomically(arguments.output, lines);
}

// Takes the next best config of each problem in turn until there are enough. The best configs of
// every problem come early, and late ones are hardly better than those chosen before.
std::vector<Config> choose(const std::vector<Ranking>& rankings, std::size_t wanted) {
  std::vector<Config> chosen;
  std::map<Config, bool> taken;
  std::size_t deepest = 0;
  for (const Ranking& ranking : rankings) {
    deepest = std::max(deepest, ranking.size());
  }
  for (std::size_t rank = 0; rank < deepest; ++rank) {
    for (const Ranking& ranking : rankings) {
      if (rank < ranking.size() && chosen.size() < wanted &&
          taken.emplace(ranking[rank].second, true).second) {
        chosen.push_back(ranking[rank].second);
      }
    }
  }
  return chosen;
}

Status list_portfolio(const Arguments& arguments) {
  FORETUNE_TRY(const Dataset dataset, read_dataset(arguments.space));
  std::map<std::uint32_t, Ranking> by_problem;
  for (RowIndex row = 0; row < dataset.rows().size(); ++row) {
    const Measurement measurement = dataset.measurement(row);
    const MetricValue* const time = measurement.find(kTimeNs);
    FORETUNE_TRY(const CublasltConfig config, CublasltConfig::from(measurement.config));
    if (measurement.outcome == Outcome::kOk && time != nullptr && config.heuristic == 0 &&
        (measurement.flags & kFlagReference) == 0) {
      by_problem[dataset.rows()[row].problem].emplace_back(time->value, measurement.config);
    }
  }
  std::vector<Ranking> rankings;
  for (auto& [problem, ranking] : by_problem) {
    std::sort(ranking.begin(), ranking.end());
    rankings.push_back(std::move(ranking));
  }
  const std::vector<Config> chosen = choose(rankings, arguments.portfolio);
  std::string text =
      concat("# Of ", dataset.rows().size(), " measurements of ", rankings.size(), " problems on ",
             dataset.header().fingerprint.device, " (bench/cublaslt_space).\n");
  for (const Config& config : chosen) {
    text += to_text(cublaslt_schema(), config);
    text += '\n';
  }
  std::printf("%zu configs of %zu problems\n", chosen.size(), rankings.size());
  return write_text_file_atomically(arguments.output, text);
}

Result<std::map<std::pair<std::string, std::int32_t>, Config>> read_answers(
    const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::map<std::pair<std::string, std::int32_t>, Config> answers;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(line, '\t');
    if (parts.size() != 3) {
      continue;
    }
    const auto rank = parse_int(parts[1]);
    // The text of a config that no space has (a split of k into -1 parts) is left out.
    if (const auto config = parse_config(cublaslt_schema(), parts[2]); rank && config) {
      answers.insert_or_assign({std::string(parts[0]), static_cast<std::int32_t>(*rank)}, *config);
    }
  }
  return answers;
}

Status resolve_ranks(const Arguments& arguments) {
  FORETUNE_TRY(const auto answers, read_answers(arguments.resolve));
  FORETUNE_TRY(const auto rules, CompiledSpace::create(cublaslt_space()));
  FORETUNE_TRY(Dataset dataset, read_dataset(arguments.space));
  const Hardware hardware = dataset.header().fingerprint.hardware;
  std::set<std::pair<std::uint32_t, Config>> measured;
  for (const Dataset::Row& row : dataset.rows()) {
    measured.emplace(row.problem, dataset.configs()[row.config]);
  }
  DatasetHeader header = dataset.header();
  header.space_text = cublaslt_space().text();
  FORETUNE_TRY(const auto journal, JournalWriter::open(arguments.output, header));
  std::size_t added = 0;
  std::size_t left_out = 0;
  for (RowIndex row = 0; row < dataset.size(); ++row) {
    Measurement measurement = dataset.measurement(row);
    const bool is_doubtful =
        measurement.outcome == Outcome::kCensored &&
        static_cast<double>(dataset.rows()[row].time_ns) < arguments.least_bound_ns;
    if (is_doubtful || !rules->why_not(measurement.config, measurement.problem, hardware)) {
      ++left_out;
      continue;
    }
    FORETUNE_TRY_STATUS(journal->append(measurement));
    FORETUNE_TRY(const CublasltConfig config, CublasltConfig::from(measurement.config));
    const auto answer = answers.find({measurement.problem.text(), config.heuristic});
    if (answer == answers.end() || !rules->why_not(answer->second, measurement.problem, hardware) ||
        !measured.emplace(dataset.rows()[row].problem, answer->second).second) {
      continue;
    }
    measurement.config = answer->second;
    FORETUNE_TRY_STATUS(journal->append(measurement));
    ++added;
  }
  std::printf("%zu measurements, %zu of them added, %zu left out\n",
              dataset.size() + added - left_out, added, left_out);
  return journal->sync();
}

Status run(int argc, char** argv, Figures& /*figures*/) {
  FORETUNE_TRY(const Arguments arguments, parse(argc, argv));
  if (arguments.portfolio > 0) {
    return list_portfolio(arguments);
  }
  if (!arguments.resolve.empty()) {
    return resolve_ranks(arguments);
  }
  FORETUNE_TRY(const bench::GpuDevice<CublasltFamily> device,
               bench::open_gpu<CublasltFamily>(argc, argv, create_cublaslt));
  if (arguments.list.empty()) {
    return measure_all(arguments, device);
  }
  return arguments.list == "answers" ? list_answers(arguments, device)
                                     : list_configs(arguments, device);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("cublaslt_space", argc, argv, foretune::run);
}
