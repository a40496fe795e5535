// The templates of the kernels for narrow groups, under the rules of micro_kernel_inl.h.
// Thread safety: free functions.
#pragma once

#include <type_traits>
#include <utility>

#include "foretune/kernels/group_kernel.h"
#include "foretune/kernels/internal/micro_kernel_inl.h"

namespace foretune {
namespace {

// Calls a body for each input point of a block, which it knows when it is compiled. Compilers do
// not unroll loops whose bodies are skipped.
template <class Body, int... kPoints>
FORETUNE_KERNEL_INLINE inline void for_each_point(std::integer_sequence<int, kPoints...> /*points*/,
                                                  const Body& body) {
  (body(std::integral_constant<int, kPoints>()), ...);
}
template <int kCount, class Body>
FORETUNE_KERNEL_INLINE inline void for_each_point(const Body& body) {
  for_each_point(std::make_integer_sequence<int, kCount>(), body);
}

// Takes the place of a gather's indices where nothing is gathered.
alignas(64) constexpr std::int32_t kNoGather[16] = {};  // NOLINT(modernize-avoid-c-arrays)

// Returns the lanes of an input that those of the output multiply.
template <class Isa, bool kGathers, class Index>
FORETUNE_KERNEL_INLINE inline typename Isa::Vector gathered(typename Isa::Vector value,
                                                            Index index) {
  if constexpr (kGathers) {
    return Isa::gather(value, index);
  } else {
    return value;
  }
}

// Loads vectors of which a tail may be missing.
template <class Isa, bool kTail>
struct GroupVectors {
  using Vector = typename Isa::Vector;
  typename Isa::Mask inputs;
  typename Isa::Mask outputs;

  GroupVectors(int input_channels, int output_channels)
      : inputs(Isa::mask(kTail ? input_channels : Isa::kLanes)),
        outputs(Isa::mask(kTail ? output_channels : Isa::kLanes)) {}

  FORETUNE_KERNEL_INLINE Vector output(const float* from) const {
    return kTail ? Isa::load_part(from, outputs) : Isa::load(from);
  }
  FORETUNE_KERNEL_INLINE Vector input(const float* from) const {
    return kTail ? Isa::load_part(from, inputs) : Isa::load(from);
  }
  FORETUNE_KERNEL_INLINE void store(float* to, Vector value) const {
    if constexpr (kTail) {
      Isa::store_part(to, outputs, value);
    } else {
      Isa::store(to, value);
    }
  }
};

// The operands of a kernel in f32. Other types have classes like this one.
template <class Isa, bool kTail>
class FloatGroups {
 public:
  using Element = float;
  using Vector = typename Isa::Vector;

  explicit FloatGroups(const GroupCall& call)
      : call_(call),
        vectors_(call.input_channels, call.output_channels),
        floor_(Isa::broadcast(&call.floor)) {}

  FORETUNE_KERNEL_INLINE Vector input(const float* from) const { return vectors_.input(from); }
  // Returns what the sums of a vector of channels begin with.
  FORETUNE_KERNEL_INLINE Vector start(std::ptrdiff_t channel) const {
    return call_.bias == nullptr ? Isa::zero() : vectors_.output(call_.bias + channel);
  }
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector value, Vector weight) {
    Isa::accumulate(sum, value, weight);
  }
  FORETUNE_KERNEL_INLINE void prefetch_output(std::ptrdiff_t place) const {
    __builtin_prefetch(static_cast<const float*>(call_.output) + place, 1, 3);
  }
  // Stores the output at `place` of the call's, whose channel is `channel`.
  FORETUNE_KERNEL_INLINE void finish(Vector sum, std::ptrdiff_t place,
                                     std::ptrdiff_t /*channel*/) const {
    if (call_.addend != nullptr) {
      sum = Isa::add(sum, vectors_.output(static_cast<const float*>(call_.addend) + place));
    }
    vectors_.store(static_cast<float*>(call_.output) + place, Isa::at_least(floor_, sum));
  }

