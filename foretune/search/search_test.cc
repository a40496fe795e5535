// Properties that every strategy has on every kind of space, and what each is for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/null/null.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/coverage.h"
#include "foretune/search/strategy.h"
#include "foretune/search/testing/strategies.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using testing_support::strategies_of_spaces;

Problem some_problem() { return GemmProblem::create({.m = 300, .n = 700, .k = 500})->to_problem(); }

// Scores a config by a hash-free formula of its words, so that the best is known.
double formula(std::span<const std::int32_t> words) {
  double total = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double off = static_cast<double>(words[i]) - static_cast<double>(3 + 2 * i);
    total += off * off / static_cast<double>(i + 1);
  }
  return total;
}

class FormulaPool final : public PreparedPool {
 public:
  explicit FormulaPool(ConfigWords configs) : configs_(configs) {}
  std::size_t size() const override { return configs_.size(); }
  std::size_t workspace_bytes() const override { return 128; }
  void score(const Problem&, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double>) const noexcept override {
    std::fill(workspace.begin(), workspace.end(), std::byte{1});
    for (std::size_t i = 0; i < scores.size(); ++i) {
      scores[i] = formula(configs_.view()[i]);
      if (nan_first && i == 0) {
        scores[i] = std::numeric_limits<double>::quiet_NaN();
      }
    }
  }
  bool nan_first = false;

 private:
  ConfigList configs_;
};

class FormulaScorer final : public Scorer {
 public:
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware&) const override {
    if (refuses) {
      return fail(ErrorCode::kMismatch, "made for other configs");
    }
    auto pool = std::make_unique<FormulaPool>(configs);
    pool->nan_first = nan_first;
    return std::unique_ptr<PreparedPool>(std::move(pool));
  }
  bool refuses = false;
  bool nan_first = false;
};

// A space that cannot be enumerated: three words appended one by one, each digit 0 to 6, strictly
// rising: 35 configs. The empty and partial states are not configs.
class RisingSpace final : public Space, public SequentialSpace {
 public:
  RisingSpace() {
    schema_.name = "rising";
    schema_.kind = SchemaKind::kSequence;
  }
  const ConfigSchema& schema() const override { return schema_; }
  Support why_not(const Config& config) const override {
    if (config.schema != schema_.id() || config.words.size() != 3) {
      return Support::no("not three digits");
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (config.words[i] < (i == 0 ? 0 : config.words[i - 1] + 1) || config.words[i] > 6) {
        return Support::no("the digits do not rise");
      }
    }
    return Support::yes();
  }
  Result<Config> sample(Rng& rng) const override {
    Config state = start();
    while (state.words.size() < 3) {
      const std::vector<bool> legal = legal_actions(state);
      std::size_t action = rng.below(action_count());
      while (!legal[action]) {
        action = rng.below(action_count());
      }
      state = *apply(state, action);
    }
    return state;
  }
  std::vector<Config> neighbours(const Config& config) const override {
    std::vector<Config> found;
    for (std::size_t i = 0; i < 3; ++i) {
      for (const int step : {-1, 1}) {
        Config next = config;
        next.words[i] += step;
        if (why_not(next)) {
          found.push_back(next);
        }
      }
    }
    return found;
  }
  Config canonical(const Config& config) const override { return config; }
  const SequentialSpace* sequential() const override { return this; }

  Config start() const override {
    Config config;
    config.schema = schema_.id();
    return config;
  }
  std::size_t action_count() const override { return 7; }
  std::vector<bool> legal_actions(const Config& state) const override {
    std::vector<bool> legal(7, false);
    const auto position = static_cast<std::int32_t>(state.words.size());
    const std::int32_t low = position == 0 ? 0 : state.words[state.words.size() - 1] + 1;
    for (std::int32_t digit = low; digit <= 4 + position && position < 3; ++digit) {
      legal[static_cast<std::size_t>(digit)] = true;
    }
    return legal;
  }
  Result<Config> apply(const Config& state, std::size_t action) const override {
    if (action >= 7 || !legal_actions(state)[action]) {
      return fail(ErrorCode::kInvalidArgument, "not legal here");
    }
    Config next = state;
    next.words.push_back(static_cast<std::int32_t>(action));
    return next;
  }
  std::string action_text(std::size_t action) const override { return concat("append ", action); }

 private:
  ConfigSchema schema_;
};

