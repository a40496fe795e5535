// Features of sparse products on a CPU: what the descriptor says of the matrix, how register blocks
// fit the dense columns and the rows, how often the matrix is read, and how evenly threads share
// it.
#include "foretune/space/schemas/sparse_cpu.h"

#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/internal/sparse_matrix_columns.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/sparse/sparse_payload.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kSizeColumns{
    as_categorical(of_problem("op", "number of the operation's label")),
    of_problem("log2_rows", "log2 of the rows"),
    of_problem("log2_columns", "log2 of the columns"),
    of_problem("log2_nnz", "log2 of the non-zeros and one"),
    of_problem("log2_n", "log2 of the dense columns"),
    of_problem("log2_row_mean", "log2 of the mean length of a row and one"),
    of_problem("value_bytes", "bytes of a value"),
    of_problem("log2_dense_over_l2",
               "log2 of the bytes of the dense operand that A's columns name "
               "over the L2 cache"),
    of_problem("log2_all_over_l2", "log2 of the bytes of all operands over the L2 cache"),
    of_problem("log2_roofline_ns", "log2 of the time that the peaks of one core allow, in ns"),
};

constexpr std::array kConfigColumns{
    of_config("isa", "instruction set: 0 generic, 1 AVX2, 2 AVX-512"),
    of_config("format", "0 CSR, 1 SELL, 2 BCSR, 3 diagonals"),
    as_categorical(of_config("vector", "number of the label of the axis of vectors")),
    of_config("vectors", "vectors of columns in a register block"),
    of_config("unroll", "non-zeros that are summed apart"),
    of_config("group", "rows side by side"),
    of_config("log2_row_tile", "log2 of the rows of a tile"),
    of_config("height", "rows of a slice or a block"),
    of_config("log2_window", "log2 of the rows that are sorted together"),
    of_config("threads", "threads"),
    as_categorical(of_config("partition", "number of the label of what threads share")),
    of_config("log2_chunk", "log2 of the rows of a dynamic chunk"),
    of_config("width", "columns of a block"),
    of_config("gather", "a vector of x is filled by 0 an instruction, 1 loads of single values"),
    of_config("store", "results are written 0 to the caches, 1 past them"),
    of_config("sums_in", "the sums of a row lie 0 in registers, 1 in a buffer"),
    of_config("prefetch", "non-zeros ahead whose row is fetched"),
    of_config("sums", "vectors of sums in registers"),
};

constexpr std::array kInteractionColumns{
    of_both("column_blocks", "blocks of dense columns, so often A is read"),
    of_both("lane_use", "useful share of the lanes along the dense columns"),
    of_both("entries_per_step", "mean length of a row over the non-zeros of a step"),
    of_both("log2_tile_over_l2",
            "log2 of the bytes of a tile of A and of its results over the L2 "
            "cache"),
    of_both("log2_thread_flops", "log2 of the operations of a thread that gets an even share"),
};

// The columns of version 2.
constexpr FeatureInfo since_2(FeatureInfo info) {
  info.since = 2;
  info.may_be_missing = true;
  return info;
}
constexpr std::array kLaterMatrixColumns{
    since_2(of_problem("diagonal_share", "share of non-zeros to the right of and below another")),
};
constexpr std::array kLaterInteractionColumns{
    since_2(of_both("log2_padding",
                    "log2 of the stored elements over the non-zeros, as estimated from shares")),
};

// The facts of a matrix that tell how much a format stores.
struct StorageShape {
  double rows = 0;
  double non_zeros = 0;
  double row_variation = 0;  // standard deviation of the rows' lengths over their mean
  double row_longest = 0;
  double band = 0;  // diagonals within the bandwidth
  double row_overlap = 0;
  double run_share = 0;
  double diagonal_share = 0;

  static StorageShape of(const Problem& problem, const SparseSizes& sizes) {
    const auto value = [&](SparseValue which) {
      return described_value(problem, static_cast<std::size_t>(which));
    };
    const auto extent = static_cast<double>(std::max(sizes.rows, sizes.columns));
    return {.rows = static_cast<double>(sizes.rows),
            .non_zeros = std::max(1.0, static_cast<double>(sizes.non_zeros)),
            .row_variation =
                value(SparseValue::kRowDeviation) / std::max(1e-9, value(SparseValue::kRowMean)),
            .row_longest = std::max(1.0, value(SparseValue::kRowLongest)),
            .band = 2 * value(SparseValue::kBandwidth) * extent + 1,
            .row_overlap = value(SparseValue::kRowOverlap),
            .run_share = value(SparseValue::kRunShare),
            .diagonal_share = value(SparseValue::kDiagonalShare)};
  }

