#include "foretune/space/parametric_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/testing/random_expression.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return GemmProblem::create({.m = m, .n = n, .k = k}).value().to_problem();
}

std::shared_ptr<const CompiledSpace> compile(SpaceDefinition definition) {
  auto compiled = CompiledSpace::create(std::move(definition));
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  return compiled ? *compiled : nullptr;
}

std::unique_ptr<ParametricSpace> bound_to(const std::shared_ptr<const CompiledSpace>& compiled,
                                          const Problem& problem, const Hardware& hardware = {}) {
  auto bound = ParametricSpace::bind(compiled, problem, hardware);
  EXPECT_TRUE(bound) << (bound ? "" : bound.error().message);
  return bound ? *std::move(bound) : nullptr;
}

std::vector<std::string> texts(const Space& space, const std::vector<Config>& configs) {
  std::vector<std::string> out;
  for (const Config& config : configs) {
    out.push_back(to_text(space.schema(), config));
  }
  return out;
}

std::vector<Config> listed(const ParametricSpace& space) {
  std::vector<Config> out;
  for (std::uint64_t i = 0; i < space.count(); ++i) {
    out.push_back(space.unrank(i));
  }
  return out;
}

SpaceDefinition tiles() {
  return {.schema = {.name = "tiles",
                     .version = 1,
                     .kind = SchemaKind::kParametric,
                     .parameters = {{"mr", {}}, {"mc", {}}, {"pack", {"no", "yes"}}}},
          .problem_type = kGemmProblem,
          .domains = {{4, 8, 16}, {32, 64, 128}, {0, 1}},
          .constraints = {{"mr <= m", "the block is higher than C"},
                          {"pack == pack.no || n >= 64", "packing does not pay"}},
          .canonical = {{"mc", "min(mc, round_up(m, mr))"}}};
}

TEST(ParametricSpace, ListsLegalCanonicalConfigsInOrder) {
  const auto compiled = compile(tiles());
  const auto space = bound_to(compiled, gemm(50, 32, 8));
  EXPECT_THAT(texts(*space, listed(*space)),
              ElementsAre("mr=4 mc=32 pack=no", "mr=4 mc=64 pack=no", "mr=8 mc=32 pack=no",
                          "mr=8 mc=64 pack=no", "mr=16 mc=32 pack=no", "mr=16 mc=64 pack=no"));
  EXPECT_EQ(space->enumerable(), space.get());
  EXPECT_EQ(space->sequential(), nullptr);
  EXPECT_EQ(bound_to(compiled, gemm(500, 64, 8))->count(), 18U);
  EXPECT_EQ(bound_to(compiled, gemm(5, 64, 8))->count(), 2U);
}

TEST(ParametricSpace, CanonicalValuesBetweenThoseOfTheDomainBecomeTheNextHigher) {
  const auto space = bound_to(compile(tiles()), gemm(50, 32, 8));
  const auto canonical = [&](std::string_view text) {
    return to_text(space->schema(), space->canonical(parse_config(space->schema(), text).value()));
  };
  EXPECT_EQ(canonical("mr=4 mc=128 pack=no"), "mr=4 mc=64 pack=no");  // 52 is between 32 and 64
  EXPECT_EQ(canonical("mr=4 mc=32 pack=no"), "mr=4 mc=32 pack=no");
}

TEST(ParametricSpace, WhyNotNamesTheRuleAndItsValues) {
  const auto space = bound_to(compile(tiles()), gemm(10, 32, 8));
  const auto reason = [&](std::string_view text) {
    const Support support = space->why_not(parse_config(space->schema(), text).value());
    EXPECT_FALSE(support) << text;
    return support.reason();
  };
  EXPECT_EQ(reason("mr=16 mc=32 pack=no"),
            "the block is higher than C (mr <= m does not hold with mr=16 m=10)");
  EXPECT_EQ(reason("mr=4 mc=32 pack=yes"),
            "packing does not pay (pack == pack.no || n >= 64 does not hold with pack=yes n=32)");
  EXPECT_EQ(reason("mr=5 mc=32 pack=no"), "mr=5 is not one of its values: 4 8 16");
  EXPECT_TRUE(space->why_not(parse_config(space->schema(), "mr=4 mc=128 pack=no").value()))
      << "legal, though not canonical";
  Config foreign = space->unrank(0);
  foreign.schema ^= 1;
  EXPECT_EQ(space->why_not(foreign).reason(), "the config is not of schema tiles v1");
  Config longer = space->unrank(0);
  longer.words.push_back(1);
  EXPECT_FALSE(space->why_not(longer));
  Config label = space->unrank(0);
  label.words[2] = 2;
  EXPECT_EQ(space->why_not(label).reason(), "pack has no label number 2");
}

