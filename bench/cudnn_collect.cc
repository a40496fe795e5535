// Measures convolutions for models of cuDNN's configs: data to learn from, or all times that judge
// a model's picks.
//
//   cudnn_collect --shapes bench/shapes/cudnn_train.txt --output train.ftd --answers train.tsv
//                 --portfolio FORWARD,BACKWARD_DATA,BACKWARD_WEIGHT
//                 [--more F,F,F --more-count 12] [--compiled F,F,F --compiled-count 2]
//                 [--model FILE[,FILE,FILE]] [--top 3] [--rounds 0] [--seconds 600]
//                 [--build-seconds 3] [--threads 2] [--part 1/14 --lock FILE]
//                 [--driver FILE] [--cudnn FILE] [--nvml FILE] [--workspace_mb N]
//
// Every convolution has the answers of A, B and fallback measured, the configs of its direction's
// file, and some of the files of --more and --compiled: those that a model ranks best, or random
// ones. A config that is an answer is recorded as its rank, too. With --rounds, A's first answer
// (twice, which shows the noise), B's, the choice of one short timing of A's first ten and the
// fallback's answers (as PyTorch's benchmark mode does), the model's best from its pool, its best
// among pool and answers together, its fast pick and the five fastest then run in turns.
//
// --answers gets a line for every answer (convolution, a1, config), one for the choice of the
// short timing (benchmark), one for the noise (the median of A's first answer over that of the same
// config under its other name), and one that says that the convolution is done. Convolutions that
// are done are skipped, and so are those of other parts. Processes that share --lock make plans at
// once, but use the device one after another: compilations within one process wait for each other.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/cudnn_answers.h"
#include "bench/cudnn_crashes.h"
#include "bench/gpu_device.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/cudnn/cudnn.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/model/model_scorer.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

constexpr std::size_t kDirections = 3;
// The answers of a heuristic that have a rank in the family's space.
constexpr std::size_t kRanks = 16;
constexpr std::size_t kFallbackRanks = 4;
constexpr std::size_t kFastest = 5;
// A convolution that ended the program so often is left out.
constexpr std::size_t kMaxCrashes = 3;
constexpr std::array kHeuristics{CudnnHeuristic::kA, CudnnHeuristic::kB, CudnnHeuristic::kFallback};

// Files of a command line, one for each direction.
using PerDirection = std::array<std::vector<CudnnConfig>, kDirections>;

struct Arguments {
  std::string shapes;
  std::string output;
  std::string answers;
  PerDirection configs;
  PerDirection more;
  PerDirection compiled;
  std::size_t more_count = 0;
  std::size_t compiled_count = 0;
  std::vector<std::unique_ptr<Selector>> models;  // none, one, or one for each direction
  std::size_t top = 3;
  int rounds = 0;
  double seconds = 600;
  double build_seconds = 3;
  std::size_t threads = 2;
  std::size_t part = 0;
  std::size_t parts = 1;
  std::string lock;
};

Result<PerDirection> read_configs(const std::string& paths) {
  PerDirection configs;
  if (paths.empty()) {
    return configs;
  }
  const std::vector<std::string_view> files = split(paths, ',');
  if (files.size() != kDirections) {
    return fail(ErrorCode::kInvalidArgument, "lists of configs are three files: forward, ",
                "backward_data, backward_weight, not '", paths, "'");
  }
  for (std::size_t i = 0; i < kDirections; ++i) {
    FORETUNE_TRY(const std::string text, read_text_file(std::string(files[i])));
    const auto parsed = parse_cudnn_configs(text);
    if (!parsed) {
      return fail_because(parsed.error(), files[i]);
    }
    for (const Config& config : *parsed) {
      FORETUNE_TRY(const CudnnConfig words, CudnnConfig::from(config));
      configs.at(i).push_back(words);
    }
  }
  return configs;
}

Status read_models(const std::string& paths, std::vector<std::unique_ptr<Selector>>& models) {
  for (const std::string_view path : split(paths, ',')) {
    if (!path.empty()) {
      FORETUNE_TRY(auto model, Selector::open(std::string(path)));
      models.push_back(std::move(model));
    }
  }
  return models.size() <= 1 || models.size() == kDirections
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "give one model, or one for each direction");
}

Status read_part(const std::string& text, Arguments& arguments) {
  if (text.empty()) {
    return {};
  }
  const std::vector<std::string_view> numbers = split(text, '/');
  const auto part = numbers.size() == 2 ? parse_uint(numbers[0]) : std::nullopt;
  const auto parts = numbers.size() == 2 ? parse_uint(numbers[1]) : std::nullopt;
  if (!part || !parts || *part < 1 || *part > *parts) {
    return fail(ErrorCode::kInvalidArgument, "--part is a number of parts, as 1/4, not '", text,
                "'");
  }
  arguments.part = *part - 1;
  arguments.parts = *parts;
  return {};
}

