// Finds what there is to win over cuDNN's heuristics. For every convolution of a list it lists the
// configs that the library accepts, makes their plans on all cores, and times as many as there is
// time for beside the heuristics' answers, all into one data set and one line of a table for each
// convolution.
//
//   cudnn_space --shapes bench/shapes/cudnn_layers.txt --output space.ftd --table space.tsv
//               [--seconds 2] [--list-seconds 1.5] [--build-seconds 1.5] [--configs-max 1500]
//               [--threads N] [--splits 1,2,4,8,16] [--rounds 9] [--driver FILE] [--cudnn FILE]
//               [--nvml FILE] [--clock_log FILE] [--workspace_mb N] [--deterministic 1]
//   cudnn_space --summary space.tsv
//
// The answers of the heuristics come first, then the engines' own choices, then a random part of
// all others, each with early stopping; the limits are per convolution. At the end the first
// answers of A, B and fallback, the choice of one short timing among the first ten of A and the
// fallback's (as PyTorch's benchmark mode does) and the best eight run in turns. Convolutions that
// the table has already are skipped. A config that ended the program is named in a file beside the
// output; the next run records it as crashed and goes on.
//
// The second form prints, by direction, what the table says.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/cudnn_answers.h"
#include "bench/cudnn_crashes.h"
#include "bench/gpu_device.h"
#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/cudnn/cudnn.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

// A pick slower than the best by more than this leaves something to win.
constexpr double kWorthwhile = 1.03;
constexpr std::size_t kFinalists = 8;
constexpr std::size_t kNeighboured = 4;
// A convolution that ended the program so often is left out.
constexpr std::size_t kMaxCrashes = 4;

struct Arguments {
  std::string shapes;
  std::string output;
  std::string table;
  double seconds = 2;
  double list_seconds = 1.5;
  double build_seconds = 1.5;
  std::size_t configs_max = 1500;
  std::size_t threads = 1;
  int rounds = 9;
  std::vector<std::int32_t> splits;
};

Result<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  arguments.shapes = bench::argument(argc, argv, "shapes");
  arguments.output = bench::argument(argc, argv, "output");
  arguments.table = bench::argument(argc, argv, "table");
  arguments.seconds = bench::number_argument(argc, argv, "seconds", 2);
  arguments.list_seconds = bench::number_argument(argc, argv, "list-seconds", 1.5);
  arguments.build_seconds = bench::number_argument(argc, argv, "build-seconds", 1.5);
  arguments.configs_max = bench::count_argument<std::size_t>(argc, argv, "configs-max", 1500);
  arguments.threads = bench::count_argument<std::size_t>(
      argc, argv, "threads", std::max(1U, std::thread::hardware_concurrency()));
  arguments.rounds = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "rounds", 9));
  const std::string splits = bench::argument(argc, argv, "splits", "1,2,4,8,16");
  for (const std::string_view part : split(splits, ',')) {
    const auto number = parse_int(part);
    if (!number || *number < 1 || *number > 2048) {
      return fail(ErrorCode::kInvalidArgument, "--splits takes numbers from 1 to 2048, not ", part);
    }
    arguments.splits.push_back(static_cast<std::int32_t>(*number));
  }
  if (arguments.shapes.empty() || arguments.output.empty() || arguments.table.empty() ||
      arguments.threads == 0) {
    return fail(ErrorCode::kInvalidArgument,
                "give --shapes, --output and --table, or --summary with a table");
  }
  return arguments;
}

// The columns of the table after the problem. Times in ns; below 0: none.
struct Row {
  std::string problem;
  double combinations = 0;
  double tried = 0;
  double accepted = 0;
  double measured = 0;
  double ok = 0;
  double wrong = 0;
  double refused = 0;
  double stopped = 0;
  double a_ns = -1;
  double b_ns = -1;
  double fallback_ns = -1;
  double benchmark_ns = -1;
  double best_ns = -1;
  double best_answer_ns = -1;  // of all answers of A and B, each timed once
  double best_exact_ns = -1;   // of the deterministic engines
  double best_bytes = 0;
  double prepare_s = 0;  // listing and making plans
  double seconds = 0;    // altogether
  std::string best;

  static constexpr std::string_view kHead =
      "problem\tcombinations\ttried\taccepted\tmeasured\tok\twrong\trefused\tstopped\ta_ns\tb_ns\t"
      "fallback_ns\tbenchmark_ns\tbest_ns\tbest_answer_ns\tbest_deterministic_ns\tbest_bytes\t"
      "prepare_s\tseconds\tbest\n";

