// Measures how long a sparse matrix takes to be described, exactly and by samples, and compares the
// samples' errors with those that they state.
//
//   build/bench/bench/sparse_description [--matrix FILE | --non-zeros 10000000] [--rows 500000]
//       [--repeats 5] [--json FILE]
//
// Without a file, it describes three matrices that are drawn: scattered, a band, and blocks of 4
// x 4. A time is the least of the repetitions, of one thread.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "bench/bench_json.h"
#include "bench/sparse_matrices.h"
#include "foretune/sparse/describe.h"

namespace foretune {
namespace {

using sparse::MatrixDescription;

struct Timed {
  MatrixDescription description;
  double nanoseconds = 0;  // a non-zero
};

template <class Describe>
Result<Timed> timed(std::size_t repeats, std::int64_t size, const Describe& describe) {
  Timed out{.nanoseconds = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < repeats; ++i) {
    const double begin = bench::seconds_now();
    FORETUNE_TRY(out.description, describe());
    const double seconds = bench::seconds_now() - begin;
    out.nanoseconds = std::min(out.nanoseconds, 1e9 * seconds / static_cast<double>(size));
  }
  return out;
}

// Returns the difference of the densities, as density_error states it.
double density_difference(const MatrixDescription& a, const MatrixDescription& b) {
  double sum = 0;
  for (std::size_t cell = 0; cell < a.density.size(); ++cell) {
    sum += std::abs(static_cast<double>(a.density[cell] - b.density[cell]));
  }
  return sum / static_cast<double>(a.size);
}

void print_estimate(const char* name, sparse::Estimate exact, sparse::Estimate sampled) {
  std::printf("  %-16s %12.5g  sampled %12.5g +- %-10.3g off by %.3g\n", name, exact.value,
              sampled.value, sampled.error, std::abs(exact.value - sampled.value));
}

Status measure(const bench::NamedMatrix& named, std::size_t repeats, Figures& figures) {
  const sparse::PatternView pattern = named.matrix.pattern();
  FORETUNE_TRY(const Timed exact,
               timed(repeats, pattern.size(), [&] { return sparse::describe(pattern); }));
  FORETUNE_TRY(const Timed sampled, timed(repeats, pattern.size(),
                                          [&] { return sparse::describe_sampled(pattern, 1); }));
  const MatrixDescription& a = exact.description;
  const MatrixDescription& b = sampled.description;
  std::printf("%s: %lld x %lld, %lld non-zeros\n", named.name.c_str(),
              static_cast<long long>(a.rows), static_cast<long long>(a.columns),
              static_cast<long long>(a.size));
  std::printf("  exact %.2f ns a non-zero, sampled %.2f ns (%.3f of the strips)\n",
              exact.nanoseconds, sampled.nanoseconds, b.looked_at);
  for (std::size_t side = 0; side < sparse::kBlockSides; ++side) {
    print_estimate(concat("fill of ", 2U << side).c_str(), a.block_fill[side], b.block_fill[side]);
  }
  print_estimate("row overlap", a.row_overlap, b.row_overlap);
  print_estimate("diagonal share", a.diagonal_share, b.diagonal_share);
  print_estimate("runs", a.run_share, b.run_share);
  print_estimate("mean distance", a.mean_distance, b.mean_distance);
  std::printf("  %-16s %12.5g  in the quarter at the upper left\n", "density",
              static_cast<double>(sparse::density_at(a, 2, 0, 0)));
  std::printf("  %-16s stated %.3g, off by %.3g\n", "density map", b.density_error,
              density_difference(a, b));
  figures.add(concat("descriptor_ns_per_nonzero_", named.name), exact.nanoseconds);
  figures.add(concat("sampled_descriptor_ns_per_nonzero_", named.name), sampled.nanoseconds);
  return {};
}

Status run(int argc, char** argv, Figures& figures) {
  const auto repeats = bench::count_argument<std::size_t>(argc, argv, "repeats", 5);
  FORETUNE_TRY(const std::vector<bench::NamedMatrix> matrices, bench::sparse_matrices(argc, argv));
  for (const bench::NamedMatrix& named : matrices) {
    FORETUNE_TRY_STATUS(measure(named, repeats, figures));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("sparse_description", argc, argv, &foretune::run);
}
