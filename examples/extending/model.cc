// A scorer in one file: no learning at all, the tile that wastes least comes first. A trained model
// differs only in where the numbers come from. docs/extending/model.md walks through it.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "foretune/models/infer/scorer.h"
#include "foretune/problem/gemm/gemm.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

class WastePool final : public PreparedPool {
 public:
  explicit WastePool(ConfigWords configs) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      tiles_.push_back(configs[i][0]);
    }
  }
  std::size_t size() const override { return tiles_.size(); }
  std::size_t workspace_bytes() const override { return 0; }
  void score(const Problem& problem, std::span<std::byte> /*workspace*/, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    const std::int64_t rows = problem.field(static_cast<std::size_t>(GemmField::kM));
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const std::int64_t covered = (rows + tiles_[i] - 1) / tiles_[i] * tiles_[i];
      // Natural log of the time, up to a constant per problem.
      scores[i] = std::log(static_cast<double>(covered) / static_cast<double>(rows));
    }
    for (double& deviation : uncertainty) {
      deviation = 1;
    }
  }

 private:
  std::vector<std::int64_t> tiles_;
};

class WasteScorer final : public Scorer {
 public:
  std::string_view kind() const override { return "waste"; }
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& /*hardware*/) const override {
    if (configs.empty()) {
      return fail(ErrorCode::kInvalidArgument, "there are no configs to score");
    }
    return std::make_unique<WastePool>(configs);
  }
};

}  // namespace

int main() {
  const WasteScorer scorer;
  const std::vector<std::int32_t> tiles{16, 32, 64, 128};
  const auto pool = scorer.prepare({tiles, 1}, Hardware{});
  const auto problem = Problem::parse("gemm m=96 n=8 k=8");
  std::vector<double> scores(tiles.size());
  (*pool)->score(*problem, {}, scores, {});
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    std::printf("tile %d: %.3f\n", tiles[i], scores[i]);
  }
  return scores[1] == 0 && scores[3] > scores[0] ? 0 : 1;
}
