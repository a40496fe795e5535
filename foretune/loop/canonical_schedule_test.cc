#include "foretune/loop/canonical_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop {
namespace {

std::string canonical(const Computation& computation, std::string_view schedule) {
  const auto actions = parse_schedule(computation, schedule);
  EXPECT_TRUE(actions) << schedule << ": " << actions.error().message;
  const Nest nest = apply_all(computation, actions.value()).value();
  return to_text(computation, schedule_of(computation, nest));
}

TEST(CanonicalSchedule, IsEmptyForThePlainNest) {
  EXPECT_EQ(canonical(matmul({.m = 8, .n = 8, .k = 8}).value(), ""), "");
}

TEST(CanonicalSchedule, IsTheSameHoweverANestCameAbout) {
  const auto computation = matmul({.m = 64, .n = 64, .k = 64}).value();
  const std::string expected = "split m0 16, split m1 4, swap m2";
  EXPECT_EQ(canonical(computation, "split m0 4, split m0 4, swap m2"), expected);
  EXPECT_EQ(canonical(computation, "split m0 16, split m1 4, swap m2"), expected);
  EXPECT_EQ(canonical(computation, "swap m0, split m0 4, split m0 4, move k0 3, swap m2"),
            expected);
}

TEST(CanonicalSchedule, NamesMarksTheBlockAndPacks) {
  const auto computation = matmul({.m = 64, .n = 64, .k = 64}).value();
  EXPECT_EQ(canonical(computation,
                      "pack b m0, block k0, vectorize n0, split m0 4, parallelize m0, unroll k0"),
            "split m0 4, parallelize m0, unroll k0, vectorize n0, block k0, pack b m0");
}

TEST(CanonicalSchedule, LeadsToTheNestOfAnyActions) {
  for_random_computations(20240611, 3000, [&](const Computation& computation, Rng& rng) {
    const Nest nest = random_nest(computation, rng, 12);
    const std::vector<Action> actions = schedule_of(computation, nest);
    const auto again = apply_all(computation, actions, {.max_loops = nest.loops.size()});
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*again, nest) << to_text(computation, actions);
  });
}

TEST(CanonicalSchedule, TellsDifferentNestsApart) {
  const auto computation = matmul({.m = 24, .n = 16, .k = 12}).value();
  Rng rng(7);
  std::vector<Nest> nests;
  std::set<std::string> texts;
  for (int i = 0; i < 500; ++i) {
    const Nest nest = random_nest(computation, rng, 6);
    if (std::find(nests.begin(), nests.end(), nest) == nests.end()) {
      nests.push_back(nest);
    }
    texts.insert(to_text(computation, schedule_of(computation, nest)));
  }
  EXPECT_EQ(texts.size(), nests.size());
}

}  // namespace
}  // namespace foretune::loop
