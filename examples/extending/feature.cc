// A feature table in one file, for the configs of a made-up tiled GEMM.
// docs/guides/extending/feature.md walks through it.
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/problem/gemm/gemm.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

class TiledFeatures final : public FeatureTable {
 public:
  std::string_view name() const override { return "gemm-tiled-1"; }
  std::span<const FeatureInfo> columns() const override {
    static constexpr std::array kColumns{
        FeatureInfo{"log2_m", FeatureKind::kProblem, "log2 of m"},
        FeatureInfo{"cores", FeatureKind::kProblem, "cores of the machine"},
        FeatureInfo{"tile_m", FeatureKind::kConfig, "rows of a tile"},
        FeatureInfo{"edge_use_m", FeatureKind::kInteraction,
                    "share of the tiles' rows that hold rows of C"},
    };
    return kColumns;
  }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    const bool known = type == kGemmProblem && schema.parameters.size() == 1 &&
                       schema.parameters[0].name == "tile_m";
    return known ? Support::yes()
                 : Support::no("gemm-tiled-1 describes gemm configs of one tile_m");
  }
  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    out[0] = std::log2(static_cast<double>(rows_of(problem)));
    out[1] = hardware.get(HardwareValue::kCores);
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    out[0] = words[0];
  }
  void interaction_columns(const Problem& problem, const Hardware& /*hardware*/,
                           ConfigWords configs, std::span<double> out,
                           std::size_t /*stride*/) const override {
    const std::int64_t rows = rows_of(problem);
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::int64_t tile = configs[i][0];
      const std::int64_t covered = (rows + tile - 1) / tile * tile;
      out[i] = static_cast<double>(rows) / static_cast<double>(covered);
    }
  }

 private:
  static std::int64_t rows_of(const Problem& problem) {
    return problem.field(static_cast<std::size_t>(GemmField::kM));
  }
};

}  // namespace

int main() {
  const TiledFeatures table;
  const Result<Problem> problem = Problem::parse("gemm m=100 n=8 k=8");
  Hardware hardware;
  hardware.set(HardwareValue::kCores, 2);
  std::vector<double> row(table.columns().size());
  feature_row(table, *problem, hardware, {.schema = 0, .words = {64}}, row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::printf("%s = %g\n", std::string(table.columns()[i].name).c_str(), row[i]);
  }
  return row[3] == 100.0 / 128.0 ? 0 : 1;
}
