// The engine's code that all instruction sets share; included by the engine_kernels_<isa>.cc alone,
// each of which gives an Isa with the few operations that differ. Everything has internal linkage
// and nothing of the standard library is instantiated: code compiled for one instruction set must
// never be merged with another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "foretune/model/forest/engine_kernels.h"
#include "foretune/model/internal/unroll.h"

namespace foretune {
namespace {

// One block of a bitset; arithmetic becomes the widest instructions of the file's flags.
using EngineLanes = std::uint64_t __attribute__((vector_size(64)));

// Same as kForestZero, whose header brings the standard library along.
constexpr double kEngineZero = static_cast<double>(1e-35F);

// NaN fails the comparison, so that both kinds of missing values become 0.
inline double without_missing(double value) {
  return __builtin_fabs(value) > kEngineZero ? value : 0.0;
}

inline unsigned width_of(std::uint32_t value) {
  return value == 0 ? 0 : 32U - static_cast<unsigned>(__builtin_clz(value));
}

// ---- predicates -------------------------------------------------------------------------------

// Writes the bits of a predicate over the first words of candidates.
template <class Isa>
void compute_bits(const EnginePredicate& predicate, const EngineColumn& column, std::size_t words,
                  std::uint64_t* out) {
  if (column.wide) {
    Isa::at_most_words(column.codes, predicate.rank, words, out);
  } else {
    Isa::at_most_bytes(column.codes, static_cast<std::uint8_t>(predicate.rank), words, out);
  }
  const std::uint64_t* missing = predicate.missing == 1   ? column.is_zero_or_nan
                                 : predicate.missing == 2 ? column.is_nan
                                                          : nullptr;
  if (missing != nullptr) {
    for (std::size_t i = 0; i < words; ++i) {
      out[i] = predicate.default_left != 0 ? out[i] | missing[i] : out[i] & ~missing[i];
    }
  }
}

template <class Isa>
const std::uint64_t* materialise(EngineQuery& query, std::uint32_t index) {
  const EnginePredicate& predicate = query.predicates[index];
  const std::size_t words = query.blocks * kEngineBlockWords;
  std::uint64_t* out = query.next_bitset;
  query.next_bitset += words;
  compute_bits<Isa>(predicate, query.columns[predicate.column], words, out);
  query.bitsets[index] = out;
  return out;
}

// ---- trees ------------------------------------------------------------------------------------

// Lists what is left of a tree when decided predicates are followed, a node before its second
// subtree before its first: read backwards, both subtrees come before their node.
template <class Isa>
std::size_t list_varying(EngineQuery& query, const EngineTree& tree) {
  const EngineNode* nodes = query.nodes + tree.first_node;
  std::size_t listed = 0;
  std::size_t depth = 0;
  std::uint16_t at = tree.root;
  while (true) {
    if ((at & kEngineLeafBit) != 0) {
      query.postfix[listed++] = at;
      if (depth == 0) {
        return listed;
      }
      at = query.stack[--depth];
      continue;
    }
    const EngineNode& node = nodes[at];
    const std::uint32_t index = node.predicate & ~kEngineFirstIsLeft;
    const bool first_is_left = (node.predicate & kEngineFirstIsLeft) != 0;
    const std::uint8_t state = query.states[index];
    if (state != kEngineVaries) {
      at = (state == kEngineTrue) == first_is_left ? node.first : node.second;
      continue;
    }
    if (query.bitsets[index] == nullptr) {
      materialise<Isa>(query, index);
    }
    query.postfix[listed++] = at;
    query.stack[depth++] = node.first;
    at = node.second;
  }
}

inline const std::uint64_t* plane_of(const EngineQuery& query, const EngineValue& value,
                                     unsigned bit) {
  if (bit < value.varying) {
    return value.planes[bit];
  }
  return ((value.low >> bit) & 1U) != 0 ? query.ones : query.zeros;
}

// The planes of a node from those of its subtrees, in place of the first's.
template <class Isa>
void combine(const EngineQuery& query, const EngineNode& node, std::size_t position) {
  EngineValue& first = query.values[position];
  const EngineValue& second = query.values[position + 1];
  const std::uint64_t* predicate = query.bitsets[node.predicate & ~kEngineFirstIsLeft];
  const bool first_is_left = (node.predicate & kEngineFirstIsLeft) != 0;
  const std::size_t words = query.blocks * kEngineBlockWords;
  const unsigned varying = width_of(first.low ^ second.high);
  std::uint64_t* temporary = query.temporaries + position * query.temporary_bits * words;
  for (unsigned bit = 0; bit < varying; ++bit, temporary += words) {
    const std::uint64_t* a = plane_of(query, first, bit);
    const std::uint64_t* b = plane_of(query, second, bit);
    const std::uint64_t* if_one = first_is_left ? a : b;
    const std::uint64_t* if_zero = first_is_left ? b : a;
    if (a == b) {
      first.planes[bit] = a;
    } else if (if_one == query.ones && if_zero == query.zeros) {
      first.planes[bit] = predicate;
    } else {
      Isa::select(predicate, if_one, if_zero, query.blocks, temporary);
      first.planes[bit] = temporary;
    }
  }
  first.high = second.high;
  first.varying = varying;
}

// ---- leaf values ------------------------------------------------------------------------------

// One step of weaving: fields of `width` bits of `low` and `high` side by side, the even ones into
// `even`, the odd ones into `odd`. `mask` has the even fields.
template <class Lanes>
inline void weave(const Lanes& low, const Lanes& high, unsigned width, std::uint64_t mask,
                  Lanes& even, Lanes& odd) {
  even = (low & mask) | ((high & mask) << width);
  odd = ((low >> width) & mask) | (high & ~mask);
}

// From `Width` planes to lanes of fields of `Width` bits: field g of out[r] is the number of the
// candidate with bit Width * g + r of the planes.
template <unsigned Width>
inline void weave_planes(const std::uint64_t* const* planes, std::size_t offset, EngineLanes* out) {
  static_assert(Width == 4 || Width == 8 || Width == 16);
  // After a step of width w, fields are 2w bits wide and [group * w + residue] has the planes
  // [group * w, (group + 1) * w). Unrolled, so that the vectors stay in registers.
  constexpr std::uint64_t kMasks[4] = {0x5555555555555555U, 0x3333333333333333U,  // NOLINT
                                       0x0f0f0f0f0f0f0f0fU, 0x00ff00ff00ff00ffU};
  FORETUNE_UNROLL(16)
  for (unsigned i = 0; i < Width; ++i) {
    std::memcpy(&out[i], planes[i] + offset, sizeof(EngineLanes));
  }
  FORETUNE_UNROLL(4)
  for (unsigned step = 0; (1U << step) < Width; ++step) {
    const unsigned width = 1U << step;
    EngineLanes next[Width];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL(8)
    for (unsigned group = 0; group < Width / width; group += 2) {
      FORETUNE_UNROLL(8)
      for (unsigned residue = 0; residue < width; ++residue) {
        weave(out[group * width + residue], out[(group + 1) * width + residue], width, kMasks[step],
              next[group * width + residue], next[group * width + width + residue]);
      }
    }
    FORETUNE_UNROLL(16)
    for (unsigned i = 0; i < Width; ++i) {
      out[i] = next[i];
    }
  }
}

// Weaves the planes block by block; Isa adds the leaf values of the fields.
template <class Isa, unsigned Width, unsigned Entries>
void add_woven(const EngineQuery& query, const std::uint64_t* const* planes) {
  const typename Isa::template Lookup<Width, Entries> lookup(query.table);
  for (std::size_t block = 0; block < query.blocks; ++block) {
    EngineLanes fields[Width];  // NOLINT(modernize-avoid-c-arrays)
    weave_planes<Width>(planes, block * kEngineBlockWords, fields);
    double* sums = query.sums + block * kEngineBlock;
    FORETUNE_UNROLL(16)
    for (unsigned residue = 0; residue < Width; ++residue) {
      lookup.add(fields[residue], sums + residue * kEngineBlockWords);
    }
  }
}

template <class Isa>
void add_leaves(const EngineQuery& query, std::uint32_t leaves) {
  const EngineValue& root = query.values[0];
  const std::uint64_t* planes[16];  // NOLINT(modernize-avoid-c-arrays)
  for (unsigned bit = 0; bit < 16; ++bit) {
    planes[bit] = query.zeros;
  }
  for (unsigned bit = 0; bit < root.varying; ++bit) {
    planes[bit] = root.planes[bit];
  }
  if (leaves == 1) {
    const double value = query.table[0];
    for (std::size_t i = 0; i < query.blocks * kEngineBlock; ++i) {
      query.sums[i] += value;
    }
  } else if (leaves <= 16) {
    add_woven<Isa, Isa::kNarrowest, 16>(query, planes);
  } else if (leaves <= 32) {
    add_woven<Isa, 8, 32>(query, planes);
  } else if (leaves <= 64) {
    add_woven<Isa, 8, 64>(query, planes);
  } else if (leaves <= 256) {
    add_woven<Isa, 8, 256>(query, planes);
  } else {
    add_woven<Isa, 16, 65536>(query, planes);
  }
}

template <class Isa>
void run_tree(EngineQuery& query, const EngineTree& tree) {
  const std::size_t listed = list_varying<Isa>(query, tree);
  const EngineNode* nodes = query.nodes + tree.first_node;
  const double* leaf_values = query.leaf_values + tree.first_leaf;
  std::uint32_t leaves = 0;
  std::size_t depth = 0;
  for (std::size_t i = listed; i-- > 0;) {
    const std::uint32_t entry = query.postfix[i];
    if ((entry & kEngineLeafBit) != 0) {
      query.table[leaves] = leaf_values[entry & ~std::uint32_t{kEngineLeafBit}];
      EngineValue& value = query.values[depth++];
      value.low = leaves;
      value.high = leaves;
      value.varying = 0;
      ++leaves;
    } else {
      --depth;
      combine<Isa>(query, nodes[entry], depth - 1);
    }
  }
  add_leaves<Isa>(query, leaves);
}

template <class Isa>
void run_trees(EngineQuery& query) {
  for (std::size_t t = 0; t < query.tree_count; ++t) {
    run_tree<Isa>(query, query.trees[t]);
  }
}

// ---- plain C++ versions of what an Isa provides -----------------------------------------------

struct PlainOperations {
  static constexpr const char* kName = "generic";

