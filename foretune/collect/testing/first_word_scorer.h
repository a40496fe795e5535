// A scorer that is trained in no time, for tests of active collection.
// Thread safety: immutable after creation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/model/scorer.h"

namespace foretune {

// Scores by the times of the configs that share the first word, later ones counting more: so it
// depends on what was measured and on the order.
class FirstWordScorer final : public Scorer {
 public:
  explicit FirstWordScorer(const Dataset& measured) {
    for (const Dataset::Row& row : measured.rows()) {
      double& level = level_[measured.configs()[row.config].words[0]];
      level = 0.5 * level + static_cast<double>(row.time_ns);
    }
  }
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& /*hardware*/) const override {
    return std::make_unique<Pool>(*this, configs);
  }

 private:
  class Pool final : public PreparedPool {
   public:
    Pool(const FirstWordScorer& scorer, ConfigWords configs) {
      for (std::size_t i = 0; i < configs.size(); ++i) {
        const auto level = scorer.level_.find(configs[i][0]);
        levels_.push_back(level == scorer.level_.end() ? 0 : level->second);
      }
    }
    std::size_t size() const override { return levels_.size(); }
    std::size_t workspace_bytes() const override { return 0; }
    void score(const Problem& /*problem*/, std::span<std::byte> /*workspace*/,
               std::span<double> scores, std::span<double> uncertainty) const noexcept override {
      std::copy(levels_.begin(), levels_.end(), scores.begin());
      std::fill(uncertainty.begin(), uncertainty.end(), 1.0);
    }

   private:
    std::vector<double> levels_;
  };
  std::map<std::int32_t, double> level_;
};

}  // namespace foretune
