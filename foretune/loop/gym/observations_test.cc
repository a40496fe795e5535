#include "foretune/loop/gym/observations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop::gym {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A is [100][64], B is [64][32], C is [100][32].
loop::Computation odd_product() { return loop::matmul({.m = 100, .n = 32, .k = 64}).value(); }

State parsed_state(const loop::Computation& computation, std::string_view text) {
  return parse_state(computation, text).value();
}

std::vector<float> loops_tensor(const loop::Computation& computation, const State& state,
                                std::size_t loops = kLoopTuneLimits.max_loops) {
  std::vector<float> out(loops * kLoopsTensorColumns, 7);
  write_loops_tensor(computation, state, out);
  return out;
}

std::vector<float> loops_features(const loop::Computation& computation, const State& state,
                                  std::size_t loops = kLoopTuneLimits.max_loops) {
  std::vector<float> out(loops * kLoopFeatureColumns, 7);
  write_loops_features(computation, state, out);
  return out;
}

float feature(const std::vector<float>& features, std::size_t level, std::string_view name) {
  const auto names = loops_feature_names();
  const auto column = std::find(names.begin(), names.end(), name) - names.begin();
  EXPECT_LT(static_cast<std::size_t>(column), names.size()) << name;
  return features.at(level * kLoopFeatureColumns + static_cast<std::size_t>(column));
}

std::array<float, kStrideBins> stride_tensor(const loop::Computation& computation,
                                             const State& state) {
  std::array<float, kStrideBins> out;
  out.fill(7);
  write_stride_tensor(computation, state.nest, out);
  return out;
}

// Returns the first columns and the non-zero bins, as "bin:part".
std::string row_text(const std::vector<float>& tensor, std::size_t level) {
  const auto row = std::span(tensor).subspan(level * kLoopsTensorColumns, kLoopsTensorColumns);
  std::string out = concat(row[0], " ", row[1], " ", row[2], " ", row[3]);
  for (std::size_t bin = 0; bin < kLoopStrideBins; ++bin) {
    if (row[4 + bin] != 0) {
      out += concat(" ", bin, ":", row[4 + bin]);
    }
  }
  return out;
}

TEST(LoopsTensor, HasARowPerLoopFromTheOutside) {
  const auto computation = odd_product();
  const auto tensor = loops_tensor(computation, parsed_state(computation, "split m0 16 @ k0"));
  ASSERT_EQ(tensor.size(), 200U);
  EXPECT_EQ(row_text(tensor, 0), "0 6 4 1 10:1");          // m0: A by 16 rows of 64
  EXPECT_EQ(row_text(tensor, 1), "0 16 0 1 6:1");          // m1: A by a row
  EXPECT_EQ(row_text(tensor, 2), "1 64 0 1 0:0.5 5:0.5");  // k0: A by 1, B by 32
  EXPECT_EQ(row_text(tensor, 3), "0 32 0 1 0:1");          // n0: B by 1
  EXPECT_THAT(std::span(tensor).subspan(4 * kLoopsTensorColumns), Each(0.0F));
}

TEST(LoopsTensor, RoundsLogarithmsUp) {
  const auto computation = loop::matmul({.m = 64, .n = 33, .k = 64}).value();
  const auto tensor = loops_tensor(computation, parsed_state(computation, "split k0 3 @ m0"));
  EXPECT_EQ(row_text(tensor, 1), "0 21 1 1 2:0.5 7:0.5");  // A by 3, B by 3 * 33 = 99
}

TEST(LoopsTensor, PutsLargeStridesIntoTheLastBin) {
  const auto computation = loop::matmul({.m = 16, .n = 4, .k = 1 << 20}).value();
  const auto tensor = loops_tensor(computation, State::start(computation));
  EXPECT_EQ(row_text(tensor, 0), "1 16 0 1 15:1");
}

TEST(LoopsTensor, ShowsTheOutermostLoopsWhereThereIsRoomForFewer) {
  const auto computation = odd_product();
  const State state = parsed_state(computation, "split m0 16 @ k0");
  const auto all = loops_tensor(computation, state);
  const auto two = loops_tensor(computation, state, 2);
  EXPECT_TRUE(std::equal(two.begin(), two.end(), all.begin()));
}

