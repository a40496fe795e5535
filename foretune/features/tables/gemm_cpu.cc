// Features of blocked CPU kernels: how register blocks fit the matrix and the registers, how cache
// blocks fit the caches, what packing and passes over C cost, how evenly threads share the work.
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"

namespace foretune::features_internal {
namespace {

constexpr std::array<std::string_view, 14> kParameters{
    "isa", "kernel", "mr",    "nr",     "pack_a",   "pack_b",  "mc",
    "nc",  "kc",     "order", "unroll", "prefetch", "threads", "split"};
// Values of the word `split`.
enum Split : std::uint8_t { kSplitM, kSplitN, kSplitBatch, kSplitGrid, kSplitK };
enum Word : std::uint8_t {
  kIsa,
  kKernel,
  kMr,
  kNr,
  kPackA,
  kPackB,
  kMc,
  kNc,
  kKc,
  kOrder,
  kUnroll,
  kPrefetch,
  kThreads,
  kSplit,
};

constexpr std::array kConfigColumns{
    FeatureInfo{"isa", FeatureKind::kConfig, "instruction set: 0 generic, 1 AVX2, 2 AVX-512"},
    FeatureInfo{"kernel", FeatureKind::kConfig, "0 vectors along columns of C, 1 along the depth"},
    FeatureInfo{"mr", FeatureKind::kConfig, "rows of a register block"},
    FeatureInfo{"nr", FeatureKind::kConfig, "columns of a register block"},
    FeatureInfo{"pack_a", FeatureKind::kConfig, "1 when blocks of A are copied"},
    FeatureInfo{"pack_b", FeatureKind::kConfig, "1 when blocks of B are copied"},
    FeatureInfo{"log2_mc", FeatureKind::kConfig, "log2 of the rows of a cache block"},
    FeatureInfo{"log2_nc", FeatureKind::kConfig, "log2 of the columns of a cache block"},
    FeatureInfo{"log2_kc", FeatureKind::kConfig, "log2 of the depth of a cache block"},
    FeatureInfo{"order", FeatureKind::kConfig, "0 columns outermost, 1 rows outermost"},
    FeatureInfo{"unroll", FeatureKind::kConfig, "steps of depth in a round of the inner loop"},
    FeatureInfo{"prefetch", FeatureKind::kConfig, "rows of B fetched ahead; 0 for none"},
    FeatureInfo{"threads", FeatureKind::kConfig, "threads"},
    FeatureInfo{"split", FeatureKind::kConfig,
                "what threads share: 0 rows, 1 columns, 2 batch, 3 rows and columns, 4 depth"},
    FeatureInfo{"vectors", FeatureKind::kConfig, "vectors in a row of a register block"},
    FeatureInfo{"accumulators", FeatureKind::kConfig, "vector registers that hold sums"},
    FeatureInfo{"loads_per_fma", FeatureKind::kConfig,
                "vector loads and broadcasts per multiply-add of a register block"},
    FeatureInfo{"flops_per_cycle", FeatureKind::kConfig,
                "multiply-adds per cycle that loads and latency allow, over the lanes"},
};

constexpr std::array kInteractionColumns{
    FeatureInfo{"use_m", FeatureKind::kInteraction, "useful share of the register blocks' rows"},
    FeatureInfo{"use_lanes", FeatureKind::kInteraction, "useful share of the lanes of vectors"},
    FeatureInfo{"use_n", FeatureKind::kInteraction, "useful share of the register blocks' columns"},
    FeatureInfo{"balance", FeatureKind::kInteraction,
                "even share of the work over that of the busiest thread"},
    FeatureInfo{"log2_blocks_m", FeatureKind::kInteraction,
                "log2 of the rows of register blocks of a thread"},
    FeatureInfo{"log2_blocks_n", FeatureKind::kInteraction,
                "log2 of the columns of register blocks of a thread"},
    FeatureInfo{"k_passes", FeatureKind::kInteraction, "passes over C"},
    FeatureInfo{"k_block", FeatureKind::kInteraction, "depth of a block as cut"},
    FeatureInfo{"log2_a_block_over_l2", FeatureKind::kInteraction,
                "log2 of the bytes of a cache block of A over the L2 cache"},
    FeatureInfo{"log2_b_block_over_l2", FeatureKind::kInteraction,
                "log2 of the bytes of a cache block of B over the L2 cache"},
    FeatureInfo{"panels_over_l1", FeatureKind::kInteraction,
                "bytes of one panel of A and one of B over the L1 cache, at most 16"},
    FeatureInfo{"log2_a_reads", FeatureKind::kInteraction,
                "log2 of how often A is read from beyond the registers"},
    FeatureInfo{"log2_b_reads", FeatureKind::kInteraction,
                "log2 of how often B is read from beyond the registers"},
    FeatureInfo{"pack_share", FeatureKind::kInteraction,
                "elements copied over multiply-adds, in parts per thousand"},
    FeatureInfo{"row_stride_pages", FeatureKind::kInteraction,
                "4 KiB pages that one unpacked panel of B touches, at most 1024; 0 when packed"},
    FeatureInfo{"a_by_columns", FeatureKind::kInteraction, "1 when A is stored by columns"},
    FeatureInfo{"b_by_columns", FeatureKind::kInteraction, "1 when B is stored by columns"},
    FeatureInfo{"a_stride_pages", FeatureKind::kInteraction,
                "4 KiB pages that one unpacked panel of A touches, at most 1024; 0 when packed"},
    FeatureInfo{"a_line_use", FeatureKind::kInteraction,
                "useful share of the cache lines that one step of depth loads of A"},
    FeatureInfo{"edge_rows", FeatureKind::kInteraction, "rows of the last, smaller register block"},
    FeatureInfo{"edge_columns", FeatureKind::kInteraction,
                "columns of the last, smaller register block"},
    FeatureInfo{"log2_compute_ns", FeatureKind::kInteraction,
                "log2 of the busiest thread's multiply-adds at the kernel's rate, in ns"},
    FeatureInfo{"log2_traffic_ns", FeatureKind::kInteraction,
                "log2 of the time for all passes over A, B and C from memory, in ns"},
    FeatureInfo{"log2_estimate_over_roofline", FeatureKind::kInteraction,
                "log2 of compute plus packing plus waking threads over the roofline time"},
};

double lanes_of(double isa) { return isa == 2 ? 16 : isa == 1 ? 8 : 4; }

// Two multiply-adds and two loads per cycle, four cycles of latency: what a register block allows
// of two multiply-adds per cycle (the machine balance of Goto and van de Geijn 2008).
double fma_rate(double mr, double vectors) {
  const double fmas = mr * vectors;
  const double loads = mr + vectors;
  return std::min({2.0, fmas / 4, 2 * fmas / loads});
}

// Vector registers of sums in a row of a register block.
double vectors_of(std::span<const std::int32_t> words) {
  return words[kKernel] != 0 ? words[kNr] : words[kNr] / lanes_of(words[kIsa]);
}

class GemmCpuTable final : public GemmTable {
 public:
  GemmCpuTable()
      : GemmTable("gemm-cpu", kParameters, kConfigColumns, kInteractionColumns,
                  GemmProblemColumns::kWithWeights) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const double mr = words[kMr];
    const double vectors = vectors_of(words);
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      out[i] = words[i];
    }
    for (const Word word : {kMc, kNc, kKc}) {
      out[word] = std::log2(static_cast<double>(words[word]));
    }
    std::size_t i = kParameters.size();
    out[i++] = vectors;
    out[i++] = mr * vectors;
    out[i++] = (mr + vectors) / (mr * vectors);
    out[i++] = fma_rate(mr, vectors);
  }

