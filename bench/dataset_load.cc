// Measures how fast a sealed data set of many measurements is read, and the bytes per measurement,
// beside the same kind of measurements as CSV (fewer of them, since CSV is much slower).
//
//   build/bench/bench/dataset_load [--rows 10000000] [--csv-rows 200000] [--json FILE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

constexpr std::size_t kConfigs = 4096;
constexpr std::size_t kConfigsPerProblem = 500;

DatasetHeader make_header() {
  DatasetHeader header;
  header.family = "bench";
  header.config_schema = {.name = "bench", .version = 1, .parameters = {}};
  for (const char* name : {"mr", "nr", "mc", "nc", "kc", "order", "pack_a", "pack_b"}) {
    header.config_schema.parameters.push_back({name, {}});
  }
  return header;
}

Problem random_problem(Rng& rng) {
  const auto size = [&] { return std::int64_t{8} * rng.between(1, 2000); };
  return GemmProblem::create({.m = size(), .n = size(), .k = size()})->to_problem();
}

// Draws a row like those of a collection: problem by problem, with outcomes of every kind, spreads,
// medians and conditions that change now and then.
Dataset::Row random_row(Dataset& dataset, Rng& rng) {
  Dataset::Row row;
  row.config = static_cast<std::uint32_t>(rng.below(kConfigs));
  const std::uint64_t luck = rng.below(100);
  row.outcome = luck < 80   ? Outcome::kOk
                : luck < 95 ? Outcome::kCensored
                            : static_cast<Outcome>(2 + rng.below(5));
  row.flags = rng.below(10) == 0 ? kFlagLoaded : std::uint8_t{0};
  if (luck >= 95) {
    row.stage = Stage::kRun;
    row.reason = dataset.intern_reason(concat("reason number ", rng.below(6)));
    return row;
  }
  row.time_ns = static_cast<float>(std::exp(8 + 8 * rng.uniform()));
  row.median_ns = row.time_ns * static_cast<float>(1 + 0.1 * rng.uniform());
  row.spread = static_cast<float>(0.05 * rng.uniform());
  row.samples = static_cast<std::uint16_t>(5 + rng.below(11));
  return row;
}

Dataset make_dataset(std::size_t rows) {
  Dataset dataset(make_header());
  Rng rng(1);
  const std::uint64_t schema = dataset.header().config_schema.id();
  while (dataset.configs().size() < kConfigs) {
    Config config{.schema = schema, .words = {}};
    for (int i = 0; i < 8; ++i) {
      config.words.push_back(static_cast<std::int32_t>(rng.below(500)));
    }
    dataset.intern_config(config);
  }
  dataset.intern_context({.machine = 1, .device = "cpu", .threads = 2});
  for (std::size_t i = 0; i < rows; i += kConfigsPerProblem) {
    const std::uint32_t problem = dataset.intern_problem(random_problem(rng));
    for (std::size_t j = i; j < std::min(rows, i + kConfigsPerProblem); ++j) {
      Dataset::Row row = random_row(dataset, rng);
      row.problem = problem;
      dataset.add_row(row);
    }
  }
  return dataset;
}

struct Timing {
  double seconds = 0;
  double bytes = 0;
};

// Returns the median of several reads; the file stays in the page cache.
template <class Read>
Result<Timing> time_reads(const std::filesystem::path& path, std::size_t rows, int repeats,
                          const Read& read) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const double start_s = bench::seconds_now();
    FORETUNE_TRY(const Dataset dataset, read(path));
    seconds.push_back(bench::seconds_now() - start_s);
    if (dataset.size() != rows) {
      return fail(ErrorCode::kInternal, "read ", dataset.size(), " rows instead of ", rows);
    }
  }
  return Timing{median(seconds), static_cast<double>(std::filesystem::file_size(path))};
}

Status run(int argc, char** argv, Figures& figures) {
  const auto rows = parse_uint(bench::argument(argc, argv, "rows", "10000000"));
  const auto csv_rows = parse_uint(bench::argument(argc, argv, "csv-rows", "200000"));
  if (!rows || !csv_rows || *rows == 0 || *csv_rows == 0) {
    return fail(ErrorCode::kInvalidArgument, "--rows and --csv-rows are positive numbers");
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / concat("foretune-bench-", bench::seconds_now());
  std::filesystem::create_directories(folder);
  const auto measure = [&]() -> Status {
    FORETUNE_TRY_STATUS(write_dataset(make_dataset(*rows), folder / "rows.ftd"));
    FORETUNE_TRY(const Timing sealed,
                 time_reads(folder / "rows.ftd", *rows, 3,
                            [](const std::filesystem::path& path) { return read_dataset(path); }));
    FORETUNE_TRY_STATUS(export_csv(make_dataset(*csv_rows), folder / "rows.csv"));
    FORETUNE_TRY(const Timing csv, time_reads(folder / "rows.csv", *csv_rows, 3,
                                              [](const std::filesystem::path& path) {
                                                return import_csv(path, make_header());
                                              }));
    const auto all = static_cast<double>(*rows);
    const auto few = static_cast<double>(*csv_rows);
    figures.add("rows", all);
    figures.add("load_seconds", sealed.seconds);
    figures.add("bytes_per_row", sealed.bytes / all);
    figures.add("load_ns_per_row", sealed.seconds / all * 1e9);
    figures.add("csv_rows", few);
    figures.add("csv_load_ns_per_row", csv.seconds / few * 1e9);
    figures.add("csv_bytes_per_row", csv.bytes / few);
    return {};
  };
  const Status status = measure();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  FORETUNE_TRY_STATUS(status);
  for (const auto& [name, value] : figures.metrics) {
    std::printf("%-22s %s\n", name.c_str(), fixed(value, 3).c_str());
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("dataset_load", argc, argv, &foretune::run);
}
