// Evaluates one forest over a fixed pool of candidates in a few cycles for each candidate and tree,
// with exactly the results of predict_reference(). Everything that depends on candidates only is
// computed once. Splits on problem features and splits that all candidates take the same way are
// decided once per query, so that most of every tree is gone before any candidate is evaluated.
// The forests' scorer builds on the engine and adds the features.
//
//   FORETUNE_TRY(const auto engine, ForestEngine::create(forest, kinds, config_columns, count));
//   codes and scratch: engine->codes_bytes() and engine->scratch_bytes(), aligned to 64
//   engine->begin(codes);
//   for each chunk of kEngineBlock candidates: engine->add_chunk(codes, first, n, columns, 512);
//   engine->run(codes, scratch, problem_values);
//   engine->sum(scratch, candidate)
//
// Thread safety: immutable after creation; every thread brings its own workspace.
// Cost: no allocation and no lock after create().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/engine_kernels.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

class ForestEngine {
 public:
  // `forest` is valid (Forest::validate()). `kinds` has the kind of every feature. `config_columns`
  // has the columns of kind kConfig, in feature order, `candidates` values each. Errors:
  // kUnsupported for trees of more than 32,768 leaves, features of more than 65,535 thresholds, or
  // categorical splits on interaction features.
  static Result<std::unique_ptr<ForestEngine>> create(const Forest& forest,
                                                      std::span<const FeatureKind> kinds,
                                                      std::span<const double> config_columns,
                                                      std::size_t candidates, CpuIsa isa);
  // Uses the kernels given. Errors: as above, and kUnsupported for nullptr (this build has none).
  static Result<std::unique_ptr<ForestEngine>> create(const Forest& forest,
                                                      std::span<const FeatureKind> kinds,
                                                      std::span<const double> config_columns,
                                                      std::size_t candidates,
                                                      const EngineKernels* kernels);