TEST(ParametricSpace, NeighboursChangeOneParameterToTheNextLegalValue) {
  SpaceDefinition definition = tiles();
  definition.schema.parameters.push_back({"split", {"m", "n", "batch"}});
  definition.domains.push_back({0, 1, 2});
  definition.constraints.push_back({"mr != 8 || pack == pack.yes", "mr=8 wants packing"});
  const auto space = bound_to(compile(definition), gemm(1000, 1000, 8));
  const Config config = parse_config(space->schema(), "mr=4 mc=64 pack=no split=n").value();
  EXPECT_THAT(texts(*space, space->neighbours(config)),
              ElementsAre("mr=16 mc=64 pack=no split=n",  // 8 is not legal and is stepped over
                          "mr=4 mc=32 pack=no split=n", "mr=4 mc=128 pack=no split=n",
                          "mr=4 mc=64 pack=yes split=n", "mr=4 mc=64 pack=no split=m",
                          "mr=4 mc=64 pack=no split=batch"));
  const Config illegal = parse_config(space->schema(), "mr=8 mc=64 pack=no split=n").value();
  EXPECT_TRUE(space->neighbours(illegal).empty());
}

TEST(ParametricSpace, AConfigWhoseRepresentativeIsIllegalIsItsOwn) {
  SpaceDefinition definition = tiles();
  definition.constraints.push_back({"mc >= 128", "small blocks are forbidden"});
  const auto space = bound_to(compile(definition), gemm(50, 32, 8));
  EXPECT_EQ(space->count(), 3U);
  for (const Config& config : listed(*space)) {
    EXPECT_EQ(config.words[1], 128);
    EXPECT_EQ(space->canonical(config), config);
  }
}

TEST(ParametricSpace, RulesThatContradictEachOtherChangeNothing) {
  SpaceDefinition definition = tiles();
  definition.canonical = {{"pack", "!pack"}};
  const auto space = bound_to(compile(definition), gemm(1000, 1000, 8));
  EXPECT_EQ(space->count(), 18U);
  // These rules settle after several rounds.
  definition.canonical = {{"mr", "mc / 8"}, {"mc", "select(pack, 64, mc)"}};
  const auto chain = bound_to(compile(definition), gemm(1000, 1000, 8));
  const Config config = parse_config(chain->schema(), "mr=4 mc=128 pack=yes").value();
  EXPECT_EQ(to_text(chain->schema(), chain->canonical(config)), "mr=8 mc=64 pack=yes");
}

TEST(ParametricSpace, SamplesEveryConfigEquallyOften) {
  const auto space = bound_to(compile(tiles()), gemm(50, 32, 8));
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  std::map<Config, int> counts;
  for (int i = 0; i < 6000; ++i) {
    ++counts[space->sample(rng).value()];
  }
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [config, count] : counts) {
    EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000.0 * 5 / 6));
  }
}

