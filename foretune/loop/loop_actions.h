// Actions that name their loop as a list of fixed length: an operation for every level a nest may
// have, and stopping. The list is the same for every computation and instruction set, since splits
// count whole vectors as well as elements, so that one policy chooses from it everywhere.
//
//   const LoopActions actions(computation, VectorUnit::of(CpuIsa::kAvx512));
//   std::vector<std::uint8_t> mask(LoopActions::kCount);
//   actions.write_mask(nest, mask);
//   FORETUNE_TRY(nest, actions.apply(nest, index));   // of an index with mask[index] != 0
//
// Thread safety: immutable. The computation must outlive it. Cost: a mask takes about a
// microsecond, an action some hundred nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

class LoopActions {
 public:
  // Levels with actions; nests of more loops than this are not built.
  static constexpr std::size_t kLevels = 12;
  // Positions of operations are part of trained policies: never reorder, add at the end.
  static constexpr std::array<int, 11> kSplits = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};
  static constexpr std::array<int, 7> kVectorSplits = {1, 2, 3, 4, 6, 8, 16};  // times the lanes
  enum Operation : std::uint8_t {
    kSplit = 0,
    kVectorSplit = kSplits.size(),
    kSwap = kVectorSplit + kVectorSplits.size(),
    kHoist,  // as far out as the loops over the same variable allow, at least two levels
    kSink,   // as far in, at least two levels
    kMerge,
    kUnroll,
    kVectorize,
    kParallelize,
    kBlock,
    kPackFirst,
    kPackSecond,
    kOperations,
  };
  static constexpr std::size_t kStop = kLevels * kOperations;
  static constexpr std::size_t kCount = kStop + 1;

  // At most kLevels of `limits` count.
  LoopActions(const Computation& computation, const VectorUnit& unit, const Limits& limits = {});

  // Sets mask[i] to 1 where action i is legal and leads to another nest, else to 0. One of two
  // actions that mean the same wherever both are legal is masked. Stopping is always legal. `nest`
  // passes check() and has at most kLevels loops; `mask` has kCount places.
  void write_mask(const Nest& nest, std::span<std::uint8_t> mask) const;
  // Returns the action as the nest takes it; nothing for stopping and beyond the last loop.
  [[nodiscard]] std::optional<Action> action(const Nest& nest, std::size_t index) const;
  // Returns the nest after an action; stopping returns the nest itself. Errors: why the action is
  // not legal.
  [[nodiscard]] Result<Nest> apply(const Nest& nest, std::size_t index) const;
  // Returns false for an operation that no mask of this instruction set allows, because another one
  // means the same.
  [[nodiscard]] bool offers(std::size_t operation) const {
    return operation >= kSwap || factors_[operation] > 0;
  }
  // "split 1 by 4", "vectorize 3", "stop"; for people.
  [[nodiscard]] std::string text(std::size_t index) const;

 private:
  // The level that hoisting or sinking a loop leads to.
  [[nodiscard]] static std::size_t outermost_level(const Nest& nest, std::size_t level);
  [[nodiscard]] static std::size_t innermost_level(const Nest& nest, std::size_t level);
  [[nodiscard]] bool may_move(const Nest& nest, std::size_t from, std::size_t to) const;
  [[nodiscard]] bool may_merge(const Nest& nest, std::size_t level) const;
  [[nodiscard]] bool may_pack(const Nest& nest, std::size_t level, std::size_t input) const;
  [[nodiscard]] bool moves(std::size_t input, const Loop& loop) const {
    return moves_[input][loop.var];
  }
  void mask_splits(const Nest& nest, std::size_t level, std::span<std::uint8_t> row) const;
  void mask_marks(const Nest& nest, std::size_t level, std::span<std::uint8_t> row) const;

  const Computation& computation_;
  std::size_t max_loops_;
  std::array<int, kSwap> factors_{};  // 0: another operation splits by the same
  std::array<std::array<bool, kMaxVars>, 2> moves_{};
};

}  // namespace foretune::loop
