// Random computations and schedules for tests: small, and as odd as the limits allow.
//
//   Rng rng(kSeed);
//   const Computation computation = random_computation(rng);
//   const Nest nest = random_nest(computation, rng, 12);
//
// Thread safety: free functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

inline constexpr double kMaxSamplePoints = 2e5;

namespace samples_internal {

inline bool one_in(Rng& rng, std::uint64_t count) { return rng.below(count) == 0; }

template <class T>
const T& one_of(Rng& rng, std::span<const T> choices) {
  return choices[rng.below(choices.size())];
}

// Returns extents that are mostly short, sometimes 1, and rarely a multiple of anything.
inline std::int64_t random_extent(Rng& rng, std::int64_t longest) {
  return one_in(rng, 8) ? 1 : rng.between(2, one_in(rng, 3) ? 2 * longest : longest);
}

inline Result<Computation> random_matmul(Rng& rng) {
  return matmul({.m = random_extent(rng, 40),
                 .n = random_extent(rng, 40),
                 .k = random_extent(rng, 40),
                 .batch = one_in(rng, 3) ? rng.between(2, 5) : 1,
                 .transpose_a = one_in(rng, 2),
                 .transpose_b = one_in(rng, 2),
                 .epilogue = {.bias = one_in(rng, 2), .relu = one_in(rng, 2)}});
}

inline Result<Computation> random_conv(Rng& rng) {
  ConvSizes sizes;
  sizes.batch = one_in(rng, 3) ? rng.between(2, 3) : 1;
  sizes.groups = one_in(rng, 3) ? rng.between(2, 7) : 1;
  const bool depthwise = sizes.groups > 1 && one_in(rng, 2);
  sizes.channels = sizes.groups * (depthwise ? 1 : random_extent(rng, 5));
  sizes.out_channels = sizes.groups * (depthwise ? rng.between(1, 2) : random_extent(rng, 9));
  sizes.height = random_extent(rng, 12);
  sizes.width = random_extent(rng, 12);
  sizes.kernel_height = rng.between(1, 4);
  sizes.kernel_width = rng.between(1, 4);
  sizes.stride = rng.between(1, 3);
  sizes.dilation = rng.between(1, 2);
  sizes.pad = one_in(rng, 3) ? 0 : rng.between(0, 3);
  sizes.channels_last = one_in(rng, 2);
  sizes.epilogue = {.bias = one_in(rng, 2), .relu = one_in(rng, 2)};
  return conv2d(sizes);
}

inline Result<Computation> random_reduction(Rng& rng) {
  constexpr std::array kReductions = {Op::kAdd, Op::kMax, Op::kMin};
  return reduction(random_extent(rng, 150), random_extent(rng, 150), one_of<Op>(rng, kReductions),
                   one_in(rng, 2));
}

// Returns steps with at most one division, so that no rounding error grows.
inline std::vector<Step> random_steps(Rng& rng, std::size_t count, int first_input, int inputs) {
  constexpr std::array kOps = {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kMax, Op::kMin};
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    Step step{.op = one_of<Op>(rng, kOps)};
    if (inputs > 0 && one_in(rng, 2)) {
      step.input = first_input + static_cast<int>(rng.below(static_cast<std::uint64_t>(inputs)));
    } else {
      step.constant = static_cast<float>(rng.between(-6, 6)) / 2;
    }
    steps.push_back(step);
  }
  if (count > 0 && one_in(rng, 4)) {
    Step& step = steps[rng.below(count)];
    step.op = Op::kDivide;
    step.constant = 3;
  }
  return steps;
}

inline Result<Computation> random_elementwise(Rng& rng) {
  const std::size_t count = rng.below(5);
  return elementwise(random_extent(rng, 90), random_extent(rng, 90),
                     random_steps(rng, count, 1, static_cast<int>(kMaxInputs) - 1));
}

// Adds features that the four kinds lack: other operations, further steps with a residual, gaps
// between the rows of the output.
inline void make_odd(Computation& computation, Rng& rng) {
  constexpr std::array kCombines = {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kMax, Op::kMin};
  constexpr std::array kReductions = {Op::kAdd, Op::kMax, Op::kMin};
  if (one_in(rng, 2)) {
    computation.combine = one_of<Op>(rng, kCombines);
    computation.reduce = one_of<Op>(rng, kReductions);
  }
  if (one_in(rng, 2) && computation.inputs.size() < kMaxInputs) {
    computation.inputs.push_back(computation.output);
    computation.inputs.back().name = "residual";
    const int input = static_cast<int>(computation.inputs.size()) - 1;
    computation.steps = random_steps(rng, 1 + rng.below(3), input, 1);
  }
  if (one_in(rng, 2)) {
    const std::int64_t factor = rng.between(2, 3);
    for (Dimension& dimension : computation.output.dimensions) {
      if (dimension.stride > 1 || one_in(rng, 4)) {
        dimension.stride *= factor;
      }
    }
  }
}

}  // namespace samples_internal