TEST(ParametricSpace, AnEmptySpaceSaysSo) {
  SpaceDefinition definition = tiles();
  definition.constraints.push_back({"0", "never"});
  const auto space = bound_to(compile(definition), gemm(50, 32, 8));
  EXPECT_EQ(space->count(), 0U);
  Rng rng(1);
  EXPECT_EQ(space->sample(rng).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(space->sample(rng).error().message, HasSubstr("gemm op=mm m=50"));
}

TEST(ParametricSpace, HardwareDecidesToo) {
  SpaceDefinition definition = tiles();
  definition.constraints.push_back({"hw.l2_bytes == 0 || mc * 1024 <= hw.l2_bytes", "too large"});
  const auto compiled = compile(definition);
  Hardware small;
  small.set(HardwareValue::kL2Bytes, 64 * 1024);
  EXPECT_EQ(bound_to(compiled, gemm(1000, 1000, 8))->count(), 18U);
  EXPECT_EQ(bound_to(compiled, gemm(1000, 1000, 8), small)->count(), 12U);
}

TEST(ParametricSpace, SpacesKnownByConstraintsOnlyCheckButDoNotList) {
  SpaceDefinition definition = tiles();
  definition.domains.clear();
  const auto compiled = compile(definition);
  const auto bound = ParametricSpace::bind(compiled, gemm(8, 8, 8), {});
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, HasSubstr("no values to choose from"));
  const Config config{compiled->schema_id(), {7, 99, 0}};
  EXPECT_TRUE(compiled->why_not(config, gemm(8, 8, 8), {}));
  EXPECT_FALSE(compiled->why_not(config, gemm(6, 8, 8), {}));
  EXPECT_EQ(compiled->canonical(config, gemm(8, 8, 8), {}).words, (Config::Words{7, 14, 0}));
}

// ---- spaces too large to be listed --------------------------------------------------------------

// Returns a space of `parameters` numbers with `values` values each: 0, 1, 2, ...
SpaceDefinition grid(std::size_t parameters, std::int32_t values) {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "grid";
  for (std::size_t i = 0; i < parameters; ++i) {
    definition.schema.parameters.push_back({concat("p", i), {}});
    definition.domains.emplace_back();
    for (std::int32_t value = 0; value < values; ++value) {
      definition.domains.back().push_back(value);
    }
  }
  return definition;
}

TEST(UnlistedSpace, IsWhatWouldTakeTooLongToList) {
  const auto has_list = [](SpaceDefinition definition) {
    return bound_to(compile(std::move(definition)), gemm(8, 8, 8))->enumerable() != nullptr;
  };
  EXPECT_TRUE(has_list(grid(5, 8)));
  EXPECT_FALSE(has_list(grid(64, 64)));
  EXPECT_FALSE(has_list(grid(10, 8)));
  EXPECT_FALSE(has_list(grid(8, 8)));
  // This space has far too many combinations, but few enough are legal.
  SpaceDefinition few = grid(14, 8);
  for (int i = 5; i < 14; ++i) {
    few.constraints.push_back({concat("p", i, " == p", i - 5), "not the same"});
  }
  EXPECT_TRUE(has_list(few));
  // No config is legal, but only the last of very many steps shows it: the rule needs all values.
  SpaceDefinition nothing = grid(12, 8);
  std::string sum = "p0";
  for (int i = 1; i < 12; ++i) {
    sum += concat(" + p", i);
  }
  nothing.constraints = {{concat(sum, " < 0"), "never"}};
  const auto late = bound_to(compile(nothing), gemm(8, 8, 8));
  EXPECT_EQ(late->enumerable(), nullptr);
  Rng rng(1);
  const Result<Config> none = late->sample(rng);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("no config of grid, a space too large to be listed"));
  // A rule of one parameter is checked at once, whichever it is, and makes the same result cheap.
  nothing.constraints = {{"p11 < 0", "never"}};
  EXPECT_EQ(bound_to(compile(nothing), gemm(8, 8, 8))->count(), 0U);
}

TEST(UnlistedSpaceDeathTest, HasNoRanks) {
  const auto space = bound_to(compile(grid(10, 8)), gemm(8, 8, 8));
  EXPECT_DEATH((void)space->count(), "legal_");
  EXPECT_DEATH((void)space->unrank(0), "legal_");
}

