// The engine's code for CPUs with AVX-512 VBMI (Ice Lake and Zen 4 on). Trees are cut down sixteen
// children at a time, many trees together, because one tree alone offers nothing but branches that
// cannot be predicted. Leaves are then numbered by their paths: plane d has the outcome of the d-th
// predicate on a candidate's path, and means nothing for candidates that reached a leaf before. A
// node selects only between planes that both of its subtrees have, which are fewer in all than the
// nodes of the tree. Byte permutations map the paths to the numbers of leaves.
#include "foretune/model/forest/internal/engine_avx512_inl.h"

#if defined(__AVX512VBMI__) && defined(__AVX512BW__) && defined(__AVX512DQ__)

namespace foretune {
namespace {

constexpr std::uint32_t kNone = kEnginePathNodes;  // the slot of a child that is a leaf
constexpr unsigned kLevels = kEnginePathDepth;
constexpr std::uint32_t kLeafRef = kEngineLeafRef;

// ---- cutting trees ----------------------------------------------------------------------------

struct Resolved {
  __m512i refs;
  __m512i predicates;  // of the nodes among them
  __mmask16 nodes;
};

// Follows decided predicates down to leaves and to nodes whose predicate varies.
Resolved resolve(const EngineQuery& query, __m512i refs, __mmask16 valid) {
  while (true) {
    const __mmask16 nodes = _mm512_mask_cmpge_epi32_mask(valid, refs, _mm512_setzero_si512());
    const __m512i predicates =
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), nodes, refs, query.predicate_of, 4);
    const __m512i states = _mm512_and_si512(
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), nodes, predicates, query.states, 1),
        _mm512_set1_epi32(0xff));
    const __mmask16 decided =
        _mm512_mask_cmpneq_epi32_mask(nodes, states, _mm512_set1_epi32(kEngineVaries));
    if (decided == 0) {
      return {refs, predicates, nodes};
    }
    const __m512i position = _mm512_add_epi32(_mm512_add_epi32(refs, refs), states);
    refs = _mm512_mask_i32gather_epi32(refs, decided, position, query.outcomes, 4);
  }
}

void append(std::uint32_t* out, __mmask16 which, __m512i values) {
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(which, values));
}

// Lists the varying nodes and the leaves of trees [first, first + count), level by level and within
// a level tree by tree.
void cut_trees(const EngineQuery& query, std::size_t first, std::size_t count) {
  EnginePaths& paths = *query.paths;
  std::uint32_t items = 0;
  std::uint32_t leaves = 0;
  for (std::size_t t = 0; t < count; t += 16) {
    const auto valid = static_cast<__mmask16>(count - t >= 16 ? 0xffffU : (1U << (count - t)) - 1);
    const __m512i roots =
        _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), valid, query.roots + first + t);
    const Resolved found = resolve(query, roots, valid);
    _mm512_storeu_si512(paths.root + t, found.refs);
    append(paths.node + items, found.nodes, found.refs);
    append(paths.predicate + items, found.nodes, found.predicates);
    append(paths.code + items, found.nodes, _mm512_setzero_si512());
    items += static_cast<std::uint32_t>(__builtin_popcount(found.nodes));
  }
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const __m512i sides = _mm512_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1);
  std::uint32_t begin = 0;
  for (unsigned level = 0; level < kLevels; ++level) {
    const std::uint32_t end = items;
    paths.level_start[level] = begin;
    paths.leaf_start[level] = leaves;
    for (std::uint32_t at = begin; at < end; at += 8) {
      const std::uint32_t here = end - at < 8 ? end - at : 8;
      const auto valid = static_cast<__mmask16>((1U << (2 * here)) - 1);
      const __m512i parents =
          _mm512_maskz_permutexvar_epi32(0xffff, twice, _mm512_loadu_si512(paths.node + at));
      const __m512i codes =
          _mm512_maskz_permutexvar_epi32(0xffff, twice, _mm512_loadu_si512(paths.code + at));
      const __m512i position = _mm512_add_epi32(_mm512_add_epi32(parents, parents), sides);
      const __m512i children =
          _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), valid, position, query.outcomes, 4);
      const __m512i paths_below = _mm512_add_epi32(_mm512_add_epi32(codes, codes), sides);
      const Resolved found = resolve(query, children, valid);
      const auto is_leaf = static_cast<__mmask16>(valid & ~found.nodes);
      append(paths.leaf + leaves, is_leaf, found.refs);
      append(paths.leaf_code + leaves, is_leaf, paths_below);
      append(paths.node + items, found.nodes, found.refs);
      append(paths.predicate + items, found.nodes, found.predicates);
      append(paths.code + items, found.nodes, paths_below);
      for (std::uint32_t i = 0; i < here; ++i) {
        const std::uint32_t both = 2 * i;
        const auto before =
            static_cast<std::uint32_t>(__builtin_popcount(found.nodes & ((4U << both) - 1)));
        paths.child[at + i] = ((items + before) << 2U) | ((found.nodes >> both) & 3U);
      }
      const auto nodes = static_cast<std::uint32_t>(__builtin_popcount(found.nodes));
      items += nodes;
      leaves += 2 * here - nodes;
    }
    begin = end;
  }
  paths.level_start[kLevels] = begin;
}

