// Trees over a small pool: the candidates that reach a node are a mask of a few words, and a side
// that none of them takes is never entered. Included by the engine_kernels_<isa>.cc alone, with the
// rules of engine_kernels_inl.h.
//
// A tree is walked with a stack of the sides that are still to come. Its leaves are numbered in the
// order in which they are reached, so that the planes of the numbers follow from the candidates
// that have none yet: from one number to the next, plane b flips for all of these when bit b does.
#pragma once

#include "foretune/model/forest/internal/engine_kernels_inl.h"

namespace foretune {
namespace {

template <unsigned Words>
struct SmallMask;
template <>
struct SmallMask<1> {
  using Type = std::uint64_t;
};
template <>
struct SmallMask<2> {
  using Type = std::uint64_t __attribute__((vector_size(16)));
};
template <>
struct SmallMask<4> {
  using Type = std::uint64_t __attribute__((vector_size(32)));
};
template <>
struct SmallMask<8> {
  using Type = EngineLanes;
};

// A side of a node, and the candidates that take it.
template <class Mask>
struct SmallSide {
  Mask mask;
  std::uint32_t at;
};

template <class Isa, unsigned Words>
void fill_small_words(const EngineSmallQuery& query) {
  const std::uint32_t config_end = query.first_config_predicate + query.config_predicates;
  const auto fill = [&](std::uint32_t predicate, bool value) {
    for (unsigned word = 0; word < Words; ++word) {
      query.words[std::size_t{predicate} * Words + word] = value ? ~std::uint64_t{0} : 0;
    }
  };
  for (std::uint32_t p = 0; p < query.first_config_predicate; ++p) {
    fill(p, query.states[p] == kEngineTrue);
  }
  if (query.config_predicates > 0) {
    std::memcpy(query.words + std::size_t{query.first_config_predicate} * Words, query.config_words,
                std::size_t{query.config_predicates} * Words * sizeof(std::uint64_t));
  }
  for (std::uint32_t p = config_end; p < query.predicate_count; ++p) {
    if (query.states[p] == kEngineVaries) {
      compute_bits<Isa>(query.predicates[p], query.columns[query.predicates[p].column], Words,
                        query.words + std::size_t{p} * Words);
    } else {
      fill(p, query.states[p] == kEngineTrue);
    }
  }
}

// Eight planes become bytes: byte g of word w of out[r] is the number of the candidate with bit
// 8 g + r of word w.
template <class Mask>
inline void small_numbers(const Mask* planes, Mask* out) {
  constexpr std::uint64_t kMasks[3] = {0x5555555555555555U, 0x3333333333333333U,  // NOLINT
                                       0x0f0f0f0f0f0f0f0fU};
  FORETUNE_UNROLL(8)
  for (unsigned i = 0; i < 8; ++i) {
    out[i] = planes[i];
  }
  FORETUNE_UNROLL(3)
  for (unsigned step = 0; step < 3; ++step) {
    const unsigned width = 1U << step;
    Mask next[8];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL(4)
    for (unsigned group = 0; group < 8 / width; group += 2) {
      FORETUNE_UNROLL(4)
      for (unsigned residue = 0; residue < width; ++residue) {
        weave(out[group * width + residue], out[(group + 1) * width + residue], width, kMasks[step],
              next[group * width + residue], next[group * width + width + residue]);
      }
    }
    FORETUNE_UNROLL(8)
    for (unsigned i = 0; i < 8; ++i) {
      out[i] = next[i];
    }
  }
}

template <class Isa, unsigned Words>
void add_small_leaves(const EngineSmallQuery& query,
                      const typename SmallMask<Words>::Type* planes) {
  using Mask = typename SmallMask<Words>::Type;
  Mask numbers[8];  // NOLINT(modernize-avoid-c-arrays)
  small_numbers(planes, numbers);
  std::uint8_t bytes[8 * sizeof(Mask)];  // NOLINT(modernize-avoid-c-arrays)
  std::memcpy(bytes, numbers, sizeof(bytes));
  for (unsigned row = 0; row < 8; ++row) {
    Isa::add_numbered(query.table, bytes + row * sizeof(Mask), query.used_words * 8,
                      query.sums + row * sizeof(Mask));
  }
}

template <class Isa, unsigned Words>
void run_small(const EngineSmallQuery& query) {
  using Mask = typename SmallMask<Words>::Type;
  fill_small_words<Isa, Words>(query);
  auto* const stack = reinterpret_cast<SmallSide<Mask>*>(query.stack);
  Mask all;
  std::memcpy(&all, query.all, sizeof(all));
  for (std::size_t tree = 0; tree < query.tree_count; ++tree) {
    std::uint32_t at = query.roots[tree];
    Mask mask = all;
    Mask rest = all;
    Mask planes[9] = {};  // NOLINT(modernize-avoid-c-arrays)
    std::uint32_t leaves = 0;
    std::size_t depth = 0;
    while (true) {
      if ((at & kEngineLeafRef) == 0) {
        const std::uint64_t cell = query.cells[at];
        const auto low = static_cast<std::uint32_t>(cell);
        Mask yes;
        std::memcpy(&yes, query.words + std::size_t{low & ~kEngineLeafRef} * Words, sizeof(yes));
        yes &= mask;
        const Mask no = mask ^ yes;
        const bool is_any_yes = Isa::is_any(yes);
        const auto if_no = static_cast<std::uint32_t>(cell >> 32U);
        stack[depth].mask = no;
        stack[depth].at = if_no;
        depth += is_any_yes && Isa::is_any(no) ? 1U : 0U;
        mask = is_any_yes ? yes : no;
        at = is_any_yes ? (at + 1) | (low & kEngineLeafRef) : if_no;
        continue;
      }
      std::memcpy(&query.table[leaves], &query.cells[at & ~kEngineLeafRef], sizeof(double));
      for (unsigned bit = 0; leaves != 0; ++bit) {
        planes[bit] ^= rest;
        if (((leaves >> bit) & 1U) != 0) {
          break;
        }
      }
      ++leaves;
      rest &= ~mask;
      if (depth == 0) {
        break;
      }
      --depth;
      mask = stack[depth].mask;
      at = stack[depth].at;
    }
    if (leaves == 1) {
      const double value = query.table[0];
      for (std::size_t i = 0; i < std::size_t{Words} * 64; ++i) {
        query.sums[i] += value;
      }
    } else {
      add_small_leaves<Isa, Words>(query, planes);
    }
  }
}

// Returns the kernels made of an instruction set's operations.
template <class Isa>
const EngineKernels* kernels_of() {
  static constexpr EngineKernels kKernels{
      Isa::kName,
      &Isa::range,
      &Isa::template quantise<std::uint8_t>,
      &Isa::template quantise<std::uint16_t>,
      &run_trees<Isa>,
      false,
      {&run_small<Isa, 1>, &run_small<Isa, 2>, Isa::kSmallSizes > 2 ? &run_small<Isa, 4> : nullptr,
       Isa::kSmallSizes > 3 ? &run_small<Isa, 8> : nullptr}};
  return &kKernels;
}

}  // namespace
}  // namespace foretune