Result<Arguments> parse(int argc, char** argv) {
  const auto text = [&](std::string_view name) { return bench::argument(argc, argv, name); };
  const auto count = [&](std::string_view name, std::size_t fallback) {
    return bench::count_argument<std::size_t>(argc, argv, name, fallback);
  };
  Arguments arguments;
  arguments.shapes = text("shapes");
  arguments.output = text("output");
  arguments.answers = text("answers");
  if (arguments.shapes.empty() || arguments.output.empty() || arguments.answers.empty()) {
    return fail(ErrorCode::kInvalidArgument, "give --shapes, --output and --answers");
  }
  FORETUNE_TRY(arguments.configs, read_configs(text("portfolio")));
  FORETUNE_TRY(arguments.more, read_configs(text("more")));
  FORETUNE_TRY(arguments.compiled, read_configs(text("compiled")));
  FORETUNE_TRY_STATUS(read_models(text("model"), arguments.models));
  FORETUNE_TRY_STATUS(read_part(text("part"), arguments));
  arguments.more_count = count("more-count", 12);
  arguments.compiled_count = count("compiled-count", 2);
  arguments.top = count("top", 3);
  arguments.rounds = static_cast<int>(count("rounds", 0));
  arguments.seconds = bench::number_argument(argc, argv, "seconds", 600);
  arguments.build_seconds = bench::number_argument(argc, argv, "build-seconds", 3);
  arguments.threads = std::max<std::size_t>(1, count("threads", 2));
  arguments.lock = text("lock");
  return arguments;
}

// Holds the device while it exists; does nothing without a path.
class DeviceLock {
 public:
  static Result<DeviceLock> take(const std::string& path) {
    DeviceLock lock;
    if (path.empty()) {
      return lock;
    }
    lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock.file_ < 0 || ::flock(lock.file_, LOCK_EX) != 0) {
      return fail(ErrorCode::kIo, "cannot lock ", path);
    }
    return lock;
  }
  DeviceLock(DeviceLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DeviceLock& operator=(DeviceLock&&) = delete;
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  ~DeviceLock() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }

 private:
  DeviceLock() = default;
  int file_ = -1;
};

using Scored = std::vector<std::pair<double, CudnnConfig>>;

void add_new(std::vector<CudnnConfig>& configs, const CudnnConfig& config) {
  if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
    configs.push_back(config);
  }
}

// One convolution.
class Layer {
 public:
  Layer(const Arguments& arguments, const bench::GpuDevice<CudnnFamily>& device,
        JournalWriter& journal, const Problem& problem, ConvOperation operation,
        const bench::CudnnCrashes& crashes)
      : arguments_(arguments),
        device_(device),
        journal_(journal),
        problem_(problem),
        direction_(static_cast<std::size_t>(operation)),
        crashes_(crashes) {}

  // Returns the lines of --answers.
  Result<std::string> go();

 private:
  [[nodiscard]] const Selector* model() const {
    return arguments_.models.empty()       ? nullptr
           : arguments_.models.size() == 1 ? arguments_.models.front().get()
                                           : arguments_.models.at(direction_).get();
  }
  Result<std::vector<CudnnConfig>> chosen(const std::vector<CudnnConfig>& from, std::size_t count,
                                          std::uint64_t stream) const;
  Result<std::vector<CudnnConfig>> plan_list();
  Status append(Measurement measurement, const CudnnConfig& config);
  Status measure(const CudnnConfig& config);
  [[nodiscard]] CudnnConfig resolved(const CudnnConfig& config) const;
  Result<std::vector<CudnnConfig>> picks() const;
  Status finals();

  const Arguments& arguments_;
  const bench::GpuDevice<CudnnFamily>& device_;
  JournalWriter& journal_;
  Problem problem_;
  std::size_t direction_;
  const bench::CudnnCrashes& crashes_;
  bench::CudnnAnswers answers_;
  Scored ranking_;
  double best_ns_ = -1;
  std::string lines_;
};