  static void select(const std::uint64_t* predicate, const std::uint64_t* if_one,
                     const std::uint64_t* if_zero, std::size_t blocks, std::uint64_t* out) {
    for (std::size_t i = 0; i < blocks * kEngineBlockWords; ++i) {
      out[i] = (predicate[i] & if_one[i]) | (~predicate[i] & if_zero[i]);
    }
  }

  // Eight byte comparisons in a 64-bit word: the subtraction compares the low seven bits without
  // borrowing across bytes, the top bits decide where they differ.
  static void at_most_bytes(const std::uint8_t* codes, std::uint8_t rank, std::size_t words,
                            std::uint64_t* out) {
    constexpr std::uint64_t kTop = 0x8080808080808080U;
    const std::uint64_t ranks = rank * std::uint64_t{0x0101010101010101U};
    for (std::size_t word = 0; word < words; ++word) {
      std::uint64_t bits = 0;
      for (unsigned part = 0; part < 8; ++part) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, codes + word * 64 + part * 8, sizeof(eight));
        const std::uint64_t low_at_most = (ranks | kTop) - (eight & ~kTop);
        const std::uint64_t at_most = ((~eight & ranks) | (~(eight ^ ranks) & low_at_most)) & kTop;
        // The multiplication gathers the eight top bits into the highest byte.
        bits |= (((at_most >> 7U) * 0x0102040810204080U) >> 56U) << (part * 8);
      }
      out[word] = bits;
    }
  }