TEST(UnlistedSpace, DrawsLegalCanonicalConfigsAllEquallyLikely) {
  // p9 counts only up to p8, so half of its values mean the same as another value.
  SpaceDefinition definition = grid(10, 8);
  definition.constraints = {{"p0 + p1 <= 7", "too much"}};
  definition.canonical = {{"p9", "min(p9, p8)"}};
  const auto space = bound_to(compile(definition), gemm(8, 8, 8));
  ASSERT_EQ(space->enumerable(), nullptr);
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed);
  Rng again(kSeed);
  std::vector<double> p0(8);
  std::vector<double> p8(8);
  std::set<Config> distinct;
  constexpr int kDraws = 7200;
  for (int i = 0; i < kDraws; ++i) {
    const Config config = space->sample(rng).value();
    EXPECT_EQ(config, space->sample(again).value());
    ASSERT_TRUE(space->why_not(config));
    ASSERT_EQ(space->canonical(config), config);
    distinct.insert(config);
    ++p0[static_cast<std::size_t>(config.words[0])];
    ++p8[static_cast<std::size_t>(config.words[8])];
  }
  EXPECT_GT(distinct.size(), kDraws - 10);
  for (std::size_t value = 0; value < 8; ++value) {
    // 8 - p0 of 36 pairs have this p0; p8 + 1 of 36 pairs have this p8.
    const double with_p0 = kDraws / 36.0 * static_cast<double>(8 - value);
    const double with_p8 = kDraws / 36.0 * static_cast<double>(value + 1);
    EXPECT_NEAR(p0[value], with_p0, 6 * std::sqrt(with_p0)) << value;
    EXPECT_NEAR(p8[value], with_p8, 6 * std::sqrt(with_p8)) << value;
  }
}

TEST(UnlistedSpace, FindsTheFewLegalConfigsAmongMany) {
  // One combination in 2^40 is legal; 2^35 combinations are.
  SpaceDefinition definition = grid(15, 32);
  for (int i = 6; i < 14; ++i) {
    definition.constraints.push_back({concat("p", i, " == p", i - 6), "not a pair"});
  }
  definition.canonical = {{"p14", "min(p14, 3)"}};
  const auto space = bound_to(compile(definition), gemm(8, 8, 8));
  ASSERT_EQ(space->enumerable(), nullptr);
  Rng rng(3);
  std::set<Config> distinct;
  for (int i = 0; i < 200; ++i) {
    const Config config = space->sample(rng).value();
    ASSERT_TRUE(space->why_not(config));
    ASSERT_EQ(space->canonical(config), config);
    distinct.insert(config);
  }
  EXPECT_EQ(distinct.size(), 200U);
}

TEST(UnlistedSpace, NeighboursAreThoseOfAListedOne) {
  const auto space = bound_to(compile(grid(10, 8)), gemm(8, 8, 8));
  const Config config{space->schema().id(), {0, 1, 2, 3, 4, 5, 6, 7, 0, 1}};
  const std::vector<Config> neighbours = space->neighbours(config);
  EXPECT_EQ(neighbours.size(), 17U);  // three stand at an end
  for (const Config& neighbour : neighbours) {
    int steps = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      steps += std::abs(neighbour.words[i] - config.words[i]);
    }
    EXPECT_EQ(steps, 1);
  }
}

// ---- against brute force ----------------------------------------------------------------------

// A random definition with the tree from which each of its expressions came.
struct RandomSpace {
  SpaceDefinition definition{.problem_type = kGemmProblem};
  std::vector<RandomExpression> constraints;
  std::vector<std::pair<std::size_t, RandomExpression>> canonical;
  Problem problem = gemm(1, 1, 1);
  Hardware hardware;

  [[nodiscard]] RandomExpression::Inputs inputs(const std::vector<std::int32_t>& words) const {
    return {words, problem.fields(), hardware};
  }
};

