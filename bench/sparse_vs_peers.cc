// The sparse-cpu family beside other libraries: three products of real matrices in f32, with the
// config that tuning finds, timed in turn, round by round, after every contender's result was
// compared with sums in double precision.
//
//   sparse_vs_peers --data FOLDER [--threads 1] [--rounds 9] [--tune 30] [--op spmm]
//                   [--matrix NAME] [--json FILE]
//
// FOLDER holds MatrixMarket files, plain or gzip. --op names the only operation (spmm and sddmm
// have 128 dense columns), --matrix the only matrices: those whose names contain it. Conversions,
// hints and tuning of all sides happen before the clock runs.
//
// A ratio is our speed over the best peer's: above 1 is faster. `taco` is the same beside plain
// CSR as the compiler TACO generates it. `pays` is the number of runs after which packing has paid
// beside our plain rows, `prepare` the best peer's preparation in runs of its own. `share` is the
// time that the machine allows over ours: that of memory's bandwidth for spmv, of the multiply-add
// peak for the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "bench/contest.h"
#include "bench/sparse_contest.h"
#include "bench/sparse_peers.h"
#include "foretune/base/statistics.h"
#include "foretune/family/family.h"
#include "foretune/formats/gzip.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune {

const FamilyEntry& sparse_cpu_family();