 private:
  const GroupCall& call_;
  GroupVectors<Isa, kTail> vectors_;
  Vector floor_;
};

template <class Isa, class Operands, GroupRun kRun, int kPoints, bool kGathers>
void group_kernel(const GroupCall& call) {
  using Vector = typename Isa::Vector;
  using Sums = Vector[std::size_t{kPoints}];  // NOLINT(modernize-avoid-c-arrays)
  constexpr int kTaps = shape_of(kRun).taps;
  constexpr int kStride = shape_of(kRun).stride;
  using Weights = Vector[std::size_t{kTaps}];  // NOLINT(modernize-avoid-c-arrays)
  const Operands operands(call);
  const int inputs = kGathers ? call.inputs : 1;
  for (int block = 0; block < call.blocks; ++block) {
    const std::ptrdiff_t channel = std::ptrdiff_t{block} * call.output_channels;
    const auto* const block_input = static_cast<const typename Operands::Element*>(call.input) +
                                    std::ptrdiff_t{block} * call.input_channels;
    const float* const block_weights = call.weights + block * call.block_weights;
    // Fetched while the products are summed.
    FORETUNE_UNROLL
    for (int p = 0; p < kPoints; ++p) {
      operands.prefetch_output(p * call.output_step + channel);
    }
    Sums sums;
    const Vector first = operands.start(channel);
    FORETUNE_UNROLL
    for (int p = 0; p < kPoints; ++p) {
      sums[p] = first;
    }
    for (int row = 0; row < call.row_count; ++row) {
      for (int column = 0; column < call.column_count; ++column) {
        const GroupColumn& at = call.columns[column];
        const auto* const input = block_input + call.rows[row].input + at.input;
        const float* weights = block_weights + call.rows[row].weight + at.weight;
        for (int i = 0; i < inputs; ++i, weights += kTaps * Isa::kLanes) {
          const auto index =
              Isa::index(kGathers ? call.gather + std::ptrdiff_t{i} * Isa::kLanes : kNoGather);
          Weights weight;
          FORETUNE_UNROLL
          for (int t = 0; t < kTaps; ++t) {
            weight[t] = Isa::load(weights + t * Isa::kLanes);
          }
          for_each_point<points_read(kRun, kPoints)>([&](auto point) FORETUNE_KERNEL_INLINE {
            constexpr int kQ = decltype(point)::value;
            if ((at.inside & (1U << static_cast<unsigned>(kQ))) == 0) {
              return;
            }
            const Vector value =
                gathered<Isa, kGathers>(operands.input(input + kQ * call.input_step), index);
            FORETUNE_UNROLL
            for (int t = 0; t < kTaps; ++t) {
              if (kQ >= t && (kQ - t) % kStride == 0 && (kQ - t) / kStride < kPoints) {
                Operands::accumulate(sums[(kQ - t) / kStride], value, weight[t]);
              }
            }
          });
        }
      }
    }
    FORETUNE_UNROLL
    for (int p = 0; p < kPoints; ++p) {
      operands.finish(sums[p], p * call.output_step + channel, channel);
    }
  }
}

// Points take turns with two sets of sums, because a sum waits for the one before.
template <class Isa, GroupRun kRun, int kPoints, bool kGathers, bool kTail>
void group_gradient_kernel(const GroupGradientCall& call) {
  using Vector = typename Isa::Vector;
  constexpr int kTaps = shape_of(kRun).taps;
  constexpr int kStride = shape_of(kRun).stride;
  constexpr int kSets =
      kPoints > 1 && 2 * kTaps + kPoints + 2 <= kernel_limits(Isa::kIsa).registers ? 2 : 1;
  using Sums = Vector[std::size_t{kSets}][std::size_t{kTaps}];  // NOLINT(modernize-avoid-c-arrays)
  using Outputs = Vector[std::size_t{kPoints}];                 // NOLINT(modernize-avoid-c-arrays)
  const GroupVectors<Isa, kTail> vectors(call.input_channels, call.output_channels);
  const int inputs = kGathers ? call.inputs : 1;
  for (int i = 0; i < inputs; ++i) {
    const auto index =
        Isa::index(kGathers ? call.gather + std::ptrdiff_t{i} * Isa::kLanes : kNoGather);
    Sums sums;
    FORETUNE_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      FORETUNE_UNROLL
      for (int set = 0; set < kSets; ++set) {
        sums[set][t] = Isa::zero();
      }
    }
    for (std::ptrdiff_t row = 0; row < call.rows; ++row) {
      const float* const input = call.input + call.input_rows[row];
      const float* const output = call.output + call.output_rows[row];
      Outputs outputs;
      FORETUNE_UNROLL
      for (int p = 0; p < kPoints; ++p) {
        outputs[p] = vectors.output(output + p * call.output_step);
      }
      for_each_point<points_read(kRun, kPoints)>([&](auto point) FORETUNE_KERNEL_INLINE {
        constexpr int kQ = decltype(point)::value;
        if ((call.inside & (1U << static_cast<unsigned>(kQ))) == 0) {
          return;
        }
        const Vector value =
            gathered<Isa, kGathers>(vectors.input(input + kQ * call.input_step), index);
        FORETUNE_UNROLL
        for (int t = 0; t < kTaps; ++t) {
          if (kQ >= t && (kQ - t) % kStride == 0 && (kQ - t) / kStride < kPoints) {
            Isa::accumulate(sums[(kQ - t) / kStride % kSets][t], value,
                            outputs[(kQ - t) / kStride]);
          }
        }
      });
    }
    FORETUNE_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      float* const to = call.sums + std::ptrdiff_t{i * kTaps + t} * Isa::kLanes;
      Vector sum = sums[0][t];
      if constexpr (kSets > 1) {
        sum = Isa::add(sum, sums[1][t]);
      }
      Isa::store(to, Isa::add(Isa::load(to), sum));
    }
  }
}