RandomSpace draw_space(Rng& rng) {
  RandomSpace out;
  out.problem = gemm(rng.between(1, 40), rng.between(1, 40), rng.between(1, 40));
  out.hardware.set(HardwareValue::kCores, static_cast<double>(rng.below(4)));
  const std::size_t count = 1 + rng.below(4);
  SpaceDefinition& definition = out.definition;
  definition.schema.name = "random";
  for (std::size_t i = 0; i < count; ++i) {
    const bool labelled = rng.below(3) == 0;
    Parameter parameter{.name = concat("p", i), .labels = {}};
    std::set<std::int32_t> domain;
    const std::uint64_t values = 1 + rng.below(5);
    for (std::uint64_t v = 0; v < values; ++v) {
      domain.insert(labelled ? static_cast<std::int32_t>(v)
                             : static_cast<std::int32_t>(rng.between(-2, 40)));
      if (labelled) {
        parameter.labels.push_back(concat("v", v));
      }
    }
    definition.schema.parameters.push_back(std::move(parameter));
    definition.domains.emplace_back(domain.begin(), domain.end());
  }
  const ProblemSchema& problem = *find_problem_schema(kGemmProblem);
  for (std::uint64_t i = rng.below(4); i > 0; --i) {
    out.constraints.push_back(
        RandomExpression::draw(definition.schema, problem, rng.below(count + 1), 3, rng));
    definition.constraints.push_back({out.constraints.back().text(rng), concat("reason ", i)});
  }
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    const std::size_t parameter = rng.below(count);
    out.canonical.emplace_back(parameter,
                               RandomExpression::draw(definition.schema, problem, count, 2, rng));
    definition.canonical.emplace_back(definition.schema.parameters[parameter].name,
                                      out.canonical.back().second.text(rng));
  }
  return out;
}

// Implements the space again, as plainly and slowly as possible.
class BruteForce {
 public:
  using Words = std::vector<std::int32_t>;
  explicit BruteForce(const RandomSpace& space) : space_(space) {
    all_ = {{}};
    for (const auto& domain : space.definition.domains) {
      std::vector<Words> longer;
      for (const Words& words : all_) {
        for (const std::int32_t value : domain) {
          longer.push_back(words);
          longer.back().push_back(value);
        }
      }
      all_ = std::move(longer);
    }
  }

  const std::vector<Words>& all() const { return all_; }

  bool legal(const Words& words) const {
    return std::all_of(space_.constraints.begin(), space_.constraints.end(),
                       [&](const auto& tree) { return tree.evaluate(space_.inputs(words)) != 0; });
  }

  Words canonical(const Words& words) const {
    Words now = words;
    for (int round = 0; round < 16; ++round) {
      const Words before = now;
      for (const auto& [parameter, tree] : space_.canonical) {
        now[parameter] = snapped(parameter, tree.evaluate(space_.inputs(now)));
      }
      if (now == before) {
        return legal(words) && !legal(now) ? words : now;
      }
    }
    return words;
  }

  std::vector<Words> list() const {
    std::vector<Words> out;
    for (const Words& words : all_) {
      if (legal(words) && canonical(words) == words) {
        out.push_back(words);
      }
    }
    return out;
  }

  std::set<Words> neighbours(const Words& words) const {
    std::set<Words> out;
    const Words here = canonical(words);
    for (std::size_t i = 0; i < here.size(); ++i) {
      const bool labelled = !space_.definition.schema.parameters[i].labels.empty();
      // The legal moves of this parameter, by value.
      std::map<std::int32_t, Words> moves;
      for (const std::int32_t value : space_.definition.domains[i]) {
        Words moved = here;
        moved[i] = value;
        moved = canonical(moved);
        if (value != here[i] && moved != here && legal(moved)) {
          moves[value] = moved;
        }
      }
      const auto above = moves.lower_bound(here[i]);
      for (auto move = moves.begin(); move != moves.end(); ++move) {
        if (labelled || move == above || std::next(move) == above) {
          out.insert(move->second);
        }
      }
    }
    return out;
  }

 private:
  std::int32_t snapped(std::size_t parameter, std::int64_t wanted) const {
    for (const std::int32_t value : space_.definition.domains[parameter]) {
      if (value >= wanted) {
        return value;
      }
    }
    return space_.definition.domains[parameter].back();
  }

  const RandomSpace& space_;
  std::vector<Words> all_;
};

std::vector<std::int32_t> words_of(const Config& config) {
  return {config.words.begin(), config.words.end()};
}