TEST(LoopsTensor, HasPartsOfOneInEveryLoopThatMovesAnInput) {
  loop::for_random_computations(313, 500, [&](const loop::Computation& computation, Rng& rng) {
    const State state{.nest = loop::random_nest(computation, rng, 8)};
    const auto tensor = loops_tensor(computation, state, state.nest.loops.size());
    for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
      const auto row = std::span(tensor).subspan(level * kLoopsTensorColumns, kLoopsTensorColumns);
      const std::size_t var = state.nest.loops[level].var;
      const bool moves =
          std::any_of(computation.inputs.begin(), computation.inputs.end(),
                      [&](const loop::Tensor& input) { return input.stride_of(var) != 0; });
      float sum = 0;
      for (const float part : row.subspan(4)) {
        sum += part;
      }
      ASSERT_NEAR(sum, moves ? 1 : 0, 1e-6);
      const auto step = static_cast<float>(state.nest.loops[level].step);
      ASSERT_EQ(row[1] * step + row[2], static_cast<float>(state.nest.covers(computation, level)));
      ASSERT_EQ(row[0], level == 0 ? 1 : 0);
    }
  });
}

TEST(LoopsFeatures, HaveNamesThatDiffer) {
  const auto names = loops_feature_names();
  EXPECT_EQ(names.size(), kLoopFeatureColumns);
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
}

