// A tiny space of schedules proves that the interface suffices for spaces that are built step by
// step and never listed. A config is a list of tile sizes of a loop; each has to divide the
// remaining size.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/space/space.h"

namespace foretune {
namespace {

class TilingSpace final : public Space, public SequentialSpace {
 public:
  explicit TilingSpace(std::int32_t extent) : extent_(extent) {}

  const ConfigSchema& schema() const override { return schema_; }

  Support why_not(const Config& config) const override {
    if (config.schema != schema_.id()) {
      return Support::no("the config is not a tiling");
    }
    std::int32_t left = extent_;
    for (const std::int32_t tile : config.words) {
      if (std::find(kTiles.begin(), kTiles.end(), tile) == kTiles.end()) {
        return Support::no("a tile of ", tile, " is not offered");
      }
      if (left % tile != 0) {
        return Support::no("a tile of ", tile, " does not divide ", left);
      }
      left /= tile;
    }
    return Support::yes();
  }

  Result<Config> sample(Rng& rng) const override {
    Config state = start();
    while (rng.below(3) != 0) {
      const std::vector<bool> legal = legal_actions(state);
      std::vector<std::size_t> open;
      for (std::size_t action = 0; action < legal.size(); ++action) {
        if (legal[action]) {
          open.push_back(action);
        }
      }
      if (open.empty()) {
        break;
      }
      FORETUNE_TRY(state, apply(state, open[rng.below(open.size())]));
    }
    return state;
  }

  std::vector<Config> neighbours(const Config& config) const override {
    std::vector<Config> out;
    for (std::size_t action = 0; action < action_count(); ++action) {
      if (Result<Config> next = apply(config, action)) {
        out.push_back(*std::move(next));
      }
    }
    if (!config.words.empty()) {
      Config shorter = config;
      shorter.words.resize(config.words.size() - 1);
      out.push_back(std::move(shorter));
    }
    return out;
  }

  Config canonical(const Config& config) const override { return config; }
  const SequentialSpace* sequential() const override { return this; }

  Config start() const override { return {schema_.id(), {}}; }
  std::size_t action_count() const override { return kTiles.size(); }
  std::vector<bool> legal_actions(const Config& state) const override {
    std::vector<bool> out;
    for (std::size_t action = 0; action < action_count(); ++action) {
      out.push_back(apply(state, action).has_value());
    }
    return out;
  }
  Result<Config> apply(const Config& state, std::size_t action) const override {
    Config next = state;
    next.words.push_back(kTiles[action]);
    if (const Support support = why_not(next); !support) {
      return fail(ErrorCode::kInvalidArgument, action_text(action), ": ", support.reason());
    }
    return next;
  }
  std::string action_text(std::size_t action) const override {
    return concat("tile by ", kTiles[action]);
  }

 private:
  static constexpr std::array<std::int32_t, 3> kTiles{2, 3, 5};
  std::int32_t extent_;
  ConfigSchema schema_{
      .name = "tiling", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
};

// Collects all states, like a search that knows only the interface of the space.
std::set<Config> reachable(const Space& space) {
  const SequentialSpace& steps = *space.sequential();
  std::set<Config> seen{steps.start()};
  std::vector<Config> open{steps.start()};
  while (!open.empty()) {
    const Config state = open.back();
    open.pop_back();
    const std::vector<bool> legal = steps.legal_actions(state);
    for (std::size_t action = 0; action < steps.action_count(); ++action) {
      const Result<Config> next = steps.apply(state, action);
      EXPECT_EQ(next.has_value(), legal[action]);
      if (next && seen.insert(*next).second) {
        open.push_back(*next);
      }
    }
  }
  return seen;
}

TEST(SequentialSpace, IsWalkedByActionsAlone) {
  const std::unique_ptr<Space> space = std::make_unique<TilingSpace>(12);
  EXPECT_EQ(space->enumerable(), nullptr);
  ASSERT_NE(space->sequential(), nullptr);
  const std::set<Config> states = reachable(*space);
  // The states are (), 2, 3, 22, 23, 32, and the three orders of 2 2 3.
  EXPECT_EQ(states.size(), 9U);
  for (const Config& state : states) {
    EXPECT_TRUE(space->why_not(state));
    EXPECT_EQ(parse_config(space->schema(), to_text(space->schema(), state)).value(), state);
    for (const Config& neighbour : space->neighbours(state)) {
      EXPECT_EQ(states.count(neighbour), 1U);
    }
  }
}

TEST(SequentialSpace, SamplesAreLegalAndCoverTheSpace) {
  const TilingSpace space(12);
  Rng rng(3);
  std::set<Config> seen;
  for (int i = 0; i < 500; ++i) {
    const Result<Config> config = space.sample(rng);
    ASSERT_TRUE(config);
    ASSERT_TRUE(space.why_not(*config));
    seen.insert(*config);
  }
  EXPECT_EQ(seen, reachable(space));
}

TEST(SequentialSpace, RefusalsCarryTheActionAndTheReason) {
  const TilingSpace space(12);
  const Result<Config> next = space.apply(space.start(), 2);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "tile by 5: a tile of 5 does not divide 12");
  EXPECT_EQ(space.why_not(Config{1, {}}).reason(), "the config is not a tiling");
}

}  // namespace
}  // namespace foretune
