// Makes training data for models of cuDNN's configs: joins data sets of cudnn_collect, and turns
// what the library refused, or computed wrongly, into bounds. Only the library knows which engines
// it has for a convolution, so that no rule keeps a model from ranking what would be refused; with
// the bounds it learns where not to try.
//
//   cudnn_bounds --data a.ftd,b.ftd --output train.ftd [--refused 4]
//
// A refused config counts as one that took at least `--refused` times the convolution's best time;
// with `--refused 0` it stays as it is. Metrics other than the time are left out, because they take
// most of a file.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune {
namespace {

constexpr double kRefused = 4;

struct Counts {
  std::size_t bounds = 0;
  std::size_t left_out = 0;
};

// Returns the fastest time of every problem.
std::map<std::uint32_t, float> best_times(const Dataset& dataset) {
  std::map<std::uint32_t, float> best;
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.is_timed()) {
      const auto [known, is_new] = best.emplace(row.problem, row.time_ns);
      known->second = std::min(known->second, row.time_ns);
    }
  }
  return best;
}

Result<Dataset> with_bounds(const Dataset& from, double factor, Counts& counts) {
  const std::map<std::uint32_t, float> best = best_times(from);
  Dataset to(from.header());
  for (RowIndex i = 0; i < from.size(); ++i) {
    const Dataset::Row& row = from.rows()[i];
    Measurement measurement = from.measurement(i);
    std::erase_if(measurement.metrics, [](const MetricValue& value) {
      return value.metric != kTimeNs && value.metric != kMedianNs;
    });
    if (row.outcome == Outcome::kOk || row.outcome == Outcome::kCensored || factor == 0) {
      to.add(measurement);
      continue;
    }
    FORETUNE_TRY(const CudnnConfig config, CudnnConfig::from(measurement.config));
    const auto of_problem = best.find(row.problem);
    if (config.heuristic != CudnnHeuristic::kNone || of_problem == best.end()) {
      ++counts.left_out;
      continue;
    }
    measurement.outcome = Outcome::kCensored;
    measurement.stage = Stage::kNone;
    measurement.reason.clear();
    measurement.metrics = {
        {std::string(kTimeNs), factor * static_cast<double>(of_problem->second), 0, 1}};
    to.add(measurement);
    ++counts.bounds;
  }
  return to;
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string paths = bench::argument(argc, argv, "data");
  const std::string output = bench::argument(argc, argv, "output");
  const double factor = bench::number_argument(argc, argv, "refused", kRefused);
  if (paths.empty() || output.empty() || !(factor > 1 || factor == 0)) {
    return fail(ErrorCode::kInvalidArgument,
                "give --data and --output, and with --refused a factor above 1, or 0");
  }
  std::vector<Dataset> read;
  for (const std::string_view path : split(paths, ',')) {
    FORETUNE_TRY(Dataset dataset, read_dataset(std::string(path)));
    read.push_back(std::move(dataset));
  }
  for (std::size_t i = 1; i < read.size(); ++i) {
    FORETUNE_TRY_STATUS(read.front().merge(read[i]));
  }
  Counts counts;
  FORETUNE_TRY(Dataset joined, with_bounds(read.front(), factor, counts));
  FORETUNE_TRY_STATUS(write_dataset(joined, output));
  std::printf(
      "%zu measurements of %zu convolutions; %zu of them are bounds of refused configs, "
      "%zu were left out\n",
      joined.size(), joined.problems().size(), counts.bounds, counts.left_out);
  figures.add("rows", static_cast<double>(joined.size()));
  figures.add("bounds", static_cast<double>(counts.bounds));
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("cudnn_bounds", argc, argv, foretune::run);
}
