#include "tools/train_network/losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::network_training {
namespace {

// Groups of rows as plain numbers, from which the losses are computed by their definitions.
struct PlainRow {
  double score = 0;
  double relative = 0;
  bool is_censored = false;
};
using PlainGroup = std::vector<PlainRow>;
constexpr double kTie = 0.125;

// Times on a grid, so that there are ties, also of exactly the tie's width.
std::vector<PlainGroup> sample_groups(Rng& rng) {
  std::vector<PlainGroup> groups;
  for (const std::size_t size : {std::size_t{7}, std::size_t{3}, std::size_t{1}, std::size_t{9}}) {
    PlainGroup group(size);
    for (PlainRow& row : group) {
      row.score = rng.normal();
      row.relative = static_cast<double>(rng.below(16)) / 16;
      row.is_censored = rng.below(4) == 0;
    }
    groups.push_back(group);
  }
  return groups;
}

LossBatch batch_of(const std::vector<PlainGroup>& groups) {
  constexpr std::int64_t kPlaces = 9;
  const auto count = static_cast<std::int64_t>(groups.size());
  LossBatch batch{.score = at::full({count, kPlaces}, 0.25, at::kDouble),
                  .relative = at::full({count, kPlaces}, 0.5, at::kDouble),
                  .exact = at::ones({count, kPlaces}, at::kBool),
                  .present = at::zeros({count, kPlaces}, at::kBool),
                  .tie = kTie};
  for (std::int64_t g = 0; g < count; ++g) {
    const PlainGroup& group = groups[static_cast<std::size_t>(g)];
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(group.size()); ++i) {
      const PlainRow& row = group[static_cast<std::size_t>(i)];
      batch.score[g][i] = row.score;
      batch.relative[g][i] = row.relative;
      batch.exact[g][i] = !row.is_censored;
      batch.present[g][i] = true;
    }
  }
  batch.find_pairs();
  return batch;
}

bool is_slower(const PlainRow& slow, const PlainRow& fast) {
  return !fast.is_censored && slow.relative - fast.relative > kTie;
}

double plain_margin(const std::vector<PlainGroup>& groups) {
  double sum = 0;
  double count = 0;
  for (const PlainGroup& group : groups) {
    for (const PlainRow& fast : group) {
      for (const PlainRow& slow : group) {
        if (is_slower(slow, fast)) {
          sum += std::max(0.0, 1 - (slow.score - fast.score));
          ++count;
        }
      }
    }
  }
  return sum / count;
}

double plain_lambdarank(const std::vector<PlainGroup>& groups) {
  double sum = 0;
  for (const PlainGroup& group : groups) {
    const auto discount = [](std::size_t rank) {
      return 1 / std::log2(static_cast<double>(rank) + 1);
    };
    const auto rank = [&](const PlainRow& row) {
      return 1 + static_cast<std::size_t>(
                     std::count_if(group.begin(), group.end(),
                                   [&](const PlainRow& other) { return other.score < row.score; }));
    };
    std::vector<double> gains;
    for (const PlainRow& row : group) {
      gains.push_back(std::exp(-row.relative));
    }
    std::sort(gains.begin(), gains.end(), std::greater<>());
    double ideal = 0;
    for (std::size_t i = 0; i < gains.size(); ++i) {
      ideal += gains[i] * discount(i + 1);
    }
    for (const PlainRow& fast : group) {
      for (const PlainRow& slow : group) {
        const double change = std::abs(std::exp(-fast.relative) - std::exp(-slow.relative)) *
                              std::abs(discount(rank(fast)) - discount(rank(slow))) / ideal;
        sum +=
            is_slower(slow, fast) ? change * std::log1p(std::exp(-(slow.score - fast.score))) : 0.0;
      }
    }
  }
  return sum / static_cast<double>(groups.size());
}

double plain_listmle(const std::vector<PlainGroup>& groups) {
  double sum = 0;
  double count = 0;
  for (const PlainGroup& group : groups) {
    for (const PlainRow& drawn : group) {
      double rates = 0;
      for (const PlainRow& row : group) {
        rates += row.relative >= drawn.relative - kTie ? std::exp(-row.score) : 0;
      }
      if (!drawn.is_censored) {
        sum -= std::log(std::exp(-drawn.score) / rates);
        ++count;
      }
    }
  }
  return sum / count;
}

TEST(LossesTest, RankingLossesAreWhatTheirDefinitionsSay) {
  Rng rng(51);
  for (int repeat = 0; repeat < 30; ++repeat) {
    const std::vector<PlainGroup> groups = sample_groups(rng);
    const LossBatch batch = batch_of(groups);
    EXPECT_NEAR(margin_loss(batch).item<double>(), plain_margin(groups), 1e-9);
    EXPECT_NEAR(lambdarank_loss(batch).item<double>(), plain_lambdarank(groups), 1e-9);
    EXPECT_NEAR(listmle_loss(batch).item<double>(), plain_listmle(groups), 1e-9);
  }
}

TEST(LossesTest, AbsentRowsHaveNoGradientAndNoneIsNoNumber) {
  Rng rng(52);
  for (const auto loss : {&margin_loss, &lambdarank_loss, &listmle_loss}) {
    LossBatch batch = batch_of(sample_groups(rng));
    batch.score.requires_grad_(true);
    loss(batch).backward();
    const at::Tensor gradient = batch.score.grad();
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    EXPECT_EQ(gradient.masked_select(batch.present.logical_not()).abs().sum().item<double>(), 0);
    EXPECT_GT(gradient.abs().sum().item<double>(), 0);
  }
}

TEST(LossesTest, GroupsWithoutPairsCostNothing) {
  const std::vector<PlainGroup> groups{{{.score = 1, .is_censored = true}, {.score = 0}}};
  const LossBatch batch = batch_of(groups);
  EXPECT_EQ(margin_loss(batch).item<double>(), 0);
  EXPECT_EQ(lambdarank_loss(batch).item<double>(), 0);
  EXPECT_TRUE(std::isfinite(listmle_loss(batch).item<double>()));
}

TEST(LossesTest, SquaredErrorIsWeightedAndLetsBoundsBeExceeded) {
  LossBatch batch{.output = at::zeros({4}, at::kDouble),
                  .target = at::zeros({4}, at::kDouble),
                  .weight = at::ones({4}, at::kDouble),
                  .censored = at::zeros({4}, at::kBool)};
  batch.output[0] = 2;  // too high
  batch.weight[0] = 3;
  batch.output[1] = 5;  // above a bound
  batch.censored[1] = true;
  batch.output[2] = -1;  // below a bound
  batch.censored[2] = true;
  EXPECT_NEAR(squared_error_loss(batch).item<double>(), (3 * 4 + 0 + 1 + 0) / 6.0, 1e-12);
}

TEST(LossesTest, AMixtureIsTheWeightedSum) {
  Rng rng(53);
  const LossBatch batch = batch_of(sample_groups(rng));
  const std::array<LossTerm, 2> terms{LossTerm{.kind = LossKind::kMargin, .weight = 2},
                                      LossTerm{.kind = LossKind::kListMle, .weight = 0.5}};
  EXPECT_NEAR(mixture_loss(terms, batch).item<double>(),
              2 * margin_loss(batch).item<double>() + 0.5 * listmle_loss(batch).item<double>(),
              1e-12);
}

}  // namespace
}  // namespace foretune::network_training