  // Sizes of the workspace of a query: its interaction columns as codes, and scratch memory that
  // engines may share when they run one after another.
  [[nodiscard]] std::size_t codes_bytes() const { return codes_bytes_; }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] std::size_t candidates() const { return candidates_; }

  void begin(std::byte* codes) const;
  // Adds the interaction columns of candidates [first, first + count), column-major with `stride`.
  // Chunks begin at multiples of kEngineBlock and have at most that many candidates.
  void add_chunk(std::byte* codes, std::size_t first, std::size_t count, const double* columns,
                 std::size_t stride) const;
  // `problem_values` has the values of the features of kind kProblem, in feature order.
  void run(const std::byte* codes, std::byte* scratch,
           std::span<const double> problem_values) const;
  // Returns the sum of a candidate; valid after run() until the scratch is used again.
  [[nodiscard]] double sum(const std::byte* scratch, std::size_t candidate) const {
    double out = 0;
    const std::size_t position = small_words_ > 0 ? engine_small_position(candidate, small_words_)
                                                  : engine_position(candidate);
    std::memcpy(&out, scratch + sums_offset_ + position * sizeof(double), sizeof(out));
    return out;
  }

 private:
  // One feature and its thresholds, ascending, followed by as many infinities and one more.
  struct Feature {
    FeatureKind kind = FeatureKind::kInteraction;
    std::uint32_t column = 0;  // among those of its kind
    std::vector<double> thresholds;
    std::uint32_t threshold_count = 0;
    bool wide = false;
    bool masks_nan = false;   // some split sends NaN its own way
    bool masks_zero = false;  // some split sends zeros their own way
    std::size_t codes_offset = 0;
    std::size_t nan_offset = 0;
    std::size_t zero_offset = 0;
  };
  // Predicates of one feature that treat missing values alike, by ascending rank. The rank is the
  // position of the threshold, or of the set's number, among the thresholds of the feature.
  struct Group {
    std::uint32_t feature = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    Forest::Missing missing = Forest::Missing::kNone;
    bool default_left = false;
  };
  // One block of a bitset, on a cache line of its own: a vector across two costs two loads.
  struct alignas(64) Block {
    std::array<std::uint64_t, kEngineBlockWords> words{};
  };
  // The facts that a query keeps about an interaction column.
  struct Seen {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    bool any_nan = false;
    bool any_zero_or_nan = false;
  };

  class ConfigBits;
  class CellWriter;

  ForestEngine() = default;
  void choose_small(const Forest& forest);
  Status measure_trees(const Forest& forest);
  void collect_thresholds(const Forest& forest, const std::vector<std::uint32_t>& examples);
  std::vector<std::uint32_t> build_predicates(const Forest& forest,
                                              const std::vector<std::uint32_t>& examples);
  void build_trees(const Forest& forest, const std::vector<std::uint32_t>& of_node);
  void build_cells(const Forest& forest, const std::vector<std::uint32_t>& of_node);
  void build_outcomes(const Forest& forest, std::vector<std::uint32_t> of_node);
  void build_config_bitsets(std::span<const double> config_columns);
  void lay_out_workspace();
  void mark_missing(std::byte* codes, const Feature& feature, Seen& seen, std::size_t first,
                    std::size_t count, const double* values) const;
  [[nodiscard]] bool contains(const Feature& feature, std::uint32_t rank, double value) const {
    return categories_.contains(static_cast<std::size_t>(feature.thresholds[rank]), value);
  }
  void run_small(std::byte* scratch, const std::uint8_t* states, const EngineColumn* columns) const;
  void decide_problem_group(const Group& group, double value, std::uint8_t* states) const;
  void decide_interaction_group(const Group& group, const Seen& seen, std::uint8_t* states) const;

  const EngineKernels* kernels_ = nullptr;
  std::size_t candidates_ = 0;
  std::size_t blocks_ = 0;
  std::vector<Feature> features_;
  std::vector<std::uint32_t> interaction_features_;
  std::vector<EngineTree> trees_;
  std::vector<EngineNode> nodes_;
  std::vector<double> leaf_values_;
  std::vector<EnginePredicate> predicates_;
  std::vector<Group> groups_;
  CategorySets categories_;
  std::vector<const std::uint64_t*> config_bitsets_;  // of the predicates on config features
  std::vector<std::uint8_t> config_states_;           // the same
  std::uint32_t first_config_predicate_ = 0;
  std::uint32_t interaction_predicates_ = 0;
  std::vector<Block> bit_storage_;  // zeros, ones, config bitsets
  const std::uint64_t* zeros_ = nullptr;
  const std::uint64_t* ones_ = nullptr;
  // Only for small pools: words for each predicate (0 for other pools), the trees as cells, and the
  // candidates and predicates on config features as words.
  std::size_t small_words_ = 0;
  std::vector<std::uint64_t> cells_;
  std::vector<std::uint64_t> small_all_;
  std::vector<std::uint64_t> small_config_words_;
  // Also for kernels that number leaves by paths.
  std::vector<std::uint32_t> roots_;
  std::vector<std::uint32_t> predicate_of_;
  std::vector<std::uint32_t> outcomes_;
  std::size_t trees_together_ = 1;
  std::uint32_t value_stack_ = 1;
  std::uint32_t max_leaves_ = 1;

  std::size_t codes_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::size_t seen_offset_ = 0;
  std::size_t columns_offset_ = 0;
  std::size_t bitsets_offset_ = 0;
  std::size_t states_offset_ = 0;
  std::size_t paths_offset_ = 0;
  std::size_t path_planes_offset_ = 0;
  std::array<std::size_t, 6> path_lists_offset_{};
  std::size_t bit_space_offset_ = 0;
  std::size_t small_stack_offset_ = 0;
  std::size_t temporaries_offset_ = 0;
  std::size_t values_offset_ = 0;
  std::size_t stack_offset_ = 0;
  std::size_t postfix_offset_ = 0;
  std::size_t table_offset_ = 0;
  std::size_t sums_offset_ = 0;
};

}  // namespace foretune
