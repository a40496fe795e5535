// The code that the forest engine runs per query, once for every instruction set. Internal to the
// module.
//
// A predicate ("feature <= threshold") over all candidates is a bitset. A tree is first cut down to
// the nodes whose predicate still varies over the candidates; its remaining leaves are numbered,
// and the number of each candidate's leaf is computed as bit planes, one bitset per bit, by
// selecting between the planes of a node's two subtrees. A table lookup then adds the leaf values.
// The idea of bit parallelism is that of QuickScorer (Lucchese et al. 2015), turned round: there
// the bits are leaves and candidates are evaluated one by one, here the bits are candidates and the
// leaf numbers are planes.
//
// Thread safety: the functions touch only the memory that the query points to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune {

// Number of candidates in one block: eight lanes of 64 bits. Everything is padded to whole blocks.
inline constexpr std::size_t kEngineBlock = 512;
inline constexpr std::size_t kEngineBlockWords = 8;
// Pools of up to 1, 2, 4 and 8 words of candidates have code of their own.
inline constexpr unsigned kEngineSmallSizes = 4;
// A reference to a child: a node of the tree, or with this bit a leaf of it.
inline constexpr std::uint16_t kEngineLeafBit = 0x8000;
inline constexpr std::uint32_t kEngineMaxLeaves = 0x8000;
inline constexpr unsigned kEngineMaxBits = 15;
// In EngineNode::predicate: the subtree evaluated first is the one for values below the threshold.
inline constexpr std::uint32_t kEngineFirstIsLeft = 0x80000000U;

// States of a predicate.
inline constexpr std::uint8_t kEngineFalse = 0;
inline constexpr std::uint8_t kEngineTrue = 1;
inline constexpr std::uint8_t kEngineVaries = 2;  // over the candidates

struct EngineNode {
  std::uint32_t predicate;
  std::uint16_t first;
  std::uint16_t second;
};

struct EngineTree {
  std::uint32_t first_node;
  std::uint32_t first_leaf;
  std::uint16_t root;
};

struct EnginePredicate {
  std::uint16_t column;
  std::uint16_t rank;  // true where the code is at most this
  std::uint8_t missing;
  std::uint8_t default_left;
};

// An interaction column of the query as codes: the number of thresholds below the value.
struct EngineColumn {
  const std::uint8_t* codes;    // one byte each, or two where `wide`
  const std::uint64_t* is_nan;  // bitsets; nullptr where no candidate is
  const std::uint64_t* is_zero_or_nan;
  bool wide;
};

// The planes of a subtree's leaf numbers. Above `varying` all bits are those of `low`.
struct EngineValue {
  std::uint32_t low;
  std::uint32_t high;
  std::uint32_t varying;
  const std::uint64_t* planes[kEngineMaxBits];  // NOLINT(modernize-avoid-c-arrays): no std here
};

// The paths are for engine_kernels_vbmi.cc, which numbers the nodes and leaves of all trees
// consecutively.
inline constexpr std::uint32_t kEngineLeafRef = 0x80000000U;  // in a reference: to a leaf
inline constexpr std::uint32_t kEnginePathNodes = 240;  // of one tree; larger ones go without paths
inline constexpr unsigned kEnginePathDepth = 16;
inline constexpr unsigned kEnginePathTables = 16;
inline constexpr std::size_t kEngineTreesTogether = 64;  // at most

// NOLINTBEGIN(modernize-avoid-c-arrays): no std here
struct EnginePathPlanes {
  std::uint64_t height;
  const std::uint64_t* plane[kEnginePathDepth];
};

struct EnginePaths {
  alignas(64) std::uint8_t table[kEnginePathTables][256];
  EnginePathPlanes planes[2][kEnginePathNodes + 1];  // of a level's nodes and of those below
  std::uint32_t root[kEngineTreesTogether];
  std::uint32_t level_start[kEnginePathDepth + 1];
  std::uint32_t leaf_start[kEnginePathDepth];
  // The varying nodes of several trees, level by level, and the leaves that remain. Each array has
  // room for another vector behind them.
  std::uint32_t* node;
  std::uint32_t* predicate;
  std::uint32_t* code;   // the path to it
  std::uint32_t* child;  // where its children end, and in the lowest bits which ones are nodes
  std::uint32_t* leaf;
  std::uint32_t* leaf_code;
};
// NOLINTEND(modernize-avoid-c-arrays)

