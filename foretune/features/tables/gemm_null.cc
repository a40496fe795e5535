// Features of the simulated family, whose configs have two block sizes, a depth and an unroll.
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/space/schemas/simulated.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kConfigColumns{
    of_config("log2_block_m", "log2 of the rows of a block"),
    of_config("log2_block_n", "log2 of the columns of a block"),
    of_config("log2_block_k", "log2 of the depth of a block"),
    of_config("log2_unroll", "log2 of the unrolled steps"),
};
constexpr std::array kInteractionColumns{
    of_both("use_m", "useful share of the blocks' rows"),
    of_both("use_n", "useful share of the blocks' columns"),
    of_both("log2_m_over_block", "log2 of m / block_m"),
    of_both("log2_n_over_block", "log2 of n / block_n"),
    of_both("log2_k_over_block", "log2 of k / block_k"),
};

class GemmNullTable final : public GemmTable {
 public:
  GemmNullTable() : GemmTable("gemm-null", null_schema(), kConfigColumns, kInteractionColumns) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < words.size(); ++i) {
      out[i] = std::log2(static_cast<double>(words[i]));
    }
  }

 private:
  void candidates(const GemmView& view, ConfigWords configs, ColumnWriter& writer) const override {
    for_each_config(configs, writer,
                    [&](std::span<const std::int32_t> config) { candidate(view, config, writer); });
  }

  static void candidate(const GemmView& view, std::span<const std::int32_t> words,
                        ColumnWriter& writer) {
    writer.put(edge_use(view.m, words[0]));
    writer.put(edge_use(view.n, words[1]));
    writer.put_log2(view.m / words[0]);
    writer.put_log2(view.n / words[1]);
    writer.put_log2(view.k / words[2]);
  }
};

}  // namespace

const FeatureTable& gemm_null_table() {
  static const GemmNullTable table;
  return table;
}

}  // namespace foretune::features_internal