std::shared_ptr<const CompiledSpace> random_space(Rng& rng) {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "random";
  const std::size_t parameters = 1 + rng.below(5);
  for (std::size_t i = 0; i < parameters; ++i) {
    definition.schema.parameters.push_back({concat("p", i), {}});
    std::set<std::int32_t> values;
    for (std::uint64_t count = 1 + rng.below(6); values.size() < count;) {
      values.insert(static_cast<std::int32_t>(rng.between(1, 64)));
    }
    definition.domains.emplace_back(values.begin(), values.end());
  }
  if (parameters > 1) {
    definition.constraints.push_back({"p0 + p1 <= 90", "too much"});
  }
  if (parameters > 2) {
    definition.constraints.push_back({"p2 * 4 <= m", "too large for m"});
    definition.canonical.emplace_back("p1", "p1");
  }
  auto compiled = CompiledSpace::create(std::move(definition));
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  return *compiled;
}

struct NamedSpace {
  std::string name;
  std::unique_ptr<Space> space;
  std::uint64_t count;
};

std::vector<NamedSpace> spaces() {
  std::vector<NamedSpace> all;
  const auto add = [&](std::string name, std::unique_ptr<Space> space) {
    const std::uint64_t count = space->enumerable()->count();
    all.push_back({std::move(name), std::move(space), count});
  };
  static const std::unique_ptr<Family> family = *make_null({});
  add("null", *family->space(some_problem()));
  Rng rng(99);
  for (int i = 0; i < 12; ++i) {
    auto bound = ParametricSpace::bind(random_space(rng), some_problem(), {});
    EXPECT_TRUE(bound);
    add(concat("random space ", i), *std::move(bound));
  }
  all.push_back({"sequential", std::make_unique<RisingSpace>(), 35});
  return all;
}

const FormulaScorer kScorer;

Result<std::unique_ptr<Strategy>> make(std::string_view name, const Space& space,
                                       std::size_t sample_size = 0) {
  return create_strategy(name, some_problem(), space,
                         {.sample_size = sample_size, .scorer = &kScorer});
}

// Asks until nothing comes, in batches, telling results in between.
std::vector<Config> walk(Strategy& strategy, Rng& rng, std::size_t batch,
                         std::size_t limit = 100000) {
  std::vector<Config> asked;
  while (asked.size() < limit) {
    const std::vector<Config> configs = strategy.ask(std::min(batch, limit - asked.size()), rng);
    if (configs.empty()) {
      break;
    }
    EXPECT_LE(configs.size(), batch);
    std::vector<Trial> trials;
    for (const Config& config : configs) {
      Trial trial{.config = config};
      if (config.hash() % 11 != 0) {
        trial.value = formula(config.words.view());
        trial.censored = config.hash() % 7 == 0;
      }
      trials.push_back(trial);
      asked.push_back(config);
    }
    strategy.tell(trials);
  }
  return asked;
}

bool can_walk(std::string_view strategy, const Space& space) {
  return strategy != "exhaustive" || space.enumerable() != nullptr || space.sequential() != nullptr;
}

TEST(Strategies, NeverRepeatNeverIllegalAndReachEverything) {
  for (const NamedSpace& named : spaces()) {
    for (const StrategyEntry& entry : strategies_of_spaces()) {
      SCOPED_TRACE(concat(entry.name, " on ", named.name));
      auto strategy = make(entry.name, *named.space);
      ASSERT_EQ(static_cast<bool>(strategy), can_walk(entry.name, *named.space));
      if (!strategy) {
        EXPECT_EQ(strategy.error().code, ErrorCode::kUnsupported);
        continue;
      }
      Rng rng(5);
      const std::vector<Config> asked = walk(**strategy, rng, 1 + named.count % 9);
      std::unordered_set<Config> distinct(asked.begin(), asked.end());
      EXPECT_EQ(distinct.size(), asked.size());
      EXPECT_EQ(asked.size(), named.count);
      for (const Config& config : asked) {
        EXPECT_TRUE(named.space->why_not(config));
        EXPECT_EQ(named.space->canonical(config), config);
      }
      EXPECT_TRUE((*strategy)->ask(5, rng).empty());
    }
  }
}