// Returns the configs that the model ranks best, or random ones without a model.
Result<std::vector<CudnnConfig>> Layer::chosen(const std::vector<CudnnConfig>& from,
                                               std::size_t count, std::uint64_t stream) const {
  std::vector<CudnnConfig> order = from;
  Rng rng(problem_.hash() + stream);
  rng.shuffle(std::span(order));
  if (model() != nullptr && !from.empty()) {
    FORETUNE_TRY(const std::vector<double> scores,
                 score_configs(model()->model(), problem_, bench::to_configs(order)));
    Scored scored;
    for (std::size_t i = 0; i < order.size(); ++i) {
      scored.emplace_back(scores[i], order[i]);
    }
    std::stable_sort(scored.begin(), scored.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    order.clear();
    for (const auto& [score, config] : scored) {
      order.push_back(config);
    }
  }
  order.resize(std::min(order.size(), count));
  return order;
}

// Asks the heuristics; returns everything to measure.
Result<std::vector<CudnnConfig>> Layer::plan_list() {
  std::vector<CudnnConfig> list;
  for (const CudnnHeuristic heuristic : kHeuristics) {
    const auto found = device_.family->answers(problem_, heuristic);
    if (!found) {
      continue;
    }
    std::vector<CudnnConfig>& answers = answers_[heuristic];
    answers = *found;
    const bool is_fallback = heuristic == CudnnHeuristic::kFallback;
    answers.resize(std::min(answers.size(), is_fallback ? kFallbackRanks : kRanks));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      add_new(list, answers[i]);
      lines_ += concat(problem_.text(), "\t", to_string(heuristic), i + 1, "\t",
                       bench::text_of(answers[i]), "\n");
    }
  }
  for (const CudnnConfig& config : arguments_.configs.at(direction_)) {
    if (config.heuristic == CudnnHeuristic::kNone) {
      add_new(list, config);
    }
  }
  FORETUNE_TRY(const auto more, chosen(arguments_.more.at(direction_), arguments_.more_count, 1));
  FORETUNE_TRY(const auto compiled,
               chosen(arguments_.compiled.at(direction_), arguments_.compiled_count, 2));
  for (const auto* configs : {&more, &compiled}) {
    for (const CudnnConfig& config : *configs) {
      add_new(list, config);
    }
  }
  std::erase_if(list, [&](const CudnnConfig& each) { return crashes_.has(problem_, each); });
  return list;
}

// Records a measurement of an explicit config, and of the ranks that it is.
Status Layer::append(Measurement measurement, const CudnnConfig& config) {
  FORETUNE_TRY_STATUS(journal_.append(measurement));
  for (const auto& [heuristic, answers] : answers_) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == config) {
        measurement.config =
            CudnnConfig::ranked(heuristic, static_cast<std::int32_t>(i) + 1).to_config();
        FORETUNE_TRY_STATUS(journal_.append(measurement));
        break;
      }
    }
  }
  return {};
}

Status Layer::measure(const CudnnConfig& config) {
  FORETUNE_TRY_STATUS(crashes_.trying(problem_, config));
  const Measurement measurement = device_.measurer->measure(
      {.problem = problem_, .config = config.to_config(), .incumbent_ns = best_ns_});
  FORETUNE_TRY_STATUS(append(measurement, config));
  const MetricValue* const time = measurement.find(kTimeNs);
  if (measurement.outcome == Outcome::kOk && time != nullptr) {
    ranking_.emplace_back(time->value, config);
    best_ns_ = best_ns_ < 0 ? time->value : std::min(best_ns_, time->value);
  }
  return {};
}

// Returns the explicit config behind a rank, where there is one.
CudnnConfig Layer::resolved(const CudnnConfig& config) const {
  const auto found = answers_.find(config.heuristic);
  const auto place = static_cast<std::size_t>(config.rank) - 1;
  return found != answers_.end() && place < found->second.size() ? found->second[place] : config;
}

// Returns the model's best from its pool, its best among pool and answers, and its fast pick.
Result<std::vector<CudnnConfig>> Layer::picks() const {
  std::vector<CudnnConfig> picks;
  if (model() == nullptr) {
    return picks;
  }
  std::set<Config> runs;
  for (const auto& [time_ns, config] : ranking_) {
    runs.insert(config.to_config());
  }
  const auto add_best = [&](const Scored& scored) {
    std::size_t taken = 0;
    for (const auto& [score, config] : scored) {
      const CudnnConfig explicit_config = resolved(config);
      if (taken < arguments_.top && runs.contains(explicit_config.to_config())) {
        add_new(picks, explicit_config);
        ++taken;
      }
    }
  };
  Scored scored;
  for (const RankedCandidate& candidate : model()->rank(problem_)) {
    FORETUNE_TRY(const CudnnConfig config, CudnnConfig::from(model()->config(candidate.candidate)));
    scored.emplace_back(candidate.score, config);
  }
  add_best(scored);
  std::vector<CudnnConfig> answers;
  for (const auto& [heuristic, some] : answers_) {
    for (const CudnnConfig& config : some) {
      add_new(answers, config);
    }
  }
  FORETUNE_TRY(const std::vector<double> scores,
               score_configs(model()->model(), problem_, bench::to_configs(answers)));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    scored.emplace_back(scores[i], answers[i]);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  add_best(scored);
  const FastChoice fast = model()->select_fast(problem_);
  if (fast.choice.picked()) {
    FORETUNE_TRY(const CudnnConfig config,
                 CudnnConfig::from(model()->config(fast.choice.candidate)));
    add_new(picks, resolved(config));
  }
  return picks;
}

