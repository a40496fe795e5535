// Measures how long the storages of a sparse matrix take to pack, beside copying the arrays of its
// canonical form into fresh memory by the same threads, and their bytes.
//
//   build/bench/bench/sparse_storage [--matrix FILE | --non-zeros 10000000] [--rows 500000]
//       [--threads 2] [--repeats 5] [--json FILE]
//
// Without a file, it packs three matrices that are drawn: scattered, a band, and blocks of 4 x 4. A
// number is the least of the repetitions.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/sparse_matrices.h"
#include "foretune/base/file.h"
#include "foretune/sparse/levels.h"
#include "foretune/sparse/storage.h"

namespace foretune {
namespace {

using namespace sparse;  // NOLINT(google-build-using-namespace): all is about it

struct Packing {
  std::string storage;
  StorageSize size;
  std::function<Status()> pack;
};

template <class Made>
Status dropped(Result<Made> made) {
  return std::move(made).map([](Made&&) {});
}

LevelFormat rows_first(LevelKind column_kind, std::int32_t split) {
  LevelFormat format{.row_split = split, .column_split = split};
  const LevelKind outer = split == 1 ? LevelKind::kDense : column_kind;
  format.levels = {{{LevelPart::kOuterRow, LevelKind::kDense},
                    {LevelPart::kInnerRow, outer},
                    {LevelPart::kOuterColumn, column_kind},
                    {LevelPart::kInnerColumn, outer}}};
  return format;
}

Result<std::vector<Packing>> packings_of(const Csr<float>& matrix, const PackOptions& options) {
  const PatternView pattern = matrix.pattern();
  std::vector<Packing> out;
  out.push_back({"CSC", count_csc(pattern), [&] { return dropped(pack_csc(matrix, options)); }});
  out.push_back({"COO", count_coo(pattern), [&] { return dropped(pack_coo(matrix, options)); }});
  out.push_back({"DCSR", count_dcsr(pattern), [&] { return dropped(pack_dcsr(matrix, options)); }});
  for (const std::int32_t side : {2, 4, 8}) {
    const BlockShape block{side, side};
    out.push_back({concat("BCSR ", side, "x", side), count_bcsr(pattern, block, options.pool),
                   [&, block] { return dropped(pack_bcsr(matrix, block, options)); }});
  }
  out.push_back({"ELL", count_ell(pattern), [&] { return dropped(pack_ell(matrix, options)); }});
  for (const SliceShape slice : {SliceShape{8, 8}, SliceShape{16, 1024}}) {
    out.push_back({concat("SELL-", slice.height, "-", slice.window), count_sell(pattern, slice),
                   [&, slice] { return dropped(pack_sell(matrix, slice, options)); }});
  }
  const std::int64_t width = hybrid_width(pattern);
  out.push_back({concat("hybrid of width ", width), count_hybrid(pattern, width),
                 [&, width] { return dropped(pack_hybrid(matrix, width, options)); }});
  for (const std::int32_t split : {1, 16}) {
    const LevelFormat format = rows_first(LevelKind::kCompressed, split);
    FORETUNE_TRY(const StorageSize size, count_levels(pattern, format, options.pool));
    out.push_back({split == 1 ? "levels as CSR" : "levels split by 16, compressed", size,
                   [&, format] { return dropped(pack_levels(matrix, format, options)); }});
  }
  return out;
}

Result<double> least_seconds(std::size_t repeats, const std::function<Status()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < repeats; ++i) {
    const double begin = bench::seconds_now();
    FORETUNE_TRY_STATUS(work());
    least = std::min(least, bench::seconds_now() - begin);
  }
  return least;
}

Status measure(const bench::NamedMatrix& named, const PackOptions& options, std::size_t repeats,
               Figures& figures) {
  const Csr<float>& matrix = named.matrix;
  const auto size = static_cast<double>(matrix.size());
  FORETUNE_TRY(const double copy,
               least_seconds(repeats, [&] { return bench::copy_arrays(matrix, options.pool); }));
  std::printf("%s: %lld x %lld, %lld non-zeros, %.1f MB; copying %.2f ns a non-zero\n",
              named.name.c_str(), static_cast<long long>(matrix.rows),
              static_cast<long long>(matrix.columns), static_cast<long long>(matrix.size()),
              1e-6 * static_cast<double>(count_csr(matrix.pattern()).bytes(sizeof(float))),
              1e9 * copy / size);
  FORETUNE_TRY(const std::vector<Packing> packings, packings_of(matrix, options));
  for (const Packing& packing : packings) {
    const std::uint64_t bytes = packing.size.bytes(sizeof(float));
    const auto packed =
        bytes > options.max_bytes ? Result<double>(0.0) : least_seconds(repeats, packing.pack);
    if (!packed) {
      return fail_because(packed.error(), packing.storage);
    }
    if (bytes > options.max_bytes) {
      std::printf("  %-32s not packed, %.0f MB\n", packing.storage.c_str(),
                  1e-6 * static_cast<double>(bytes));
      continue;
    }
    std::printf("  %-32s %6.2f ns a non-zero, %5.2f times copying, %8.1f MB, fill %.2f\n",
                packing.storage.c_str(), 1e9 * *packed / size, *packed / copy,
                1e-6 * static_cast<double>(bytes), size / static_cast<double>(packing.size.values));
    figures.add(concat("pack_over_copy_", named.name, "_", packing.storage), *packed / copy);
  }
  return {};
}

Status run(int argc, char** argv, Figures& figures) {
  const auto repeats = bench::count_argument<std::size_t>(argc, argv, "repeats", 5);
  ThreadPool pool(bench::count_argument<std::size_t>(argc, argv, "threads", 2));
  FORETUNE_TRY(const std::vector<bench::NamedMatrix> matrices, bench::sparse_matrices(argc, argv));
  for (const bench::NamedMatrix& named : matrices) {
    FORETUNE_TRY_STATUS(measure(named, {pool, std::uint64_t{4} << 30U}, repeats, figures));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("sparse_storage", argc, argv, &foretune::run);
}