// ---- one tree ---------------------------------------------------------------------------------

// Where a tree's nodes and leaves lie, by level.
struct TreeRange {
  std::uint32_t node[kLevels + 1];  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t leaf[kLevels];      // NOLINT(modernize-avoid-c-arrays)
  unsigned depth;                   // levels with nodes
  bool fits;
};

// Takes the next tree, which begins where the cursors stand, and moves them behind it.
TreeRange next_tree(EnginePaths& paths) {
  TreeRange tree{};
  std::uint32_t width = 1;
  std::uint32_t nodes = 0;
  bool has_tables = true;
  unsigned level = 0;
  for (; level < kLevels && width > 0; ++level) {
    const std::uint32_t begin = paths.level_start[level];
    const std::uint32_t end = begin + width;
    const std::uint32_t below = (paths.child[end - 1] >> 2U) - paths.level_start[level + 1];
    tree.node[level] = begin;
    tree.leaf[level] = paths.leaf_start[level];
    paths.level_start[level] = end;
    paths.leaf_start[level] += 2 * width - below;
    nodes += width;
    // Every node of level 8 has a table of its own, besides the first table.
    has_tables = has_tables && (level != 8 || width < kEnginePathTables);
    width = below;
  }
  tree.node[level] = paths.level_start[level];
  if (level == kLevels) {
    paths.level_start[level] += width;
  }
  tree.depth = level;
  tree.fits = width == 0 && has_tables && nodes <= kEnginePathNodes;
  return tree;
}

// Computes the planes of every node from those of its children. The root's are the last.
const std::uint64_t* const* select_planes(EngineQuery& query, const TreeRange& tree) {
  EnginePaths& paths = *query.paths;
  const std::size_t words = query.blocks * kEngineBlockWords;
  std::uint64_t* next = query.path_planes;
  for (unsigned level = tree.depth; level-- > 0;) {
    EnginePathPlanes* here = paths.planes[level % 2];
    const EnginePathPlanes* below = paths.planes[(level + 1) % 2];
    const std::uint32_t begin = tree.node[level];
    const std::uint32_t count = paths.level_start[level] - begin;
    const std::uint32_t first_below = tree.node[level + 1];
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      const std::uint32_t child = paths.child[begin + slot];
      const std::uint32_t behind = (child >> 2U) - first_below;
      const EnginePathPlanes& if_one = below[(child & 2U) != 0 ? behind - 1 : kNone];
      const EnginePathPlanes& if_zero =
          below[(child & 1U) != 0 ? behind - 1 - ((child >> 1U) & 1U) : kNone];
      const std::uint32_t index = paths.predicate[begin + slot];
      const std::uint64_t* predicate = query.bitsets[index];
      if (predicate == nullptr) {
        predicate = materialise<Avx512Operations>(query, index);
      }
      EnginePathPlanes& out = here[slot];
      const bool is_one_taller = if_one.height > if_zero.height;
      const EnginePathPlanes& taller = is_one_taller ? if_one : if_zero;
      const std::uint64_t both = is_one_taller ? if_zero.height : if_one.height;
      out.height = 1 + taller.height;
      out.plane[0] = predicate;
      std::memcpy(out.plane + 1, taller.plane, (kLevels - 1) * sizeof(out.plane[0]));
      for (std::uint64_t plane = 0; plane < both; ++plane, next += words) {
        Avx512Operations::select(predicate, if_one.plane[plane], if_zero.plane[plane], query.blocks,
                                 next);
        out.plane[plane + 1] = next;
      }
    }
  }
  return paths.planes[0][0].plane;
}

void fill(std::uint8_t* out, std::uint32_t value, std::uint32_t count) {
  const __m512i values = _mm512_set1_epi8(static_cast<char>(value));
  if (count <= 64) {
    _mm512_mask_storeu_epi8(out, ~std::uint64_t{0} >> (64 - count), values);
    return;
  }
  _mm512_storeu_si512(out, values);
  _mm512_storeu_si512(out + 64, values);
}