  // Returns the stored elements over the non-zeros. A non-zero brings a block for itself unless it
  // has a neighbour; the longest of h rows is sqrt(2 ln h) deviations above the mean, and sorting
  // leaves the share of a slice in its window; a diagonal begins where none leads on.
  [[nodiscard]] double padding(std::span<const std::int32_t> words) const {
    const double height = at(words, SparseCpuField::kHeight);
    switch (static_cast<SparseFormat>(at(words, SparseCpuField::kFormat))) {
      case SparseFormat::kSell: {
        const double window = std::max(height, at(words, SparseCpuField::kWindow));
        return 1 + row_variation * std::sqrt(2 * std::log(height)) * height / window;
      }
      case SparseFormat::kBcsr:
        return (1 + (height - 1) * (1 - row_overlap)) *
               (1 + (at(words, SparseCpuField::kWidth) - 1) * (1 - run_share));
      case SparseFormat::kDiagonals: {
        const double begun = non_zeros * (1 - diagonal_share);
        return std::max(row_longest, std::min(begun, band)) * rows / non_zeros;
      }
      default:
        return 1;
    }
  }
};

class SparseCpuTable final : public FeatureTable {
 public:
  SparseCpuTable() {
    columns_ = joined({kSizeColumns, sparse_matrix_columns(), kLaterMatrixColumns, kConfigColumns,
                       kInteractionColumns, kLaterInteractionColumns});
  }

  std::string_view name() const override { return "sparse-cpu"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == kSparseProblem && has_parameters(schema, sparse_cpu_schema())
               ? Support::yes()
               : Support::no(
                     "the table sparse-cpu describes sparse problems with configs of the "
                     "schema sparse-cpu");
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const SparseProblem typed = *SparseProblem::from(problem);
    const SparseSizes& sizes = typed.sizes();
    const double rows = static_cast<double>(sizes.rows);
    const double non_zeros = static_cast<double>(sizes.non_zeros);
    const double width = static_cast<double>(sizes.width);
    const double value_bytes = bytes_per_element(sizes.dtype);
    const double l2 = std::max(1.0, hardware.get(HardwareValue::kL2Bytes));
    const double rate = hardware.get(HardwareValue::kFmaPeakGflops);
    const double bandwidth = hardware.get(HardwareValue::kBandwidthGbs);
    const double roofline = std::max(rate > 0 ? typed.flops() / rate : 0,
                                     bandwidth > 0 ? typed.bytes() / bandwidth : 0);
    std::size_t i = 0;
    out[i++] = static_cast<double>(sizes.operation);
    out[i++] = std::log2(rows);
    out[i++] = std::log2(static_cast<double>(sizes.columns));
    out[i++] = std::log2(non_zeros + 1);
    out[i++] = std::log2(width);
    out[i++] = std::log2(non_zeros / rows + 1);
    out[i++] = value_bytes;
    out[i++] = std::log2(static_cast<double>(sizes.columns) * width * value_bytes / l2);
    out[i++] = std::log2(typed.bytes() / l2);
    out[i++] = std::log2(roofline + 1);
    sparse_matrix_row(problem, out.subspan(i));
    out[i + sparse_matrix_columns().size()] =
        described_value(problem, static_cast<std::size_t>(SparseValue::kDiagonalShare));
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < kSparseCpuWords; ++i) {
      out[i] = words[i];
    }
    for (const SparseCpuField field :
         {SparseCpuField::kRowTile, SparseCpuField::kWindow, SparseCpuField::kChunk}) {
      out[static_cast<std::size_t>(field)] = std::log2(at(words, field));
    }
    out[kSparseCpuWords] =
        at(words, SparseCpuField::kVectors) *
        (at(words, SparseCpuField::kFormat) == 2
             ? at(words, SparseCpuField::kHeight)
             : std::max(at(words, SparseCpuField::kUnroll), at(words, SparseCpuField::kGroup)));
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const SparseProblem typed = *SparseProblem::from(problem);
    const SparseSizes& sizes = typed.sizes();
    const double rows = static_cast<double>(sizes.rows);
    const double row_mean = static_cast<double>(sizes.non_zeros) / rows;
    const double width = static_cast<double>(sizes.width);
    const double value_bytes = bytes_per_element(sizes.dtype);
    const double l2 = std::max(1.0, hardware.get(HardwareValue::kL2Bytes));
    const StorageShape shape = StorageShape::of(problem, sizes);
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> words) {
      const double isa = at(words, SparseCpuField::kIsa);
      const double lanes = (isa == 2 ? 64 : isa == 1 ? 32 : 16) / value_bytes;
      const double vectors = ceil_div(width, lanes);
      const bool along_columns = words[static_cast<std::size_t>(SparseCpuField::kVector)] ==
                                 static_cast<std::int32_t>(SparseVector::kColumns);
      const double step = (along_columns ? 1 : lanes) * at(words, SparseCpuField::kUnroll);
      const double tile = std::min(rows, at(words, SparseCpuField::kRowTile));
      writer.put(ceil_div(vectors, at(words, SparseCpuField::kVectors)));
      writer.put(along_columns ? edge_use(width, lanes) : 1);
      writer.put(row_mean / step);
      writer.put_log2((tile * (row_mean * (4 + value_bytes) + width * value_bytes) + 1) / l2);
      writer.put_log2(typed.flops() / at(words, SparseCpuField::kThreads) + 1);
      writer.put_log2(shape.padding(words));
    });
  }

 private:
  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& sparse_cpu_table() {
  static const SparseCpuTable table;
  return table;
}

}  // namespace foretune::features_internal
