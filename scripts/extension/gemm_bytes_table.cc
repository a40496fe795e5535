// A feature table for scripts/extension_cost.py: sizes, blocks, and the bytes that a block reads.
#include <cmath>
#include <vector>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/space/schemas/simulated.h"

namespace foretune::features_internal {
namespace {

class GemmBytesTable final : public FeatureTable {
 public:
  std::string_view name() const override { return "gemm-bytes"; }
  std::span<const FeatureInfo> columns() const override {
    static const std::vector<FeatureInfo> list{
        {.name = "log2_m", .kind = FeatureKind::kProblem, .description = "log2 of the rows"},
        {.name = "log2_n", .kind = FeatureKind::kProblem, .description = "log2 of the columns"},
        {.name = "log2_block", .kind = FeatureKind::kConfig, .description = "log2 of a block"},
        {.name = "unroll", .kind = FeatureKind::kConfig, .description = "as it is"},
        {.name = "log2_read",
         .kind = FeatureKind::kInteraction,
         .description = "log2 of the bytes that all blocks read"}};
    return list;
  }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == kGemmProblem && has_parameters(schema, null_schema())
               ? Support::yes()
               : Support::no("gemm-bytes describes the simulated family's products");
  }
  void problem_row(const Problem& problem, const Hardware& /*hardware*/,
                   std::span<double> out) const override {
    const GemmView view = GemmView::of(problem, {});
    out[0] = std::log2(view.m);
    out[1] = std::log2(view.n);
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    out[0] = std::log2(static_cast<double>(words[0]) * words[1]);
    out[1] = words[3];
  }
  void interaction_columns(const Problem& problem, const Hardware& /*hardware*/,
                           ConfigWords configs, std::span<double> out,
                           std::size_t /*stride*/) const override {
    const GemmView view = GemmView::of(problem, {});
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const double rows = ceil_div(view.m, configs[i][0]);
      const double columns = ceil_div(view.n, configs[i][1]);
      out[i] = std::log2(rows * columns * view.k * (configs[i][0] + configs[i][1]));
    }
  }
};

}  // namespace

const FeatureTable& gemm_bytes_table() {
  static const GemmBytesTable table;
  return table;
}

}  // namespace foretune::features_internal
