#include "foretune/environment/canonical_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/loop_samples.h"

namespace foretune::environment {
namespace {

std::string canonical(const loop::Computation& computation, std::string_view schedule) {
  const auto actions = loop::parse_schedule(computation, schedule);
  EXPECT_TRUE(actions) << schedule << ": " << actions.error().message;
  const loop::Nest nest = loop::apply_all(computation, actions.value()).value();
  return loop::to_text(computation, schedule_of(computation, nest));
}

TEST(CanonicalSchedule, IsEmptyForThePlainNest) {
  EXPECT_EQ(canonical(loop::matmul({.m = 8, .n = 8, .k = 8}).value(), ""), "");
}

TEST(CanonicalSchedule, IsTheSameHoweverANestCameAbout) {
  const auto computation = loop::matmul({.m = 64, .n = 64, .k = 64}).value();
  const std::string expected = "split m0 16, split m1 4, swap m2";
  EXPECT_EQ(canonical(computation, "split m0 4, split m0 4, swap m2"), expected);
  EXPECT_EQ(canonical(computation, "split m0 16, split m1 4, swap m2"), expected);
  EXPECT_EQ(canonical(computation, "swap m0, split m0 4, split m0 4, move k0 3, swap m2"),
            expected);
}

TEST(CanonicalSchedule, NamesMarksTheBlockAndPacks) {
  const auto computation = loop::matmul({.m = 64, .n = 64, .k = 64}).value();
  EXPECT_EQ(canonical(computation,
                      "pack b m0, block k0, vectorize n0, split m0 4, parallelize m0, unroll k0"),
            "split m0 4, parallelize m0, unroll k0, vectorize n0, block k0, pack b m0");
}

TEST(CanonicalSchedule, LeadsToTheNestOfAnyActions) {
  constexpr std::uint64_t kSeed = 20240611;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    SCOPED_TRACE(concat("seed ", kSeed + i));
    Rng rng(kSeed + i);
    const loop::Computation computation = loop::random_computation(rng);
    const loop::Nest nest = loop::random_nest(computation, rng, 12);
    const std::vector<loop::Action> actions = schedule_of(computation, nest);
    const auto again = loop::apply_all(computation, actions, {.max_loops = nest.loops.size()});
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*again, nest) << loop::to_text(computation, actions);
  }
}

TEST(CanonicalSchedule, TellsDifferentNestsApart) {
  const auto computation = loop::matmul({.m = 24, .n = 16, .k = 12}).value();
  Rng rng(7);
  std::vector<loop::Nest> nests;
  std::set<std::string> texts;
  for (int i = 0; i < 500; ++i) {
    const loop::Nest nest = loop::random_nest(computation, rng, 6);
    if (std::find(nests.begin(), nests.end(), nest) == nests.end()) {
      nests.push_back(nest);
    }
    texts.insert(loop::to_text(computation, schedule_of(computation, nest)));
  }
  EXPECT_EQ(texts.size(), nests.size());
}

}  // namespace
}  // namespace foretune::environment