// `Full` and `Tail` are the operands of full vectors and of others; gradients have none.
template <class Isa, class Full, class Tail>
struct GroupTables {
  template <GroupRun kRun, bool kGathers, int kPoints>
  static constexpr void add_points(GroupKernelSet& set) {
    if constexpr (kPoints > 0) {
      auto& kernels = set.table[static_cast<int>(kRun)][kGathers ? 1 : 0];
      kernels[0][kPoints - 1] = &group_kernel<Isa, Full, kRun, kPoints, kGathers>;
      kernels[1][kPoints - 1] = &group_kernel<Isa, Tail, kRun, kPoints, kGathers>;
      constexpr bool kHasGradients = std::is_same_v<typename Full::Element, float>;
      if constexpr (kHasGradients && kPoints <= kMaxGradientPoints) {
        auto& gradients = set.gradients[static_cast<int>(kRun)][kGathers ? 1 : 0];
        gradients[0][kPoints - 1] = &group_gradient_kernel<Isa, kRun, kPoints, kGathers, false>;
        gradients[1][kPoints - 1] = &group_gradient_kernel<Isa, kRun, kPoints, kGathers, true>;
      }
      add_points<kRun, kGathers, kPoints - 1>(set);
    }
  }

  template <int kRun = 0>
  static constexpr void add_runs(GroupKernelSet& set) {
    if constexpr (kRun < kGroupRuns) {
      constexpr auto kOf = static_cast<GroupRun>(kRun);
      constexpr int kMost = max_group_points(kOf, kernel_limits(Isa::kIsa).registers);
      add_points<kOf, false, kMost>(set);
      // Wide filters of groups with several channels are rare.
      if constexpr (shape_of(kOf).taps <= 3) {
        add_points<kOf, true, kMost>(set);
      }
      add_runs<kRun + 1>(set);
    }
  }

  static constexpr GroupKernelSet make() {
    GroupKernelSet set;
    set.lanes = Isa::kLanes;
    add_runs(set);
    return set;
  }
};

template <class Isa>
constexpr GroupKernelSet make_group_kernel_set() {
  return GroupTables<Isa, FloatGroups<Isa, false>, FloatGroups<Isa, true>>::make();
}

}  // namespace
}  // namespace foretune