namespace {

// Figures of preparation and description count where a matrix has at least so many non-zeros.
constexpr std::int64_t kLarge = 100000;

struct Arguments {
  std::string folder;
  std::string operation;
  std::string matrix;
  unsigned threads = 1;
  int rounds = 9;
  double tune_s = 30;
};

// The ratios of one operation, and what does not depend on it.
struct Ratios {
  std::vector<double> best;
  std::vector<double> taco;
  std::map<std::string, std::vector<double>> peers;
  std::vector<double> fma_share;  // where the operands fit the L2 cache
};
struct Totals {
  double worst = std::numeric_limits<double>::infinity();
  std::string worst_name;
  std::vector<double> pack_over_copy;
  std::vector<double> describe_ns;
};

Result<std::vector<std::string>> matrix_files(const Arguments& arguments) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(arguments.folder, error)) {
    const std::string name = entry.path().filename().string();
    if ((name.ends_with(".mtx") || name.ends_with(".mtx.gz")) &&
        name.find(arguments.matrix) != std::string::npos) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return fail(ErrorCode::kNotFound, "there are no matrices in ", quoted(arguments.folder, 200));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string count_text(double runs) {
  return runs == 0 ? "-" : std::isinf(runs) ? "never" : concat(static_cast<std::int64_t>(runs));
}

class Bench {
 public:
  static Result<Bench> open(const Arguments& arguments) {
    Bench bench(arguments);
    // Before any thread is made.
    bench.peers_ = load_sparse_peers(static_cast<int>(arguments.threads));
    bench.peaks_ = measure_cpu_peaks(0.5);
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), bench.peaks_);
    options.threads = static_cast<int>(arguments.threads);
    options.payload_folders = {arguments.folder};
    FORETUNE_TRY(bench.family_, sparse_cpu_family().create(options));
    FORETUNE_TRY(bench.store_, PayloadStore::open(options.payload_folders, &formats::inflate_gzip));
    return bench;
  }

  Status run(Figures& figures) {
    std::printf("%u thread%s; %.1f GFLOP/s and %.1f GB/s a core\n", arguments_.threads,
                arguments_.threads == 1 ? "" : "s", peaks_.fma_gflops, peaks_.bandwidth_gbs);
    for (const auto& peer : peers_.found) {
      std::printf("beside %s\n", peer->name().c_str());
      figures.machine.emplace_back(peer->library(), peer->name());
    }
    for (const std::string& sentence : peers_.missing) {
      std::printf("%s\n", sentence.c_str());
    }
    for (const std::string operation : {"spmm", "spmv", "sddmm"}) {
      if (arguments_.operation.empty() || arguments_.operation == operation) {
        FORETUNE_TRY_STATUS(measure(operation, figures));
      }
    }
    figures.add(concat("worst_matrix", suffix()), totals_.worst);
    std::printf("the least ratio is %.3f, %s\n", totals_.worst, totals_.worst_name.c_str());
    if (!totals_.pack_over_copy.empty()) {
      figures.add("pack_over_copy", median(totals_.pack_over_copy));
      std::printf("packing takes %.2f times copying, in the median of %zu\n",
                  median(totals_.pack_over_copy), totals_.pack_over_copy.size());
    }
    if (!totals_.describe_ns.empty()) {
      figures.add("descriptor_ns_per_nonzero", median(totals_.describe_ns));
      std::printf("describing takes %.2f ns a non-zero, in the median\n",
                  median(totals_.describe_ns));
    }
    return {};
  }

 private:
  explicit Bench(const Arguments& arguments) : arguments_(arguments) {}

  [[nodiscard]] std::string suffix() const {
    return arguments_.threads == 1 ? "" : concat("_", arguments_.threads, "t");
  }

  Status measure(const std::string& operation, Figures& figures) {
    FORETUNE_TRY(const std::vector<std::string> files, matrix_files(arguments_));
    std::printf("%s\n  %-38s %9s %9s %7s %7s %9s %6s %6s %8s  config\n", operation.c_str(),
                "matrix", "us", "GFLOP/s", "ratio", "taco", "best", "share", "pays", "prepare");
    Ratios ratios;
    for (const std::string& file : files) {
      FORETUNE_TRY(
          const std::string text,
          store_->resolve_names(concat("sparse op=", operation,
                                       " n=", operation == "spmv" ? 1 : 128, " payload=@", file)));
      FORETUNE_TRY(Problem problem, Problem::parse(text));
      FORETUNE_TRY(problem, store_->resolve(problem));
      FORETUNE_TRY(const Config config, bench::tuned_config(family_, problem, arguments_.tune_s));
      FORETUNE_TRY(const bench::SparseTimes times,
                   bench::compare_sparse(*family_, problem, config, peers_, arguments_.rounds));
      add(operation, file.substr(0, file.find(".mtx")), problem, config, times, ratios, figures);
    }
    std::printf("our speed, geometric means\n");
    bench::print_ratios("over the best", ratios.best, "matrices");
    for (const auto& [library, values] : ratios.peers) {
      bench::print_ratios(library, values, "matrices");
      figures.add(concat(operation, "_vs_", library, suffix()), geometric_mean(values));
    }
    figures.add(concat(operation, "_vs_best", suffix()), geometric_mean(ratios.best));
    if (!ratios.fma_share.empty() && operation != "spmv") {
      figures.add(concat(operation, "_fma_share_in_l2", suffix()), median(ratios.fma_share));
      std::printf("  %.3f of the multiply-add peak, in the median of %zu whose operands fit L2\n",
                  median(ratios.fma_share), ratios.fma_share.size());
    }
    return {};
  }

  void add(const std::string& operation, const std::string& name, const Problem& problem,
           const Config& config, const bench::SparseTimes& times, Ratios& ratios,
           Figures& figures) {
    const SparseProblem typed = *SparseProblem::from(problem);
    const bench::SparsePeerTime& best = times.best();
    const double ratio = best.run_s / times.ours_s;
    const double taco = times.of("taco_csr") / times.ours_s;
    const double bandwidth =
        arguments_.threads == 1 ? peaks_.bandwidth_gbs : peaks_.bandwidth_all_gbs;
    const double fma_share =
        typed.flops() / (peaks_.fma_gflops * arguments_.threads) / (1e9 * times.ours_s);
    const double share =
        operation == "spmv" ? typed.bytes() / bandwidth / (1e9 * times.ours_s) : fma_share;
    std::printf("  %-38s %9.1f %9.2f %7.3f %7.3f %9s %6.2f %6s %8.0f  %s\n", name.c_str(),
                1e6 * times.ours_s, typed.flops() / times.ours_s / 1e9, ratio, taco,
                best.library.c_str(), share, count_text(times.break_even()).c_str(),
                best.prepare_s / best.run_s,
                to_text(family_->info().config_schema, config).c_str());
    for (const std::string& sentence : times.wrong) {
      std::printf("    %s\n", sentence.c_str());
    }
    std::fflush(stdout);
    figures.add(concat("ratio ", operation, " ", name, suffix()), ratio);
    ratios.best.push_back(ratio);
    ratios.taco.push_back(taco);
    for (const bench::SparsePeerTime& peer : times.peers) {
      ratios.peers[peer.library].push_back(peer.run_s / times.ours_s);
    }
    if (typed.bytes() <= family_->info().fingerprint.hardware.get(HardwareValue::kL2Bytes)) {
      ratios.fma_share.push_back(fma_share);
    }
    if (ratio < totals_.worst) {
      totals_.worst = ratio;
      totals_.worst_name = concat(operation, " of ", name);
    }
    if (typed.sizes().non_zeros >= kLarge) {
      totals_.describe_ns.push_back(1e9 * times.describe_s /
                                    static_cast<double>(typed.sizes().non_zeros));
      if (times.pack_s > 0) {
        totals_.pack_over_copy.push_back(times.pack_s / times.copy_s);
      }
    }
  }

  Arguments arguments_;
  SparsePeers peers_;
  CpuPeaks peaks_;
  std::shared_ptr<const Family> family_;
  std::shared_ptr<PayloadStore> store_;
  Totals totals_;
};

Status run(int argc, char** argv, Figures& figures) {
  const Arguments arguments{
      .folder = bench::argument(argc, argv, "data"),
      .operation = bench::argument(argc, argv, "op"),
      .matrix = bench::argument(argc, argv, "matrix"),
      .threads = bench::count_argument(argc, argv, "threads", 1U),
      .rounds = static_cast<int>(bench::count_argument(argc, argv, "rounds", 9U)),
      .tune_s = bench::number_argument(argc, argv, "tune", 30)};
  FORETUNE_TRY(Bench bench, Bench::open(arguments));
  return bench.run(figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("sparse_vs_peers", argc, argv, &foretune::run);
}
