// The features of torch-diode's models (github.com/exclamaforte/diode, 2025), so that such a model
// can be run and compared here: the 12 of MatmulModelV1, which is shipped, and the 36 of its
// trainer's models. Their mistakes are kept, because the models learned them:
//
//   bits    in the 36, bf16, fp8 and int8 count as 32. V1 was trained with the true ones: the mean
//           and deviation of their logarithm, 2.78275 and 0.08323, are those of 98.5 % 16 and
//           1.5 % 32.
//   batch   neither flops nor bytes include it; Diode measures single products only.
//   flags   V1 does not see EVEN_K, ALLOW_TF32, USE_FAST_ACCUM and ACC_TYPE, and its trainer's
//           models do not see the last. Its collector writes the first three as false, so configs
//           without them have 0.
//
// V1's formulas are those of PyTorch's mm_kernel_prediction_model.py (pull request 156851), where
// the model comes from: bytes of A, B and C once each over 1e9, 2 m n k over 1e9, and the second
// over the first. V1's constants agree: 3.40679 + 2.39558 = 5.80237 are the means of the three, and
// log-normal sizes of its means and deviations have ln(gigabytes) at -2.20 +- 2.23 where V1's is
// -2.40 +- 2.20; A and B alone would have -2.88 +- 2.44. Diode rounds these three to floats first,
// a difference of some 1e-7 that is ignored here. Only the names of the 36 are known; their
// formulas are assumed to be the same.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune::features_internal {
namespace {

constexpr FeatureInfo column(std::int16_t position, FeatureKind kind, std::string_view name,
                             std::string_view description) {
  return {.name = name,
          .kind = kind,
          .description = description,
          .is_categorical = false,
          .foreign_position = position};
}

constexpr FeatureInfo problem(std::int16_t position, std::string_view name,
                              std::string_view description) {
  return column(position, FeatureKind::kProblem, name, description);
}

constexpr FeatureInfo config(std::int16_t position, std::string_view name,
                             std::string_view description) {
  return column(position, FeatureKind::kConfig, name, description);
}

// The columns have V1's own names.
constexpr std::array kV1Columns{
    problem(0, "dtype_size", "bits of an element"),
    problem(1, "dim_m", "rows of C"),
    problem(2, "dim_n", "columns of C"),
    problem(3, "dim_k", "depth"),
    problem(4, "total_gb", "gigabytes of A, B and C of one product"),
    problem(5, "total_gflop", "2 m n k / 1e9"),
    problem(6, "flops_per_byte", "total_gflop over total_gb"),
    config(7, "config_block_k", "depth of one step"),
    config(8, "config_block_m", "rows of a tile"),
    config(9, "config_block_n", "columns of a tile"),
    config(10, "config_num_stages", "steps in flight"),
    config(11, "config_num_warps", "warps of a block"),
};

constexpr std::array kColumns{
    problem(0, "m", "rows of C"),
    problem(1, "n", "columns of C"),
    problem(2, "k", "depth"),
    problem(3, "batch", "number of products"),
    problem(4, "dtype_bits", "16 for f16, else 32"),
    problem(5, "gigabytes", "of A, B and C of one product, in elements of dtype_bits"),
    problem(6, "gflop", "2 m n k / 1e9"),
    problem(7, "flops_per_byte", "gflop over gigabytes"),
    problem(8, "m_over_n", "m / n"),
    problem(9, "m_over_k", "m / k"),
    problem(10, "n_over_k", "n / k"),
    problem(11, "mn", "m n"),
    problem(12, "mk", "m k"),
    problem(13, "nk", "n k"),
    problem(14, "mnk", "m n k"),
    problem(15, "ln_m", "natural logarithm of m"),
    problem(16, "ln_n", "natural logarithm of n"),
    config(17, "block_m", "rows of a tile"),
    config(18, "block_n", "columns of a tile"),
    config(19, "block_k", "depth of one step"),
    config(20, "group_m", "rows of tiles that run side by side"),
    config(21, "num_stages", "steps in flight"),
    config(22, "num_warps", "warps of a block"),
    config(23, "even_k", "1 where the config has this flag"),
    config(24, "allow_tf32", "1 where the config has this flag"),
    config(25, "use_fast_accum", "1 where the config has this flag"),
    config(26, "block_mn", "block_m block_n"),
    config(27, "block_mk", "block_m block_k"),
    config(28, "block_nk", "block_n block_k"),
    config(29, "block_mnk", "block_m block_n block_k"),
    config(30, "threads", "of a block"),
    config(31, "block_m_over_warps", "block_m / num_warps"),
    config(32, "block_n_over_warps", "block_n / num_warps"),
    config(33, "ln_block_m", "natural logarithm of block_m"),
    config(34, "ln_block_n", "natural logarithm of block_n"),
    config(35, "ln_block_k", "natural logarithm of block_k"),
};

struct Tile {
  double block_m = 0;
  double block_n = 0;
  double block_k = 0;
  double group_m = 0;
  double stages = 0;
  double warps = 0;
  double even_k = 0;
  double allow_tf32 = 0;
  double use_fast_accum = 0;

