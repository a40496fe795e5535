// Features of the simulated family, whose configs have two block sizes, a depth and an unroll.
#include <array>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"

namespace foretune::features_internal {
namespace {

constexpr std::array<std::string_view, 4> kParameters{"block_m", "block_n", "block_k", "unroll"};

constexpr std::array kConfigColumns{
    FeatureInfo{"log2_block_m", FeatureKind::kConfig, "log2 of the rows of a block"},
    FeatureInfo{"log2_block_n", FeatureKind::kConfig, "log2 of the columns of a block"},
    FeatureInfo{"log2_block_k", FeatureKind::kConfig, "log2 of the depth of a block"},
    FeatureInfo{"log2_unroll", FeatureKind::kConfig, "log2 of the unrolled steps"},
};
constexpr std::array kInteractionColumns{
    FeatureInfo{"use_m", FeatureKind::kInteraction, "useful share of the blocks' rows"},
    FeatureInfo{"use_n", FeatureKind::kInteraction, "useful share of the blocks' columns"},
    FeatureInfo{"log2_m_over_block", FeatureKind::kInteraction, "log2 of m / block_m"},
    FeatureInfo{"log2_n_over_block", FeatureKind::kInteraction, "log2 of n / block_n"},
    FeatureInfo{"log2_k_over_block", FeatureKind::kInteraction, "log2 of k / block_k"},
};

class GemmNullTable final : public GemmTable {
 public:
  GemmNullTable() : GemmTable("gemm-null", kParameters, kConfigColumns, kInteractionColumns) {}

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
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
