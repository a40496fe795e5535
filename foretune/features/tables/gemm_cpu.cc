// Features of blocked CPU kernels: how register blocks fit the matrix and the registers, how cache
// blocks fit the caches, the cost of packing and of passes over C, how evenly threads share the
// work.
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune::features_internal {
namespace {

using enum CpuGemmField;

constexpr std::array kConfigColumns{
    of_config("isa", "instruction set: 0 generic, 1 AVX2, 2 AVX-512"),
    of_config("kernel", "0 vectors along columns of C, 1 along the depth"),
    of_config("mr", "rows of a register block"),
    of_config("nr", "columns of a register block"),
    of_config("pack_a", "1 when blocks of A are copied"),
    of_config("pack_b", "1 when blocks of B are copied"),
    of_config("log2_mc", "log2 of the rows of a cache block"),
    of_config("log2_nc", "log2 of the columns of a cache block"),
    of_config("log2_kc", "log2 of the depth of a cache block"),
    of_config("order", "0 columns outermost, 1 rows outermost"),
    of_config("unroll", "steps of depth in a round of the inner loop"),
    of_config("prefetch", "rows of B fetched ahead; 0 for none"),
    of_config("threads", "threads"),
    of_config("split",
              "what threads share: 0 rows, 1 columns, 2 batch, 3 rows and columns, 4 depth"),
    of_config("vectors", "vectors in a row of a register block"),
    of_config("accumulators", "vector registers that hold sums"),
    of_config("loads_per_fma", "vector loads and broadcasts per multiply-add of a register block"),
    of_config("flops_per_cycle",
              "multiply-adds per cycle that loads and latency allow, over the lanes"),
};

constexpr std::array kInteractionColumns{
    of_both("use_m", "useful share of the register blocks' rows"),
    of_both("use_lanes", "useful share of the lanes of vectors"),
    of_both("use_n", "useful share of the register blocks' columns"),
    of_both("balance", "even share of the work over that of the busiest thread"),
    of_both("log2_blocks_m", "log2 of the rows of register blocks of a thread"),
    of_both("log2_blocks_n", "log2 of the columns of register blocks of a thread"),
    of_both("k_passes", "passes over C"),
    of_both("k_block", "depth of a block as cut"),
    of_both("log2_a_block_over_l2", "log2 of the bytes of a cache block of A over the L2 cache"),
    of_both("log2_b_block_over_l2", "log2 of the bytes of a cache block of B over the L2 cache"),
    of_both("panels_over_l1", "bytes of one panel of A and one of B over the L1 cache, at most 16"),
    of_both("log2_a_reads", "log2 of how often A is read from beyond the registers"),
    of_both("log2_b_reads", "log2 of how often B is read from beyond the registers"),
    of_both("pack_share", "elements copied over multiply-adds, in parts per thousand"),
    of_both("row_stride_pages",
            "4 KiB pages that one unpacked panel of B touches, at most 1024; 0 when packed"),
    of_both("a_by_columns", "1 when A is stored by columns"),
    of_both("b_by_columns", "1 when B is stored by columns"),
    of_both("a_stride_pages",
            "4 KiB pages that one unpacked panel of A touches, at most 1024; 0 when packed"),
    of_both("a_line_use", "useful share of the cache lines that one step of depth loads of A"),
    of_both("edge_rows", "rows of the last, smaller register block"),
    of_both("edge_columns", "columns of the last, smaller register block"),
    of_both("log2_compute_ns",
            "log2 of the busiest thread's multiply-adds at the kernel's rate, in ns"),
    of_both("log2_traffic_ns",
            "log2 of the time for all passes over A, B and C from memory, in ns"),
    of_both("log2_estimate_over_roofline",
            "log2 of compute plus packing plus waking threads over the roofline time"),
};

double lanes_of(double isa) { return isa == 2 ? 16 : isa == 1 ? 8 : 4; }

// Returns the multiply-adds per cycle that a register block allows, with two multiply-adds and two
// loads per cycle and four cycles of latency (the machine balance of Goto and van de Geijn 2008).
double fma_rate(double mr, double vectors) {
  const double fmas = mr * vectors;
  const double loads = mr + vectors;
  return std::min({2.0, fmas / 4, 2 * fmas / loads});
}

// Returns the vector registers of sums in a row of a register block.
double vectors_of(std::span<const std::int32_t> words) {
  return at(words, kKernel) != 0 ? at(words, kNr) : at(words, kNr) / lanes_of(at(words, kIsa));
}

GemmSplit split_of(std::span<const std::int32_t> words) {
  return static_cast<GemmSplit>(words[static_cast<std::size_t>(kSplit)]);
}

class GemmCpuTable final : public GemmTable {
 public:
  GemmCpuTable()
      : GemmTable("gemm-cpu", cpu_gemm_schema(), kConfigColumns, kInteractionColumns,
                  GemmProblemColumns::kWithWeights) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const double mr = at(words, kMr);
    const double vectors = vectors_of(words);
    for (std::size_t i = 0; i < kCpuGemmWords; ++i) {
      out[i] = words[i];
    }
    for (const CpuGemmField field : {kMc, kNc, kKc}) {
      out[static_cast<std::size_t>(field)] = std::log2(at(words, field));
    }
    std::size_t i = kCpuGemmWords;
    out[i++] = vectors;
    out[i++] = mr * vectors;
    out[i++] = (mr + vectors) / (mr * vectors);
    out[i++] = fma_rate(mr, vectors);
  }

 private:
  // The share of the busiest thread.
  struct Share {
    double m = 1;
    double n = 1;
    double k = 1;
    double batch = 1;
  };
  static Share share_of(const GemmView& view, std::span<const std::int32_t> words) {
    const double threads = at(words, kThreads);
    Share share{view.m, view.n, view.k, view.batch};
    if (threads <= 1) {
      return share;
    }
    const auto part = [](double size, double parts, double unit) {
      return std::min(size, ceil_div(ceil_div(size, parts), unit) * unit);
    };
    switch (split_of(words)) {
      case GemmSplit::kM:
        share.m = part(view.m, threads, at(words, kMr));
        break;
      case GemmSplit::kN:
        share.n = part(view.n, threads, at(words, kNr));
        break;
      case GemmSplit::kBatch:
        share.batch = ceil_div(view.batch, threads);
        break;
      case GemmSplit::kGrid: {
        const double side = std::exp2(std::floor(std::log2(threads) / 2));
        const double rows = view.m > view.n ? threads / side : side;
        share.m = part(view.m, rows, at(words, kMr));
        share.n = part(view.n, threads / rows, at(words, kNr));
        break;
      }
      case GemmSplit::kK:
        share.k = part(view.k, threads, 8);
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
    const double lanes = lanes_of(at(words, kIsa));
    const double mr = at(words, kMr);
    const double nr = at(words, kNr);
    const bool is_dot = at(words, kKernel) != 0;
    const double vectors = vectors_of(words);
    const double threads = at(words, kThreads);
    const Share share = share_of(view, words);
    const double blocks_m = ceil_div(share.m, mr);
    const double blocks_n = ceil_div(share.n, nr);
    const double vectored = is_dot ? share.k : share.n;  // the dimension that vectors lie along
    const double padded_vectored = ceil_div(vectored, lanes) * lanes;
    const double passes = ceil_div(share.k, at(words, kKc));
    const double k_block = share.k / passes;
    const double cuts_m = ceil_div(share.m, at(words, kMc));
    const double cuts_n = ceil_div(share.n, at(words, kNc));
    const double a_block = share.m / cuts_m * k_block * kFloat;
    const double b_block = share.n / cuts_n * k_block * kFloat;
    const bool rows_outermost = at(words, kOrder) == 1;
    // Beyond the registers, A is read once per column of register blocks, B once per row of them.
    const double a_reads = blocks_n;
    const double b_reads = blocks_m;
    const double packed_a =
        at(words, kPackA) != 0 ? share.m * share.k * (rows_outermost ? 1 : cuts_n) : 0;
    const double packed_b =
        at(words, kPackB) != 0 ? share.n * share.k * (rows_outermost ? cuts_m : 1) : 0;
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
    const double partials = split_of(words) == GemmSplit::kK && threads > 1 ? 2 * threads : 0;
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
    // Returns the pages of an unpacked panel. Each of its lines is a row or column of the matrix
    // with `length` floats.
    const auto pages = [](double lines, double length, double stride) {
      const double page = 4096 / kFloat;
      return std::min(1024.0, lines * std::max(std::min(1.0, stride / page), length / page));
    };
    writer.put(at(words, kPackB) != 0 ? 0.0
               : view.b_by_columns    ? pages(nr, k_block, view.k)
                                      : pages(k_block, nr, view.n));
    writer.put(view.a_by_columns ? 1 : 0);
    writer.put(view.b_by_columns ? 1 : 0);
    writer.put(at(words, kPackA) != 0 ? 0.0
               : view.a_by_columns    ? pages(k_block, mr, view.m)
                                      : pages(mr, k_block, view.k));
    writer.put(at(words, kPackA) != 0 || !view.a_by_columns ? 1.0
                                                            : std::min(1.0, mr * kFloat / 64));
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