  // Parameters that are not a tile, as the library's choice, are all zeros.
  static Tile of(std::span<const std::int32_t> words) {
    const bool has_template = words.size() == kTritonTileWords + 1;
    const auto tile = words.subspan(has_template ? 1 : 0);
    Tile out{static_cast<double>(tile[0]), static_cast<double>(tile[1]),
             static_cast<double>(tile[2]), static_cast<double>(tile[3]),
             static_cast<double>(tile[4]), static_cast<double>(tile[5])};
    if (tile.size() > kTritonTileWords) {
      out.even_k = tile[6];
      out.allow_tf32 = tile[7];
      out.use_fast_accum = tile[8];
    }
    return out;
  }
};

struct Work {
  double gigabytes = 0;
  double gflop = 0;
  double flops_per_byte = 0;
  static Work of(const GemmView& view, double bits) {
    const double bytes = (view.m * view.k + view.k * view.n + view.m * view.n) * bits / 8;
    const double flops = 2 * view.m * view.n * view.k;
    return {bytes / 1e9, flops / 1e9, flops / bytes};
  }
};

// A table of all kinds of Triton's configs, which has no columns of problem and config together.
class DiodeTable : public FeatureTable {
 public:
  DiodeTable(std::string_view name, std::span<const FeatureInfo> columns)
      : name_(name), columns_(columns) {}
  std::string_view name() const final { return name_; }
  std::span<const FeatureInfo> columns() const final { return columns_; }

  Support supports(ProblemType type, const ConfigSchema& schema) const final {
    if (type != kGemmProblem) {
      return Support::no(name_, " describes gemm problems only");
    }
    if (has_parameters(schema, triton_gemm_schema()) ||
        has_parameters(schema, triton_matmul_schema()) ||
        has_parameters(schema, diode_triton_schema())) {
      return Support::yes();
    }
    return Support::no(name_,
                       " describes configs of the parameters block_m block_n block_k group_m "
                       "num_stages num_warps, alone, with template in front, or followed by even_k "
                       "allow_tf32 use_fast_accum acc_type, not those of ",
                       schema.name);
  }

  void interaction_columns(const Problem& /*problem*/, const Hardware& /*hardware*/,
                           ConfigWords /*configs*/, std::span<double> /*out*/,
                           std::size_t /*stride*/) const final {}

 private:
  std::string_view name_;
  std::span<const FeatureInfo> columns_;
};

class GemmDiodeV1Table final : public DiodeTable {
 public:
  GemmDiodeV1Table() : DiodeTable("gemm-diode-v1", kV1Columns) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const GemmView view = GemmView::of(problem, hardware);
    const double bits = 8 * view.bytes_per_element;
    const Work work = Work::of(view, bits);
    const std::array row{
        bits, view.m, view.n, view.k, work.gigabytes, work.gflop, work.flops_per_byte};
    std::copy(row.begin(), row.end(), out.begin());
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const Tile tile = Tile::of(words);
    const std::array row{tile.block_k, tile.block_m, tile.block_n, tile.stages, tile.warps};
    std::copy(row.begin(), row.end(), out.begin());
  }
};

class GemmDiodeTable final : public DiodeTable {
 public:
  GemmDiodeTable() : DiodeTable("gemm-diode", kColumns) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const GemmView view = GemmView::of(problem, hardware);
    const auto dtype =
        static_cast<DataType>(problem.field(static_cast<std::size_t>(GemmField::kDtype)));
    const double bits = dtype == DataType::kF16 ? 16 : 32;
    const Work work = Work::of(view, bits);
    const double m = view.m;
    const double n = view.n;
    const double k = view.k;
    const std::array row{m,          n,
                         k,          view.batch,
                         bits,       work.gigabytes,
                         work.gflop, work.flops_per_byte,
                         m / n,      m / k,
                         n / k,      m * n,
                         m * k,      n * k,
                         m * n * k,  std::log(m),
                         std::log(n)};
    std::copy(row.begin(), row.end(), out.begin());
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const Tile tile = Tile::of(words);
    const double m = tile.block_m;
    const double n = tile.block_n;
    const double k = tile.block_k;
    const double warps = std::max(1.0, tile.warps);
    const auto log = [](double size) { return std::log(std::max(1.0, size)); };
    const std::array row{m,
                         n,
                         k,
                         tile.group_m,
                         tile.stages,
                         tile.warps,
                         tile.even_k,
                         tile.allow_tf32,
                         tile.use_fast_accum,
                         m * n,
                         m * k,
                         n * k,
                         m * n * k,
                         32 * tile.warps,
                         m / warps,
                         n / warps,
                         log(m),
                         log(n),
                         log(k)};
    std::copy(row.begin(), row.end(), out.begin());
  }
};

}  // namespace

const FeatureTable& gemm_diode_v1_table() {
  static const GemmDiodeV1Table table;
  return table;
}

const FeatureTable& gemm_diode_table() {
  static const GemmDiodeTable table;
  return table;
}

}  // namespace foretune::features_internal
