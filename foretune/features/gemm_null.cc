// Features of the simulated family, whose configs have two block sizes, a depth and an unroll.
#include <array>

#include "foretune/features/column_table.h"

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

class GemmNullTable final : public FeatureTable {
 public:
  GemmNullTable() {
    for (const std::span<const FeatureInfo> part :
         {gemm_problem_columns(), std::span<const FeatureInfo>(kConfigColumns),
          std::span<const FeatureInfo>(kInteractionColumns)}) {
      columns_.insert(columns_.end(), part.begin(), part.end());
    }
  }
  std::string_view name() const override { return "gemm-null"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == ProblemType::kGemm ? same_parameters(name(), schema, kParameters)
                                      : Support::no(name(), " describes gemm problems only");
  }
  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    gemm_problem_row(GemmView::of(problem, hardware), out);
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      out[i] = std::log2(static_cast<double>(words[i]));
    }
  }
  void interaction_columns(const Problem& problem, const Hardware& hardware,
                           std::span<const std::int32_t> words, std::size_t width,
                           std::span<double> out, std::size_t stride) const override {
    const GemmView view = GemmView::of(problem, hardware);
    ColumnWriter writer(out, stride);
    for (std::size_t i = 0; i * width < words.size(); ++i) {
      const std::span<const std::int32_t> config = words.subspan(i * width, width);
      writer.start(i);
      writer.put(edge_use(view.m, config[0]));
      writer.put(edge_use(view.n, config[1]));
      writer.put(std::log2(view.m / config[0]));
      writer.put(std::log2(view.n / config[1]));
      writer.put(std::log2(view.k / config[2]));
    }
  }

 private:
  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& gemm_null_table() {
  static const GemmNullTable table;
  return table;
}

}  // namespace foretune::features_internal
