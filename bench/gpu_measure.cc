#include "bench/gpu_measure.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "bench/bench_json.h"
#include "bench/gpu_device.h"
#include "bench/pick_verdict.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/families.h"
#include "foretune/measure/dataset_header.h"

namespace foretune::bench {
namespace {

using Device = GpuDevice<Family>;

// Measured times of one problem, in ns.
using Times = std::map<Config, double>;

Times times_of(const MeasuredConfigs& measured) {
  Times times;
  for (const auto& [config, row] : measured) {
    if (row.outcome == Outcome::kOk && row.once_ns) {
      times[config] = *row.once_ns;
    }
  }
  return times;
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
    const MetricValue* const time = measurement.find(kTimeNs);
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

}  // namespace

Status measure_contenders(int argc, char** argv, const Selector& selector,
                          const std::vector<RegimeShape>& shapes, const std::string& output,
                          Figures& figures) {
  std::string family_name = argument(argc, argv, "family");
  if (family_name.empty()) {
    family_name = "cublaslt";
  }
  FORETUNE_TRY(const Device device, open_gpu<Family>(argc, argv, [&](const FamilyOptions& options) {
                 return create_family(family_name, options);
               }));
  DatasetHeader header = header_of(device.family->info());
  header.role = DatasetRole::kValidation;
  header.created_by = "bench/gpu_select";
  std::map<std::string, Times> before;
  if (std::filesystem::exists(output)) {
    FORETUNE_TRY(const Dataset old, read_dataset(output));
    for (const auto& [index, measured] : read_measured(old)) {
      before[old.problems()[index].text()] = times_of(measured);
    }
  }
  FORETUNE_TRY(const auto journal, JournalWriter::open(output, header));
  const std::uint64_t rows_before = journal->row_count();
  const MeasureOptions options{
      .rounds = static_cast<int>(count_argument<unsigned>(argc, argv, "rounds", 9)),
      .top = count_argument<std::size_t>(argc, argv, "top", 5)};
  const double limit_s = number_argument(argc, argv, "seconds", 600);
  const double begin_s = seconds_now();
  std::size_t done = 0;
  for (const auto& [regime, problem] : shapes) {
    if (seconds_now() - begin_s > limit_s) {
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
  const double taken_s = seconds_now() - begin_s;
  const auto rows = static_cast<double>(journal->row_count() - rows_before);
  std::printf("%zu of %zu problems measured in %.0f s\n", done, shapes.size(), taken_s);
  figures.add("collect_seconds_per_shape",
              taken_s / static_cast<double>(std::max<std::size_t>(1, done)));
  figures.add("measurements_per_second", rows / taken_s);
  return journal->sync();
}

}  // namespace foretune::bench