TEST(LoopsFeatures, TellWhatALoopIs) {
  const auto computation = odd_product();
  const auto features = loops_features(
      computation, parsed_state(computation,
                                "split m0 16, parallelize m0, unroll m1, vectorize n0, block m1, "
                                "pack b m1, pack a m1 @ k0"));
  const auto column = [&](std::string_view name) {
    return std::vector<float>{feature(features, 0, name), feature(features, 1, name),
                              feature(features, 2, name), feature(features, 3, name),
                              feature(features, 4, name)};
  };
  EXPECT_THAT(column("is_loop"), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(column("cursor"), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(column("is_reduction"), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(column("unroll"), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(column("vector"), ElementsAre(0, 0, 0, 1, 0));
  EXPECT_THAT(column("parallel"), ElementsAre(1, 0, 0, 0, 0));
  EXPECT_THAT(column("starts_block"), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(column("packs"), ElementsAre(0, 2, 0, 0, 0));
  EXPECT_THAT(column("loops_around"), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_FLOAT_EQ(feature(features, 0, "log2_rounds"), std::log2(7.0F));
  EXPECT_THAT(column("log2_step"), ElementsAre(4, 0, 0, 0, 0));
  EXPECT_THAT(column("remainder"), ElementsAre(0.25, 0, 0, 0, 0));
}

TEST(LoopsFeatures, TellHowTensorsMoveAndWhatOfThemIsTouched) {
  const auto computation = odd_product();
  const auto features = loops_features(computation, parsed_state(computation, "split m0 16 @ m0"));
  const auto column = [&](std::string_view name) {
    return std::vector<float>{feature(features, 0, name), feature(features, 1, name),
                              feature(features, 2, name), feature(features, 3, name)};
  };
  // m0, m1, k0, n0
  EXPECT_THAT(column("output_is_still"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(column("output_log2_stride"), ElementsAre(9, 5, 0, 0));
  EXPECT_THAT(column("input0_is_still"), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(column("input0_log2_stride"), ElementsAre(10, 6, 0, 0));
  EXPECT_THAT(column("input1_is_still"), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(column("input1_log2_stride"), ElementsAre(0, 0, 5, 0));
  const float whole_a = std::log2(4.0F * 100 * 64);
  const float whole_c = std::log2(4.0F * 100 * 32);
  EXPECT_THAT(column("output_log2_bytes"), ElementsAre(whole_c, 11, 7, 7));
  EXPECT_THAT(column("input0_log2_bytes"), ElementsAre(whole_a, 12, 8, 2));
  EXPECT_THAT(column("input1_log2_bytes"), ElementsAre(13, 13, 13, 7));
}

TEST(LoopsFeatures, LeaveOutAnInputThatIsNotThere) {
  const auto computation = loop::reduction(16, 32, loop::Op::kAdd, false).value();
  const auto features = loops_features(computation, State::start(computation));
  for (const std::size_t level : {0U, 1U}) {
    EXPECT_EQ(feature(features, level, "is_loop"), 1);
    EXPECT_GE(feature(features, level, "input0_log2_bytes"), 2);
    EXPECT_EQ(feature(features, level, "input1_is_still"), 0);
    EXPECT_EQ(feature(features, level, "input1_log2_stride"), 0);
    EXPECT_EQ(feature(features, level, "input1_log2_bytes"), 0);
  }
}

// Counts the elements that a loop touches by visiting all of them, where no padding cuts any off.
std::size_t visited(const loop::Computation& computation, const loop::Nest& nest, std::size_t level,
                    const loop::Tensor& tensor) {
  std::vector<std::int64_t> extents(computation.vars.size(), 1);
  for (std::size_t i = nest.loops.size(); i-- > level;) {
    extents[nest.loops[i].var] = nest.covers(computation, i);
  }
  std::set<std::int64_t> places;
  std::vector<std::int64_t> point(extents.size(), 0);
  while (true) {
    std::int64_t place = 0;
    for (std::size_t v = 0; v < point.size(); ++v) {
      place += point[v] * tensor.stride_of(v);
    }
    places.insert(place);
    std::size_t v = 0;
    while (v < point.size() && ++point[v] == extents[v]) {
      point[v++] = 0;
    }
    if (v == point.size()) {
      return places.size();
    }
  }
}

TEST(LoopsFeatures, CountTheBytesThatAProductOrAConvolutionTouches) {
  const std::vector<loop::Computation> computations = {
      loop::matmul({.m = 12, .n = 10, .k = 9, .batch = 2, .transpose_a = true}).value(),
      loop::conv2d({.channels = 3,
                    .out_channels = 4,
                    .height = 9,
                    .width = 8,
                    .kernel_height = 3,
                    .kernel_width = 2})
          .value(),
      loop::conv2d({.channels = 2,
                    .out_channels = 2,
                    .height = 9,
                    .width = 9,
                    .kernel_height = 1,
                    .kernel_width = 2,
                    .stride = 3})
          .value()};
  constexpr std::uint64_t kSeed = 505;
  for (const loop::Computation& computation : computations) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      SCOPED_TRACE(concat(computation.name, ", seed ", kSeed + i));
      Rng rng(kSeed + i);
      const State state{.nest = loop::random_nest(computation, rng, 6)};
      const auto features = loops_features(computation, state, state.nest.loops.size());
      for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
        const auto bytes = [&](const loop::Tensor& tensor) {
          return std::log2(4 * static_cast<float>(visited(computation, state.nest, level, tensor)));
        };
        ASSERT_FLOAT_EQ(feature(features, level, "output_log2_bytes"), bytes(computation.output));
        ASSERT_FLOAT_EQ(feature(features, level, "input0_log2_bytes"),
                        bytes(computation.inputs[0]));
        ASSERT_FLOAT_EQ(feature(features, level, "input1_log2_bytes"),
                        bytes(computation.inputs[1]));
      }
    }
  }
}

TEST(LoopsFeatures, AreFiniteForEverySchedule) {
  loop::for_random_computations(616, 1000, [&](const loop::Computation& computation, Rng& rng) {
    const State state{.nest = loop::random_nest(computation, rng, 8)};
    for (const float value : loops_features(computation, state, 12)) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 40);
    }
  });
}

TEST(StrideTensor, CountsLoopsAndTheTensorsTheyMove) {
  const auto computation = odd_product();
  const auto tensor = stride_tensor(computation, State::start(computation));
  // m0: A 64, C 32; k0: A 1, B 32; n0: B 1, C 1
  EXPECT_FLOAT_EQ(tensor[0], 3.0F / 6);
  EXPECT_FLOAT_EQ(tensor[5], 2.0F / 6);
  EXPECT_FLOAT_EQ(tensor[6], 1.0F / 6);
  EXPECT_THAT(std::span(tensor).subspan(7), Each(0.0F));
}

TEST(StrideTensor, HasPartsOfOne) {
  loop::for_random_computations(717, 300, [&](const loop::Computation& computation, Rng& rng) {
    const auto tensor =
        stride_tensor(computation, State{.nest = loop::random_nest(computation, rng, 8)});
    float sum = 0;
    for (const float part : tensor) {
      sum += part;
    }
    ASSERT_NEAR(sum, 1, 1e-6);
  });
}

TEST(PreviousActions, AreTheLastOnesOldestFirst) {
  const ActionSet actions = ActionSet::parse("up,down,stop").value();
  const auto written = [&](std::string_view taken) {
    std::vector<float> out(2 * actions.size(), 7);
    write_previous_actions(actions, parse_actions(taken).value(), out);
    return out;
  };
  EXPECT_THAT(written(""), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(written("down"), ElementsAre(0, 0, 0, 0, 1, 0));
  EXPECT_THAT(written("up,down"), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(written("up,down,stop"), ElementsAre(0, 1, 0, 0, 0, 1));
  // An action outside of the set has an empty row.
  EXPECT_THAT(written("merge,up"), ElementsAre(0, 0, 0, 1, 0, 0));
}

}  // namespace
}  // namespace foretune::loop::gym