TEST(ParametricSpaceDifferential, EqualsBruteForceOnRandomDefinitions) {
  std::size_t configs = 0;
  std::size_t shortened = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Rng rng(seed);
    const RandomSpace random = draw_space(rng);
    const BruteForce expected(random);
    const auto compiled = compile(random.definition);
    ASSERT_NE(compiled, nullptr);
    const auto space = bound_to(compiled, random.problem, random.hardware);
    ASSERT_NE(space, nullptr);

    std::vector<std::vector<std::int32_t>> actual;
    for (const Config& config : listed(*space)) {
      actual.push_back(words_of(config));
    }
    ASSERT_EQ(actual, expected.list());
    configs += actual.size();
    const std::set<std::vector<std::int32_t>> members(actual.begin(), actual.end());

    for (const std::vector<std::int32_t>& words : expected.all()) {
      const Config config{compiled->schema_id(), Config::Words(std::span(words))};
      const bool legal = expected.legal(words);
      const Support support = space->why_not(config);
      ASSERT_EQ(static_cast<bool>(support), legal);
      ASSERT_EQ(support.reason().empty(), legal);
      ASSERT_EQ(compiled->is_legal(words, random.problem.fields(), random.hardware), legal);
      ASSERT_EQ(compiled->is_legal_config(words, random.hardware) &&
                    compiled->is_legal_for_problem(words, random.problem.fields(), random.hardware),
                legal);
      const Config canonical = space->canonical(config);
      ASSERT_EQ(words_of(canonical), expected.canonical(words));
      ASSERT_EQ(space->canonical(canonical), canonical);
      if (legal) {
        // The interface promises that legal configs stay legal and that every representative is
        // listed.
        ASSERT_EQ(members.count(words_of(canonical)), 1U);
        shortened += canonical != config ? 1 : 0;
      }
    }
  }
  EXPECT_GT(configs, 5000U);
  EXPECT_GT(shortened, 1000U);
}

TEST(ParametricSpaceDifferential, NeighboursEqualBruteForce) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Rng rng(seed);
    const RandomSpace random = draw_space(rng);
    const BruteForce expected(random);
    const auto space = bound_to(compile(random.definition), random.problem, random.hardware);
    ASSERT_NE(space, nullptr);
    for (const std::vector<std::int32_t>& words : expected.all()) {
      const Config config{space->schema().id(), Config::Words(std::span(words))};
      std::set<std::vector<std::int32_t>> actual;
      const std::vector<Config> neighbours = space->neighbours(config);
      for (const Config& neighbour : neighbours) {
        actual.insert(words_of(neighbour));
      }
      ASSERT_EQ(actual.size(), neighbours.size()) << "distinct";
      ASSERT_EQ(actual, expected.legal(words) ? expected.neighbours(words)
                                              : std::set<std::vector<std::int32_t>>());
      found += actual.size();
    }
  }
  EXPECT_GT(found, 5000U);
}

TEST(ParametricSpaceDifferential, DefinitionsSurviveTheirTextForm) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Rng rng(seed);
    const RandomSpace random = draw_space(rng);
    const Result<SpaceDefinition> back = SpaceDefinition::parse(random.definition.text());
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(*back, random.definition);
    const auto original = bound_to(compile(random.definition), random.problem, random.hardware);
    const auto copy = bound_to(compile(*back), random.problem, random.hardware);
    ASSERT_EQ(listed(*copy), listed(*original));
  }
}

TEST(CompiledSpace, NamesTheFirstBrokenConstraint) {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "two-rules";
  definition.schema.parameters = {{"a", {}}, {"b", {}}};
  definition.domains = {{1, 2, 3}, {1, 2, 3}};
  definition.constraints = {{"a <= m", "too tall"}, {"a + b <= 4", "too much"}};
  const auto space = CompiledSpace::create(definition);
  ASSERT_TRUE(space.has_value());
  const Problem problem = GemmProblem::create({.m = 2, .n = 2, .k = 2})->to_problem();
  const auto broken = [&](std::int32_t a, std::int32_t b) {
    const std::vector<std::int32_t> words{a, b};
    return (*space)->broken_constraint(words, problem.fields(), {});
  };
  EXPECT_EQ(broken(1, 1), std::nullopt);
  EXPECT_EQ(broken(3, 1), 0U);
  EXPECT_EQ(broken(2, 3), 1U);
  // Rules on configs alone come first, as in why_not().
  EXPECT_EQ(broken(3, 3), 1U);
  const Config both{(*space)->schema_id(), {3, 3}};
  EXPECT_TRUE((*space)->why_not(both, problem, {}).reason().starts_with("too much"));
}

}  // namespace
}  // namespace foretune