// Numbers the leaves in the order of their levels. The tables map paths to numbers. Paths of more
// than eight predicates go through the table of the node that is eight levels down, whose marker
// the first table has: numbers from 255 downwards.
std::uint32_t number_leaves(const EngineQuery& query, const TreeRange& tree, unsigned deep_bits) {
  EnginePaths& paths = *query.paths;
  std::uint32_t number = 0;
  for (unsigned level = 0; level < tree.depth; ++level) {
    const std::uint32_t end = paths.leaf_start[level];
    if (level == 8) {
      for (std::uint32_t at = tree.node[8]; at < paths.level_start[8]; ++at) {
        paths.table[0][paths.code[at]] = static_cast<std::uint8_t>(tree.node[8] - at - 1);
      }
    }
    for (std::uint32_t at = tree.leaf[level]; at < end; ++at, ++number) {
      query.table[number] = query.leaf_values[paths.leaf[at] & ~kLeafRef];
      const std::uint32_t code = paths.leaf_code[at];
      if (level < 8) {
        fill(paths.table[0] + (code << (7 - level)), number, 1U << (7 - level));
      } else {
        const unsigned below = level - 7;
        const unsigned table = 256U - paths.table[0][code >> below];
        const std::uint32_t path = code & ((1U << below) - 1);
        fill(paths.table[table] + (path << (deep_bits - below)), number, 1U << (deep_bits - below));
      }
    }
  }
  return number;
}

// Maps bytes to bytes.
class ByteTable {
 public:
  explicit ByteTable(const std::uint8_t* table)
      : first_(_mm512_load_si512(table)),
        second_(_mm512_load_si512(table + 64)),
        third_(_mm512_load_si512(table + 128)),
        fourth_(_mm512_load_si512(table + 192)) {}
  [[nodiscard]] __m512i get(__m512i index) const {
    const __m512i low = _mm512_permutex2var_epi8(first_, index, second_);
    const __m512i high = _mm512_permutex2var_epi8(third_, index, fourth_);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
  }

 private:
  __m512i first_;
  __m512i second_;
  __m512i third_;
  __m512i fourth_;
};

EngineLanes to_lanes(__m512i value) {
  EngineLanes out;
  std::memcpy(&out, &value, sizeof(out));
  return out;
}

// Loads the planes of a path's predicates [first, first + bits), the earliest as the highest bit.
void code_planes(const EngineQuery& query, const std::uint64_t* const* root, unsigned depth,
                 unsigned first, unsigned bits, const std::uint64_t** out) {
  for (unsigned plane = 0; plane < bits; ++plane) {
    out[bits - 1 - plane] = first + plane < depth ? root[first + plane] : query.zeros;
  }
}

// Replaces the numbers that are still markers, by the next four or eight predicates.
template <unsigned Bits>
void renumber_deep(const EngineQuery& query, std::uint32_t tables,
                   const std::uint64_t* const* planes, std::size_t block, __m512i* numbers) {
  EngineLanes fields[Bits];  // NOLINT(modernize-avoid-c-arrays)
  weave_planes<Bits>(planes, block * kEngineBlockWords, fields);
  for (std::uint32_t t = 1; t < tables; ++t) {
    const __m512i marker = _mm512_set1_epi8(static_cast<char>(0U - t));
    const std::uint8_t* table = query.paths->table[t];
    if constexpr (Bits == 4) {
      // Four copies of sixteen entries, so that the upper bits of an index do not matter.
      const __m512i entries = _mm512_maskz_broadcast_i32x4(
          0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(table)));
      FORETUNE_UNROLL(4)
      for (unsigned i = 0; i < 4; ++i) {
        const __m512i low = lanes_of(fields[i]);
        const __m512i high = _mm512_maskz_srli_epi64(0xff, low, 4);
        numbers[i] = _mm512_mask_permutexvar_epi8(
            numbers[i], _mm512_cmpeq_epi8_mask(numbers[i], marker), low, entries);
        numbers[i + 4] = _mm512_mask_permutexvar_epi8(
            numbers[i + 4], _mm512_cmpeq_epi8_mask(numbers[i + 4], marker), high, entries);
      }
    } else {
      const ByteTable below(table);
      FORETUNE_UNROLL(8)
      for (unsigned i = 0; i < 8; ++i) {
        numbers[i] = _mm512_mask_mov_epi8(numbers[i], _mm512_cmpeq_epi8_mask(numbers[i], marker),
                                          below.get(lanes_of(fields[i])));
      }
    }
  }
}