Status Layer::finals() {
  std::vector<CudnnConfig> contestants;
  for (const CudnnHeuristic heuristic : kHeuristics) {
    // Where A has no answer, the fallback's first runs.
    if (!answers_[heuristic].empty() &&
        (heuristic != CudnnHeuristic::kFallback || answers_[CudnnHeuristic::kA].empty())) {
      add_new(contestants, answers_[heuristic].front());
    }
  }
  if (const auto choice = bench::benchmark_choice(*device_.measurer, problem_, answers_)) {
    lines_ += concat(problem_.text(), "\tbenchmark\t", bench::text_of(*choice), "\n");
    add_new(contestants, *choice);
  }
  FORETUNE_TRY(const std::vector<CudnnConfig> picked, picks());
  for (const CudnnConfig& config : picked) {
    add_new(contestants, config);
  }
  std::sort(ranking_.begin(), ranking_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(kFastest, ranking_.size()); ++i) {
    add_new(contestants, ranking_[i].second);
  }
  std::vector<Config> configs = bench::to_configs(contestants);
  // The first once more, under its other name.
  configs.push_back(CudnnConfig::ranked(CudnnHeuristic::kA, 1).to_config());
  std::vector<Measurement> compared =
      device_.measurer->compare(problem_, configs, arguments_.rounds);
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    compared[i].context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(append(compared[i], contestants[i]));
  }
  const MetricValue* const first = compared.front().find(kMedianNs);
  const MetricValue* const again = compared.back().find(kMedianNs);
  if (first != nullptr && again != nullptr) {
    lines_ += concat(problem_.text(), "\tnoise\t", again->value / first->value, "\n");
  }
  return {};
}

Result<std::string> Layer::go() {
  FORETUNE_TRY(std::vector<CudnnConfig> list, plan_list());
  FORETUNE_TRY(list,
               device_.family->build(problem_, list, arguments_.threads, arguments_.build_seconds));
  FORETUNE_TRY(const DeviceLock lock, DeviceLock::take(arguments_.lock));
  for (const CudnnConfig& config : list) {
    FORETUNE_TRY_STATUS(measure(config));
  }
  if (arguments_.rounds > 0) {
    FORETUNE_TRY_STATUS(finals());
  }
  crashes_.end();
  return concat(lines_, problem_.text(), "\tdone\t", list.size(), "\n");
}

std::set<std::string> done_in(const std::string& path) {
  std::set<std::string> done;
  if (const auto text = read_text_file(path)) {
    for (const std::string_view line : split(*text, '\n')) {
      const std::vector<std::string_view> parts = split(line, '\t');
      if (parts.size() == 3 && parts[1] == "done") {
        done.emplace(parts[0]);
      }
    }
  }
  return done;
}

Status run(int argc, char** argv, Figures& figures) {
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(const Arguments arguments, parse(argc, argv));
  FORETUNE_TRY(const std::vector<Problem> problems, read_shape_set(arguments.shapes));
  FORETUNE_TRY(const bench::GpuDevice<CudnnFamily> device,
               bench::open_gpu<CudnnFamily>(argc, argv, create_cudnn));
  DatasetHeader header = header_of(device.family->info());
  header.created_by = "bench/cudnn_collect";
  header.role = arguments.rounds > 0 ? DatasetRole::kValidation : DatasetRole::kTraining;
  FORETUNE_TRY(const auto journal, JournalWriter::open(arguments.output, header));
  FORETUNE_TRY(const bench::CudnnCrashes crashes,
               bench::CudnnCrashes::recover(arguments.output, *device.measurer, *journal));
  const std::set<std::string> done = done_in(arguments.answers);
  std::ofstream answers(arguments.answers, std::ios::app);
  std::size_t measured = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    if (i % arguments.parts != arguments.part || done.contains(problem.text()) ||
        crashes.count(problem) >= kMaxCrashes) {
      continue;
    }
    if (bench::seconds_now() - begin_s > arguments.seconds) {
      break;
    }
    FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
    const Result<std::string> lines =
        Layer(arguments, device, *journal, problem, conv.operation(), crashes).go();
    if (!lines) {
      std::printf("%s: %s\n", problem.text().c_str(), lines.error().message.c_str());
      continue;
    }
    answers << *lines << std::flush;
    ++measured;
  }
  crashes.end();
  const double seconds = bench::seconds_now() - begin_s;
  std::printf("%zu convolutions, %llu measurements in %.0f s\n", measured,
              static_cast<unsigned long long>(journal->row_count()), seconds);
  figures.add("problems", static_cast<double>(measured));
  figures.add("collect_seconds_per_shape",
              seconds / static_cast<double>(std::max<std::size_t>(1, measured)));
  return journal->sync();
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("cudnn_collect", argc, argv, foretune::run);
}