  static void at_most_words(const std::uint8_t* codes, std::uint16_t rank, std::size_t words,
                            std::uint64_t* out) {
    for (std::size_t word = 0; word < words; ++word) {
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < 64; ++i) {
        std::uint16_t code = 0;
        std::memcpy(&code, codes + (word * 64 + i) * 2, sizeof(code));
        bits |= static_cast<std::uint64_t>(code <= rank) << i;
      }
      out[word] = bits;
    }
  }

  // A lane of fields as numbers in memory.
  template <unsigned Width>
  static std::size_t field(const EngineLanes& fields, unsigned lane, unsigned index) {
    static_assert(Width == 8 || Width == 16);
    const char* source = reinterpret_cast<const char*>(&fields) + lane * 8 + index * (Width / 8);
    if constexpr (Width == 8) {
      return static_cast<unsigned char>(*source);
    } else {
      std::uint16_t number = 0;
      std::memcpy(&number, source, sizeof(number));
      return number;
    }
  }

  static constexpr unsigned kNarrowest = 8;
  template <unsigned Width, unsigned Entries>
  class Lookup {
   public:
    explicit Lookup(const double* table) : table_(table) {}
    // `sums` is where the candidates of the lanes' first fields lie.
    void add(const EngineLanes& fields, double* sums) const {
      for (unsigned index = 0; index < 64 / Width; ++index) {
        double* out = sums + index * Width * kEngineBlockWords;
        for (unsigned lane = 0; lane < kEngineBlockWords; ++lane) {
          out[lane] += table_[field<Width>(fields, lane, index)];
        }
      }
    }

   private:
    const double* table_;
  };

  // How many sizes of small pools have code of their own; for more candidates planes are faster.
  static constexpr unsigned kSmallSizes = 3;

  // Returns true when a mask of a small pool has a candidate.
  static bool is_any(std::uint64_t mask) { return mask != 0; }
  template <class Mask>
  static bool is_any(const Mask& mask) {
    std::uint64_t any = 0;
    for (unsigned word = 0; word < sizeof(Mask) / sizeof(any); ++word) {
      any |= mask[word];
    }
    return any != 0;
  }

  // Adds the leaf values with these numbers; `count` is a multiple of eight.
  static void add_numbered(const double* table, const std::uint8_t* numbers, std::size_t count,
                           double* sums) {
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] += table[numbers[i]];
    }
  }

  static EngineRange range(const double* values, std::size_t count) {
    EngineRange out{without_missing(values[0]), without_missing(values[0])};
    for (std::size_t i = 1; i < count; ++i) {
      const double value = without_missing(values[i]);
      out.low = value < out.low ? value : out.low;
      out.high = value > out.high ? value : out.high;
    }
    return out;
  }

  // Binary search without branches; `count` rounds up to 2^steps - 1 probes of the padded list.
  static std::uint32_t count_below(double value, const double* thresholds, std::uint32_t count) {
    std::uint32_t below = 0;
    for (std::uint32_t step = std::uint32_t{1} << width_of(count) >> 1U; step > 0; step >>= 1U) {
      below += thresholds[below + step - 1] < value ? step : 0;
    }
    return below;
  }

  template <class Code>
  static void quantise(const double* values, std::size_t value_count, const double* thresholds,
                       std::uint32_t count, std::uint32_t low, Code* codes) {
    for (std::size_t i = 0; i < value_count; ++i) {
      codes[i] =
          static_cast<Code>(low + count_below(without_missing(values[i]), thresholds, count));
    }
  }
};

}  // namespace
}  // namespace foretune