// Covers leaves of up to eight predicates, of up to twelve, and of more.
enum class Reach { kEight, kTwelve, kSixteen };

template <unsigned Entries, Reach Far>
void add_paths(const EngineQuery& query, const std::uint64_t* const* root, unsigned depth,
               std::uint32_t tables) {
  constexpr unsigned kDeepBits = Far == Reach::kSixteen ? 8 : 4;
  const ByteTable renumber(query.paths->table[0]);
  const Avx512Operations::Lookup<8, Entries> lookup(query.table);
  const std::uint64_t* planes[8];        // NOLINT(modernize-avoid-c-arrays)
  const std::uint64_t* deep[kDeepBits];  // NOLINT(modernize-avoid-c-arrays)
  code_planes(query, root, depth, 0, 8, planes);
  code_planes(query, root, depth, 8, kDeepBits, deep);
  for (std::size_t block = 0; block < query.blocks; ++block) {
    EngineLanes fields[8];  // NOLINT(modernize-avoid-c-arrays)
    weave_planes<8>(planes, block * kEngineBlockWords, fields);
    __m512i numbers[8];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL(8)
    for (unsigned i = 0; i < 8; ++i) {
      numbers[i] = renumber.get(lanes_of(fields[i]));
    }
    if constexpr (Far != Reach::kEight) {
      renumber_deep<kDeepBits>(query, tables, deep, block, numbers);
    }
    double* sums = query.sums + block * kEngineBlock;
    FORETUNE_UNROLL(8)
    for (unsigned i = 0; i < 8; ++i) {
      lookup.add(to_lanes(numbers[i]), sums + i * kEngineBlockWords);
    }
  }
}

template <Reach Far>
void add_paths(const EngineQuery& query, const std::uint64_t* const* root, const TreeRange& tree) {
  const std::uint32_t leaves = number_leaves(query, tree, Far == Reach::kSixteen ? 8 : 4);
  const std::uint32_t tables = tree.depth > 8 ? 1 + query.paths->level_start[8] - tree.node[8] : 1;
  if (leaves <= 16) {
    add_paths<16, Far>(query, root, tree.depth, tables);
  } else if (leaves <= 32) {
    add_paths<32, Far>(query, root, tree.depth, tables);
  } else if (leaves <= 64) {
    add_paths<64, Far>(query, root, tree.depth, tables);
  } else {
    add_paths<256, Far>(query, root, tree.depth, tables);
  }
}

void run_cut_tree(EngineQuery& query, std::size_t tree_index, std::uint32_t root) {
  if ((root & kLeafRef) != 0) {
    const double value = query.leaf_values[root & ~kLeafRef];
    for (std::size_t i = 0; i < query.blocks * kEngineBlock; ++i) {
      query.sums[i] += value;
    }
    return;
  }
  const TreeRange tree = next_tree(*query.paths);
  if (!tree.fits) {
    run_tree<Avx512Operations>(query, query.trees[tree_index]);
    return;
  }
  const std::uint64_t* const* planes = select_planes(query, tree);
  if (tree.depth <= 8) {
    add_paths<Reach::kEight>(query, planes, tree);
  } else if (tree.depth <= 12) {
    add_paths<Reach::kTwelve>(query, planes, tree);
  } else {
    add_paths<Reach::kSixteen>(query, planes, tree);
  }
}

void run_trees_together(EngineQuery& query) {
  EnginePaths& paths = *query.paths;
  paths.planes[0][kNone].height = 0;
  paths.planes[1][kNone].height = 0;
  for (std::size_t first = 0; first < query.tree_count; first += query.trees_together) {
    const std::size_t rest = query.tree_count - first;
    const std::size_t count = rest < query.trees_together ? rest : query.trees_together;
    cut_trees(query, first, count);
    for (std::size_t t = 0; t < count; ++t) {
      run_cut_tree(query, first + t, paths.root[t]);
    }
  }
}

}  // namespace

const EngineKernels* engine_kernels_vbmi() {
  static constexpr EngineKernels kKernels{
      "AVX-512 with VBMI",
      &Avx512Operations::range,
      &Avx512Operations::quantise<std::uint8_t>,
      &Avx512Operations::quantise<std::uint16_t>,
      &run_trees_together,
      true,
      {&run_small<Avx512Operations, 1>, &run_small<Avx512Operations, 2>, nullptr, nullptr}};
  return &kKernels;
}

}  // namespace foretune
#else
namespace foretune {
const EngineKernels* engine_kernels_vbmi() { return nullptr; }
}  // namespace foretune
#endif