// Orders a product's variables as m, n, k instead of m, k, n.
inline Computation reduction_last(Computation product) {
  std::swap(product.vars[1], product.vars[2]);
  const auto swap_in = [](Tensor& tensor) {
    for (Dimension& dimension : tensor.dimensions) {
      std::swap(dimension.coefficients[1], dimension.coefficients[2]);
    }
  };
  swap_in(product.output);
  for (Tensor& input : product.inputs) {
    swap_in(input);
  }
  return product;
}

// Returns matrix products, convolutions, reductions and chains of elementwise operations of at most
// kMaxSamplePoints points. One in four has a feature that none of these has.
inline Computation random_computation(Rng& rng) {
  while (true) {
    const std::uint64_t kind = rng.below(8);
    auto computation = kind < 3    ? samples_internal::random_matmul(rng)
                       : kind < 6  ? samples_internal::random_conv(rng)
                       : kind == 6 ? samples_internal::random_reduction(rng)
                                   : samples_internal::random_elementwise(rng);
    if (!computation || computation->points() > kMaxSamplePoints) {
      continue;
    }
    if (samples_internal::one_in(rng, 4)) {
      samples_internal::make_odd(*computation, rng);
    }
    const Status status = computation->check();
    FORETUNE_CHECK(status.has_value());
    return *std::move(computation);
  }
}

// Draws actions until `max_actions` of them were legal one after the other, or many were not.
inline std::vector<Action> random_actions(const Computation& computation, Rng& rng,
                                          std::size_t max_actions) {
  constexpr std::array kKinds = {
      ActionKind::kSplit,       ActionKind::kSplit,  ActionKind::kSplit,     ActionKind::kSplit,
      ActionKind::kSwap,        ActionKind::kSwap,   ActionKind::kMove,      ActionKind::kMove,
      ActionKind::kMerge,       ActionKind::kUnroll, ActionKind::kVectorize, ActionKind::kVectorize,
      ActionKind::kParallelize, ActionKind::kPack,   ActionKind::kPack,      ActionKind::kBlock};
  constexpr std::array kFactors = {2, 3, 4, 5, 7, 8, 12, 16, 33};
  std::vector<Action> actions;
  Nest nest = Nest::plain(computation);
  for (std::size_t tries = 0; tries < 8 * max_actions && actions.size() < max_actions; ++tries) {
    Action action;
    action.kind = samples_internal::one_of<ActionKind>(rng, kKinds);
    action.loop = static_cast<std::int32_t>(rng.below(nest.loops.size()));
    if (action.kind == ActionKind::kSplit) {
      action.argument = samples_internal::one_of<int>(rng, kFactors);
    } else if (action.kind == ActionKind::kMove) {
      action.argument = static_cast<std::int32_t>(rng.below(nest.loops.size()));
    } else if (action.kind == ActionKind::kPack) {
      action.argument = static_cast<std::int32_t>(rng.below(computation.inputs.size()));
    }
    if (auto next = apply(computation, nest, action)) {
      nest = *std::move(next);
      actions.push_back(action);
    }
  }
  return actions;
}

inline Nest random_nest(const Computation& computation, Rng& rng, std::size_t max_actions) {
  auto nest = apply_all(computation, random_actions(computation, rng, max_actions));
  FORETUNE_CHECK(nest.has_value());
  return *std::move(nest);
}

// A random schedule need not compile. This removes the obstacles, first the lanes and then the
// block.
inline Result<Kernel> compile_what_fits(const Jit& jit, const Computation& computation, Nest nest) {
  Result<Kernel> kernel = jit.compile(computation, nest);
  if (!kernel) {
    for (Loop& loop : nest.loops) {
      loop.mark = loop.mark == Mark::kVector ? Mark::kNone : loop.mark;
    }
    kernel = jit.compile(computation, nest);
  }
  if (!kernel) {
    nest.block = Nest::kNoBlock;
    kernel = jit.compile(computation, nest);
  }
  return kernel;
}

}  // namespace foretune::loop