TEST(Strategies, SameSeedSameConfigsOtherSeedOthers) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    const auto first = [&](std::uint64_t seed) {
      auto strategy = *make(entry.name, *space);
      Rng rng(seed);
      return walk(*strategy, rng, 8, 64);
    };
    EXPECT_EQ(first(1), first(1)) << entry.name;
    if (entry.name != "exhaustive") {
      EXPECT_NE(first(1), first(2)) << entry.name;
    }
  }
}

TEST(Strategies, SampleSizeLimitsAllButExhaustive) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  for (const StrategyEntry& entry : strategies_of_spaces()) {
    auto strategy = *make(entry.name, *space, 50);
    Rng rng(1);
    const std::size_t asked = walk(*strategy, rng, 7).size();
    EXPECT_EQ(asked, entry.name == "exhaustive" ? space->enumerable()->count() : 50) << entry.name;
  }
}

TEST(Strategies, UnknownNamesAndMissingModelsAreExplained) {
  const RisingSpace space;
  const auto unknown = make("stratfied", space);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("'stratified'"));
  const auto without = create_strategy("model", some_problem(), space, {});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::kInvalidArgument);
  FormulaScorer refusing;
  refusing.refuses = true;
  const auto misfit = create_strategy("model", some_problem(), space, {.scorer = &refusing});
  ASSERT_FALSE(misfit);
  EXPECT_EQ(misfit.error().message, "made for other configs");
}

TEST(Stratified, CoversEveryValueEvenly) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  auto strategy = *make("stratified", *space, 48);
  Rng rng(3);
  const std::vector<Config> asked = walk(*strategy, rng, 48);
  std::vector<std::map<std::int32_t, int>> counts(4);
  std::vector<std::set<std::int32_t>> values(4);
  for (const Config& config : asked) {
    for (std::size_t i = 0; i < 4; ++i) {
      ++counts[i][config.words[i]];
    }
  }
  for (std::uint64_t rank = 0; rank < space->enumerable()->count(); ++rank) {
    for (std::size_t i = 0; i < 4; ++i) {
      values[i].insert(space->enumerable()->unrank(rank).words[i]);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(counts[i].size(), values[i].size()) << "parameter " << i;
    int low = 1000;
    int high = 0;
    for (const auto& [value, count] : counts[i]) {
      low = std::min(low, count);
      high = std::max(high, count);
    }
    EXPECT_LE(high, 2 * low + 2) << "parameter " << i;
  }
  // All values turn up already among the first few.
  std::set<std::int32_t> early;
  for (std::size_t i = 0; i < 8; ++i) {
    early.insert(asked[i].words[0]);
  }
  EXPECT_EQ(early.size(), values[0].size());
}

TEST(Stratified, CoversMorePairsThanRandom) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  const auto pairs = [&](std::string_view name, std::uint64_t seed) {
    auto strategy = *make(name, *space, 36);
    Rng rng(seed);
    std::set<std::tuple<std::size_t, std::size_t, std::int32_t, std::int32_t>> seen;
    for (const Config& config : walk(*strategy, rng, 36)) {
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          seen.emplace(i, j, config.words[i], config.words[j]);
        }
      }
    }
    return seen.size();
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_GT(pairs("stratified", seed), pairs("random", seed)) << seed;
  }
}

// The obviously right greedy choice: evaluates everything before every pick.
TEST(Coverage, LazyPicksEqualEagerOnes) {
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  for (int round = 0; round < 20; ++round) {
    std::vector<Config> candidates;
    std::unordered_set<Config> known;
    for (int i = 0; i < 60; ++i) {
      Config config;
      for (std::uint64_t width = 1 + rng.below(4); width > 0; --width) {
        config.words.push_back(static_cast<std::int32_t>(rng.below(4)));
      }
      if (known.insert(config).second) {
        candidates.push_back(config);
      }
    }
    CoveragePicker lazy(candidates);
    CoveragePicker eager({});
    std::vector<Config> left = candidates;
    while (!left.empty()) {
      const auto best = std::max_element(
          left.begin(), left.end(),
          [&](const Config& a, const Config& b) { return eager.gain(a) < eager.gain(b); });
      const Config expected = std::move(*best);  // outlives the erased one
      left.erase(best);
      eager.count(expected);
      ASSERT_FALSE(lazy.empty());
      EXPECT_EQ(lazy.pick(), expected);
    }
    EXPECT_TRUE(lazy.empty());
  }
}