struct EngineQuery {
  const EngineTree* trees;
  std::size_t tree_count;
  const EngineNode* nodes;
  const double* leaf_values;
  const EnginePredicate* predicates;
  const EngineColumn* columns;
  const std::uint64_t* zeros;  // the constant bitsets; they also stand for decided predicates
  const std::uint64_t* ones;
  std::size_t blocks;
  // Scratch. A predicate's bitset is nullptr until a tree needs it.
  const std::uint64_t** bitsets;
  const std::uint8_t* states;  // of the predicates; three readable bytes follow
  std::uint64_t* next_bitset;
  std::uint64_t* temporaries;
  unsigned temporary_bits;  // planes per position of the value stack
  EngineValue* values;
  std::uint16_t* stack;
  std::uint32_t* postfix;
  double* table;
  double* sums;  // in: 0; out: see engine_position
  // For kernels that number leaves by paths.
  const std::uint32_t* roots;         // per tree: a node or a leaf
  const std::uint32_t* predicate_of;  // per node
  const std::uint32_t* outcomes;      // two per node: the child when false, the child when true
  std::size_t trees_together;
  EnginePaths* paths;
  std::uint64_t* path_planes;
};

// A query about a pool of at most 512 candidates, with one, two, four or eight words for each
// predicate, as far as an instruction set has kernels for them (run_small below). Candidate 64 w +
// b is bit b of word w.
struct EngineSmallQuery {
  // The trees, one after another, each node before what follows it: in its lower half the
  // predicate, with kEngineLeafRef where the next cell, which values below the threshold go to, is
  // a leaf; in its upper half the cell of the other side, with kEngineLeafRef where that is a leaf.
  // A leaf is its value.
  const std::uint64_t* cells;
  const std::uint32_t* roots;  // of the trees: cells, with kEngineLeafRef where they are leaves
  std::size_t tree_count;
  // Predicates on problem features, on config features, on interaction features.
  const EnginePredicate* predicates;
  std::uint32_t first_config_predicate;
  std::uint32_t config_predicates;
  std::uint32_t predicate_count;
  const std::uint8_t* states;         // of those on problem and interaction features
  const std::uint64_t* config_words;  // of those on config features
  const EngineColumn* columns;
  const std::uint64_t* all;  // the candidates that there are
  std::size_t used_words;    // that have candidates
  // Scratch.
  std::uint64_t* words;  // of all predicates
  std::byte* stack;      // aligned to 64, 128 bytes for each candidate and one more
  double* table;         // 256 leaf values
  double* sums;          // in: 0; out: see engine_small_position
};

struct EngineRange {
  double low;
  double high;
};

struct EngineKernels {
  const char* name;
  // Returns the smallest and the largest value. NaN and values that count as zero are 0; `count` >
  // 0.
  EngineRange (*range)(const double* values, std::size_t count);
  // codes[i] = low + number of the `count` thresholds below values[i]. At least `count` readable
  // numbers follow the thresholds, none smaller than any value.
  void (*quantise_bytes)(const double* values, std::size_t value_count, const double* thresholds,
                         std::uint32_t count, std::uint32_t low, std::uint8_t* codes);
  void (*quantise_words)(const double* values, std::size_t value_count, const double* thresholds,
                         std::uint32_t count, std::uint32_t low, std::uint16_t* codes);
  void (*run)(EngineQuery& query);
  bool uses_paths;  // needs EngineQuery::paths and the members around it
  // By the logarithm of the number of words; nullptr where run() is faster.
  void (*run_small[kEngineSmallSizes])(const EngineSmallQuery& query);  // NOLINT: no std here
};

// Returns the position of the sum of candidate `index`: within a block, candidates a lane apart are
// neighbours.
[[nodiscard]] constexpr std::size_t engine_position(std::size_t index) {
  const std::size_t in_block = index % kEngineBlock;
  return index - in_block + (in_block % 64) * kEngineBlockWords + in_block / 64;
}

// The same for a small pool with so many words: eight candidates apart are neighbours.
[[nodiscard]] constexpr std::size_t engine_small_position(std::size_t index, std::size_t words) {
  return (index % 8) * words * 8 + index / 64 * 8 + index % 64 / 8;
}

// Returns nullptr where this build has no code for `isa`. For AVX-512 it returns the kernels with
// VBMI where the CPU has it. The caller makes sure that the CPU can run `isa`.
const EngineKernels* engine_kernels(CpuIsa isa);

const EngineKernels* engine_kernels_generic();
const EngineKernels* engine_kernels_avx2();
const EngineKernels* engine_kernels_avx512();
const EngineKernels* engine_kernels_vbmi();

}  // namespace foretune