  std::vector<double*> numbers() {
    return {&combinations, &tried,        &accepted, &measured,       &ok,
            &wrong,        &refused,      &stopped,  &a_ns,           &b_ns,
            &fallback_ns,  &benchmark_ns, &best_ns,  &best_answer_ns, &best_exact_ns,
            &best_bytes,   &prepare_s,    &seconds};
  }
  std::string line() {
    std::string text = problem;
    for (const double* number : numbers()) {
      text += concat("\t", *number);
    }
    return concat(text, "\t", best, "\n");
  }
  static std::optional<Row> read(std::string_view line) {
    const std::vector<std::string_view> parts = split(line, '\t');
    Row row;
    const std::vector<double*> numbers = row.numbers();
    if (parts.size() != numbers.size() + 2 || parts[0] == "problem") {
      return std::nullopt;
    }
    row.problem = std::string(parts[0]);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      *numbers[i] = parse_double(parts[i + 1]).value_or(-1);
    }
    row.best = std::string(parts.back());
    return row;
  }
};

Result<std::vector<Row>> read_table(const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::vector<Row> rows;
  for (const std::string_view line : split(text, '\n')) {
    if (std::optional<Row> row = Row::read(line)) {
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The gain of the best of all over a choice, in the rows that have both.
struct Gain {
  double mean = 0;  // geometric
  double median = 0;
  double max = 0;
  double worthwhile = 0;  // share of rows
  std::size_t rows = 0;
};

template <class Choice>
Gain gain_over(const std::vector<Row>& rows, const Choice& choice) {
  std::vector<double> ratios;
  double logs = 0;
  double worthwhile = 0;
  for (const Row& row : rows) {
    const double chosen = choice(row);
    if (chosen > 0 && row.best_ns > 0) {
      ratios.push_back(chosen / row.best_ns);
      logs += std::log(ratios.back());
      worthwhile += ratios.back() > kWorthwhile ? 1 : 0;
    }
  }
  if (ratios.empty()) {
    return {};
  }
  const auto count = static_cast<double>(ratios.size());
  return {.mean = std::exp(logs / count),
          .median = median_of(ratios),
          .max = *std::max_element(ratios.begin(), ratios.end()),
          .worthwhile = worthwhile / count,
          .rows = ratios.size()};
}

double lesser(double a, double b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

void print_gain(const char* name, const Gain& gain) {
  std::printf("  %-34s %4zu layers: mean %.3f, median %.3f, max %.2f; more than 3 %%: %.0f %%\n",
              name, gain.rows, gain.mean, gain.median, gain.max, 100 * gain.worthwhile);
}

void print_summary(const std::vector<Row>& all) {
  std::map<std::string, std::vector<Row>> by_direction;
  for (const Row& row : all) {
    const auto problem = Problem::parse(row.problem);
    const auto conv =
        problem ? ConvProblem::from(*problem)
                : Result<ConvProblem>(fail(ErrorCode::kInvalidArgument, "no convolution"));
    by_direction[conv ? std::string(to_string(conv->operation())) : "unknown"].push_back(row);
  }
  for (const auto& [direction, rows] : by_direction) {
    const auto sum = [&layers = rows](double Row::* field) {
      double total = 0;
      for (const Row& row : layers) {
        total += row.*field;
      }
      return total;
    };
    std::printf("%s: %zu layers\n", direction.c_str(), rows.size());
    std::printf(
        "  configs a layer: %.0f combinations, %.0f tried, %.0f accepted; measured %.0f: "
        "ok %.0f, stopped early %.0f, refused %.0f, wrong %.0f\n",
        sum(&Row::combinations) / static_cast<double>(rows.size()),
        sum(&Row::tried) / static_cast<double>(rows.size()),
        sum(&Row::accepted) / static_cast<double>(rows.size()), sum(&Row::measured), sum(&Row::ok),
        sum(&Row::stopped), sum(&Row::refused), sum(&Row::wrong));
    print_gain("best over A's first", gain_over(rows, [](const Row& row) { return row.a_ns; }));
    print_gain("best over B's first", gain_over(rows, [](const Row& row) { return row.b_ns; }));
    print_gain("best over the better of A and B",
               gain_over(rows, [](const Row& row) { return lesser(row.a_ns, row.b_ns); }));
    print_gain("best over one timing of A's ten",
               gain_over(rows, [](const Row& row) { return row.benchmark_ns; }));
    print_gain("best over the best answer of A, B",
               gain_over(rows, [](const Row& row) { return row.best_answer_ns; }));
    print_gain("best deterministic over best",
               gain_over(rows, [](const Row& row) { return row.best_exact_ns; }));
  }
}

// One convolution.
class Walk {
 public:
  Walk(const Arguments& arguments, const bench::GpuDevice<CudnnFamily>& device,
       JournalWriter& journal, const Problem& problem, const bench::CudnnCrashes& crashes)
      : arguments_(arguments),
        device_(device),
        journal_(journal),
        problem_(problem),
        crashes_(crashes) {
    row_.problem = problem.text();
  }

  Result<Row> go();

 private:
  Status measure(const CudnnConfig& config);
  std::vector<CudnnConfig>::iterator nearest(std::vector<CudnnConfig>& order);
  Status finals();
  Status append(const Measurement& measurement) { return journal_.append(measurement); }

  const Arguments& arguments_;
  const bench::GpuDevice<CudnnFamily>& device_;
  JournalWriter& journal_;
  Problem problem_;
  const bench::CudnnCrashes& crashes_;
  Row row_;
  bench::CudnnAnswers answers_;
  std::vector<std::pair<double, CudnnConfig>> ranking_;
  double best_ns_ = -1;
};

Status Walk::measure(const CudnnConfig& config) {
  FORETUNE_TRY_STATUS(crashes_.trying(problem_, config));
  const Measurement measurement = device_.measurer->measure(
      {.problem = problem_, .config = config.to_config(), .incumbent_ns = best_ns_});
  FORETUNE_TRY_STATUS(append(measurement));
  ++row_.measured;
  const MetricValue* const time = measurement.find(kTimeNs);
  switch (measurement.outcome) {
    case Outcome::kOk:
      ++row_.ok;
      break;
    case Outcome::kCensored:
      ++row_.stopped;
      return {};
    case Outcome::kWrongResult:
      ++row_.wrong;
      return {};
    default:
      ++row_.refused;
      return {};
  }
  if (time != nullptr) {
    ranking_.emplace_back(time->value, config);
    best_ns_ = lesser(best_ns_, time->value);
    const MetricValue* const exact = measurement.find(kDeterministic);
    if (exact != nullptr && exact->value > 0) {
      row_.best_exact_ns = lesser(row_.best_exact_ns, time->value);
    }
  }
  return {};
}

Status Walk::finals() {
  const auto benchmark = bench::benchmark_choice(*device_.measurer, problem_, answers_);
  std::vector<CudnnConfig> contestants{CudnnConfig::ranked(CudnnHeuristic::kA, 1),
                                       CudnnConfig::ranked(CudnnHeuristic::kB, 1),
                                       CudnnConfig::ranked(CudnnHeuristic::kFallback, 1)};
  if (benchmark) {
    contestants.push_back(*benchmark);
  }
  const std::size_t named = contestants.size();
  std::sort(ranking_.begin(), ranking_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(kFinalists, ranking_.size()); ++i) {
    contestants.push_back(ranking_[i].second);
  }
  std::vector<Measurement> compared =
      device_.measurer->compare(problem_, bench::to_configs(contestants), arguments_.rounds);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    compared[i].context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(append(compared[i]));
    const MetricValue* const time = compared[i].find(kMedianNs);
    if (compared[i].outcome != Outcome::kOk || time == nullptr) {
      continue;
    }
    double* const places[] = {&row_.a_ns, &row_.b_ns, &row_.fallback_ns, &row_.benchmark_ns};
    if (i < named) {
      *places[i] = time->value;
    }
    if (row_.best_ns < 0 || time->value < row_.best_ns) {
      row_.best_ns = time->value;
      row_.best = bench::text_of(contestants[i]);
      const MetricValue* const bytes = compared[i].find(kWorkspaceBytes);
      row_.best_bytes = bytes == nullptr ? -1 : bytes->value;
    }
  }
  return {};
}

// Returns the config that differs in the fewest knobs from one of the fastest so far.
std::vector<CudnnConfig>::iterator Walk::nearest(std::vector<CudnnConfig>& order) {
  std::vector<std::pair<double, CudnnConfig>> fastest = ranking_;
  const auto count = static_cast<std::ptrdiff_t>(std::min(kNeighboured, fastest.size()));
  std::partial_sort(fastest.begin(), fastest.begin() + count, fastest.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  fastest.resize(static_cast<std::size_t>(count));
  const auto distance = [](const CudnnConfig& a, const CudnnConfig& b) {
    std::size_t differences = a.engine == b.engine ? 0 : a.knobs.size();
    for (std::size_t i = 0; i < a.knobs.size(); ++i) {
      differences += a.knobs[i] == b.knobs[i] ? 0U : 1U;
    }
    return differences;
  };
  auto best = order.begin();
  std::size_t least = 2 * kCudnnKnobs.size();
  for (auto candidate = order.begin(); candidate != order.end(); ++candidate) {
    for (const auto& [time_ns, config] : fastest) {
      const std::size_t differences = distance(*candidate, config);
      if (differences < least) {
        least = differences;
        best = candidate;
      }
    }
  }
  return best;
}

Result<Row> Walk::go() {
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(const cudnn::Listed listed,
               device_.family->enumerate(
                   problem_, {.splits = arguments_.splits, .seconds = arguments_.list_seconds},
                   arguments_.threads));
  row_.combinations = static_cast<double>(listed.combinations);
  row_.tried = static_cast<double>(listed.tried);
  row_.accepted = static_cast<double>(listed.configs.size());
  std::vector<CudnnConfig> order;
  std::set<Config> known;
  const auto add = [&](const CudnnConfig& config) {
    if (known.insert(config.to_config()).second && !crashes_.has(problem_, config)) {
      order.push_back(config);
    }
  };
  for (const CudnnHeuristic heuristic :
       {CudnnHeuristic::kA, CudnnHeuristic::kB, CudnnHeuristic::kFallback}) {
    if (const auto answers = device_.family->answers(problem_, heuristic)) {
      answers_[heuristic] = *answers;
      std::for_each(answers->begin(), answers->end(), add);
    }
  }
  const std::set<Config> answered = known;
  for (const CudnnConfig& config : listed.configs) {
    if (order.size() < arguments_.configs_max) {
      add(config);
    }
  }
  // A config whose plan is not made would cost a core's time while the device waits.
  FORETUNE_TRY(
      order, device_.family->build(problem_, order, arguments_.threads, arguments_.build_seconds));
  row_.prepare_s = bench::seconds_now() - begin_s;
  const double start_s = bench::seconds_now();
  bool searches = false;
  while (!order.empty() && bench::seconds_now() - start_s < arguments_.seconds) {
    const auto next = searches ? nearest(order) : order.begin();
    const CudnnConfig config = *next;
    order.erase(next);
    FORETUNE_TRY_STATUS(measure(config));
    if (answered.contains(config.to_config())) {
      row_.best_answer_ns = best_ns_;
    } else {
      searches = !searches;
    }
  }
  FORETUNE_TRY_STATUS(finals());
  row_.seconds = bench::seconds_now() - begin_s;
  return row_;
}

Status measure_all(const Arguments& arguments, const bench::GpuDevice<CudnnFamily>& device) {
  FORETUNE_TRY(const std::vector<Problem> problems, read_shape_set(arguments.shapes));
  DatasetHeader header = header_of(device.family->info());
  header.created_by = "bench/cudnn_space";
  FORETUNE_TRY(const auto journal, JournalWriter::open(arguments.output, header));
  std::set<std::string> done;
  std::string table(Row::kHead);
  if (const auto rows = read_table(arguments.table)) {
    for (Row row : *rows) {
      done.insert(row.problem);
      table += row.line();
    }
  }
  FORETUNE_TRY(const bench::CudnnCrashes crashes,
               bench::CudnnCrashes::recover(arguments.output, *device.measurer, *journal));
  std::printf("%-96s %6s %5s %5s %5s %8s %8s %8s %8s %6s %5s %5s\n", "problem, times in us",
              "accept", "tried", "ok", "wrong", "A", "B", "one", "best", "A/best", "prep", "s");
  for (const Problem& problem : problems) {
    const std::string text = problem.text();
    if (done.contains(text) || crashes.count(problem) >= kMaxCrashes) {
      continue;
    }
    Result<Row> row = Walk(arguments, device, *journal, problem, crashes).go();
    if (!row) {
      std::printf("%s: %s\n", problem.text().c_str(), row.error().message.c_str());
      continue;
    }
    std::printf("%-96s %6.0f %5.0f %5.0f %5.0f %8.2f %8.2f %8.2f %8.2f %6.3f %5.1f %5.1f\n",
                problem.text().substr(0, 96).c_str(), row->accepted, row->measured, row->ok,
                row->wrong, row->a_ns / 1e3, row->b_ns / 1e3, row->benchmark_ns / 1e3,
                row->best_ns / 1e3, row->a_ns / row->best_ns, row->prepare_s, row->seconds);
    std::fflush(stdout);
    table += row->line();
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.table, table));
    FORETUNE_TRY_STATUS(journal->sync());
  }
  crashes.end();
  return journal->sync();
}

Status run(int argc, char** argv, Figures& /*figures*/) {
  if (const std::string summary = bench::argument(argc, argv, "summary"); !summary.empty()) {
    FORETUNE_TRY(const std::vector<Row> rows, read_table(summary));
    print_summary(rows);
    return {};
  }
  FORETUNE_TRY(const Arguments arguments, parse(argc, argv));
  FORETUNE_TRY(const bench::GpuDevice<CudnnFamily> device,
               bench::open_gpu<CudnnFamily>(argc, argv, create_cudnn));
  FORETUNE_TRY_STATUS(measure_all(arguments, device));
  FORETUNE_TRY(const std::vector<Row> rows, read_table(arguments.table));
  print_summary(rows);
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("cudnn_space", argc, argv, foretune::run);
}