TEST(Model, AsksBestScoredFirst) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  auto strategy =
      *create_strategy("model", some_problem(), *space, {.scorer = &kScorer, .exploration = 0});
  Rng rng(1);
  const std::vector<Config> asked = walk(*strategy, rng, 10);
  EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end(), [](const Config& a, const Config& b) {
    return formula(a.words.view()) < formula(b.words.view());
  }));
  FormulaScorer broken;
  broken.nan_first = true;
  auto careful = *create_strategy("model", some_problem(), *space, {.scorer = &broken});
  EXPECT_EQ(walk(*careful, rng, 10).size(), asked.size());
}

TEST(Model, ExploresItsShare) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  auto strategy =
      *create_strategy("model", some_problem(), *space, {.scorer = &kScorer, .exploration = 0.25});
  Rng rng(1);
  const std::vector<Config> asked = walk(*strategy, rng, 10, 100);
  EXPECT_EQ(formula(asked[0].words.view()),
            formula(std::min_element(asked.begin(), asked.end(), [](const auto& a, const auto& b) {
                      return formula(a.words.view()) < formula(b.words.view());
                    })->words.view()));
  double highest = 0;
  int jumps = 0;
  for (const Config& config : asked) {
    const double value = formula(config.words.view());
    jumps += value < highest ? 1 : 0;
    highest = std::max(highest, value);
  }
  EXPECT_GT(jumps, 10);
}

TEST(Learning, FindTheOptimumOfASmoothSpaceSoonerThanRandom) {
  const std::unique_ptr<Family> family = *make_null({});
  const std::unique_ptr<Space> space = *family->space(some_problem());
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t rank = 0; rank < space->enumerable()->count(); ++rank) {
    best = std::min(best, null_time_ns(some_problem(), space->enumerable()->unrank(rank)));
  }
  const auto steps_to_best = [&](std::string_view name, std::uint64_t seed) {
    auto strategy = *make(name, *space);
    Rng rng(seed);
    for (std::size_t steps = 1;; ++steps) {
      const std::vector<Config> one = strategy->ask(1, rng);
      if (one.empty()) {
        return std::size_t{100000};
      }
      const double value = null_time_ns(some_problem(), one[0]);
      if (value == best) {
        return steps;
      }
      const Trial trial{.config = one[0], .value = value};
      strategy->tell({&trial, 1});
    }
  };
  const auto steps_of_all = [&](std::string_view name) {
    std::size_t steps = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      steps += steps_to_best(name, seed);
    }
    return steps;
  };
  const std::size_t random = steps_of_all("random");
  EXPECT_LT(3 * steps_of_all("local"), random);
  for (const std::string_view name : {"de", "evolution", "annealing"}) {
    EXPECT_LT(2 * steps_of_all(name), random) << name;
  }
}

TEST(De, ProjectsWhatIsIllegalToLegalNeighbours) {
  // Hardly any difference of two legal configs is legal: p0 and p1 must add up.
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "diagonal";
  definition.schema.parameters = {{"p0", {}}, {"p1", {}}};
  std::vector<std::int32_t> values;
  for (std::int32_t value = 0; value < 100; ++value) {
    values.push_back(value);
  }
  definition.domains = {values, values};
  definition.constraints = {{"p0 + p1 >= 98", "too little"}, {"p0 + p1 <= 99", "too much"}};
  const auto compiled = CompiledSpace::create(definition);
  ASSERT_TRUE(compiled);
  const auto space = ParametricSpace::bind(*compiled, some_problem(), {});
  ASSERT_TRUE(space);
  ASSERT_EQ((*space)->count(), 199U);
  std::size_t de = 0;
  std::size_t random = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::string_view name : {"de", "random"}) {
      auto strategy = *make(name, **space);
      Rng rng(seed);
      double best = std::numeric_limits<double>::infinity();
      std::size_t steps = 0;
      while (best > 0) {
        const std::vector<Config> one = strategy->ask(1, rng);
        ASSERT_EQ(one.size(), 1U);
        const double value = std::abs(one[0].words[0] - 37) + std::abs(one[0].words[1] - 62);
        best = std::min(best, value);
        ++steps;
        const Trial trial{.config = one[0], .value = value};
        strategy->tell({&trial, 1});
      }
      (name == "de" ? de : random) += steps;
    }
  }
  EXPECT_LT(de, random);
}

}  // namespace
}  // namespace foretune