 private:
  // What the busiest thread gets.
  struct Share {
    double m = 1;
    double n = 1;
    double k = 1;
    double batch = 1;
  };
  static Share share_of(const GemmView& view, std::span<const std::int32_t> words) {
    const double threads = words[kThreads];
    Share share{view.m, view.n, view.k, view.batch};
    if (threads <= 1) {
      return share;
    }
    const auto part = [](double size, double parts, double unit) {
      return std::min(size, ceil_div(ceil_div(size, parts), unit) * unit);
    };
    switch (words[kSplit]) {
      case kSplitM:
        share.m = part(view.m, threads, words[kMr]);
        break;
      case kSplitN:
        share.n = part(view.n, threads, words[kNr]);
        break;
      case kSplitBatch:
        share.batch = ceil_div(view.batch, threads);
        break;
      case kSplitGrid: {
        const double side = std::exp2(std::floor(std::log2(threads) / 2));
        const double rows = view.m > view.n ? threads / side : side;
        share.m = part(view.m, rows, words[kMr]);
        share.n = part(view.n, threads / rows, words[kNr]);
        break;
      }
      case kSplitK:
        share.k = part(view.k, threads, 8);
        break;
      default:
        break;
    }
    return share;
  }

  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    for_each_config(configs, writer,
                    [&](std::span<const std::int32_t> config) { candidate(view, config, writer); });
  }

  static void candidate(const GemmView& view, std::span<const std::int32_t> words,
                        ColumnWriter& writer) {
    constexpr double kFloat = 4;
    const double lanes = lanes_of(words[kIsa]);
    const double mr = words[kMr];
    const double nr = words[kNr];
    const bool is_dot = words[kKernel] != 0;
    const double vectors = vectors_of(words);
    const double threads = words[kThreads];
    const Share share = share_of(view, words);
    const double blocks_m = ceil_div(share.m, mr);
    const double blocks_n = ceil_div(share.n, nr);
    const double vectored = is_dot ? share.k : share.n;  // the dimension that vectors lie along
    const double padded_vectored = ceil_div(vectored, lanes) * lanes;
    const double passes = ceil_div(share.k, words[kKc]);
    const double k_block = share.k / passes;
    const double cuts_m = ceil_div(share.m, words[kMc]);
    const double cuts_n = ceil_div(share.n, words[kNc]);
    const double a_block = share.m / cuts_m * k_block * kFloat;
    const double b_block = share.n / cuts_n * k_block * kFloat;
    const bool rows_outermost = words[kOrder] == 1;
    // Beyond the registers, A is read once per column of register blocks, B once per row of them.
    const double a_reads = blocks_n;
    const double b_reads = blocks_m;
    const double packed_a =
        words[kPackA] != 0 ? share.m * share.k * (rows_outermost ? 1 : cuts_n) : 0;
    const double packed_b =
        words[kPackB] != 0 ? share.n * share.k * (rows_outermost ? cuts_m : 1) : 0;
    const double fmas = share.m * share.n * share.k * share.batch;
    const double copied = (packed_a + packed_b) * share.batch;
    const double rate = fma_rate(mr, vectors) * lanes;
    // The peak is two vector multiply-adds a cycle of the widest vectors.
    const double cycles_per_ns =
        view.peak_flops_per_ns / (4 * std::max(4.0, view.vector_bytes / 4));
    const double padded = fmas * padded_vectored / vectored;
    // A dot kernel sums each vector up across its lanes, at about a cycle a lane.
    const double sums = is_dot ? share.m * share.n * passes * share.batch * lanes : 0;
    const double compute_ns = (padded / rate + sums) / cycles_per_ns;
    const double pack_ns = copied * 2 * kFloat / (4 * view.bytes_per_ns);
    const double a_passes = rows_outermost ? 1 : cuts_n;
    const double b_passes = rows_outermost ? cuts_m : 1;
    const double partials = words[kSplit] == kSplitK && threads > 1 ? 2 * threads : 0;
    const double traffic = (share.m * share.k * a_passes + share.n * share.k * b_passes +
                            share.m * share.n * (2 * passes - 1 + partials)) *
                           share.batch * kFloat;
    const double traffic_ns = traffic / view.bytes_per_ns;
    const double wake_ns = threads > 1 ? 3000 : 0;
    const double roofline_ns =
        std::max(view.flops() / view.peak_flops_per_ns, view.bytes() / view.bytes_per_ns);
    const double edge_m = share.m - (blocks_m - 1) * mr;
    const double edge_n = share.n - (blocks_n - 1) * nr;
    writer.put(edge_use(share.m, mr));
    writer.put(vectored / padded_vectored);
    writer.put(edge_use(share.n, nr));
    writer.put(view.m * view.n * view.k * view.batch / (threads * fmas));
    writer.put_log2(blocks_m);
    writer.put_log2(blocks_n);
    writer.put(passes);
    writer.put(k_block);
    writer.put_log2(a_block / view.l2_bytes);
    writer.put_log2(b_block / view.l2_bytes);
    writer.put(std::min(16.0, (mr + nr) * k_block * kFloat / view.l1_bytes));
    writer.put_log2(a_reads);
    writer.put_log2(b_reads);
    writer.put(1000 * copied / fmas);
    // Of an unpacked panel: each of its lines is a row or column of the matrix, of so many floats.
    const auto pages = [](double lines, double length, double stride) {
      const double page = 4096 / kFloat;
      return std::min(1024.0, lines * std::max(std::min(1.0, stride / page), length / page));
    };
    writer.put(words[kPackB] != 0  ? 0.0
               : view.b_by_columns ? pages(nr, k_block, view.k)
                                   : pages(k_block, nr, view.n));
    writer.put(view.a_by_columns ? 1 : 0);
    writer.put(view.b_by_columns ? 1 : 0);
    writer.put(words[kPackA] != 0  ? 0.0
               : view.a_by_columns ? pages(k_block, mr, view.m)
                                   : pages(mr, k_block, view.k));
    writer.put(words[kPackA] != 0 || !view.a_by_columns ? 1.0 : std::min(1.0, mr * kFloat / 64));
    writer.put(edge_m);
    writer.put(edge_n);
    writer.put_log2(compute_ns);
    writer.put_log2(traffic_ns);
    writer.put_log2((compute_ns + pack_ns + wake_ns + 20) / roofline_ns);
  }
};

}  // namespace

const FeatureTable& gemm_cpu_table() {
  static const GemmCpuTable table;
  return table;
}

}  // namespace foretune::features_internal
