// The engine of a forest and a small pool: trees as cells, without what no candidate can reach.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "foretune/model/forest/forest_engine.h"

namespace foretune {

// Leaves are numbered by bytes, and no more are reached than there are candidates.
void ForestEngine::choose_small(const Forest& forest) {
  constexpr std::size_t kMaxNumber = 256;
  constexpr std::size_t kMaxCells = std::size_t{1} << 30U;
  const std::size_t words = std::bit_ceil((candidates_ + 63) / 64);
  if (blocks_ > 1 || std::min<std::size_t>(candidates_, max_leaves_) > kMaxNumber ||
      forest.feature.size() + forest.leaf_value.size() > kMaxCells ||
      kernels_->run_small[std::countr_zero(words)] == nullptr) {
    return;
  }
  small_words_ = words;
}

// Writes trees in the order in which a query walks them. The candidates that can reach a node are
// known as far as predicates on config features tell.
class ForestEngine::CellWriter {
 public:
  CellWriter(ForestEngine& engine, const Forest& forest, const std::vector<std::uint32_t>& of_node)
      : engine_(engine), forest_(forest), of_node_(of_node) {}

  void add(const Forest::Tree& tree) {
    Mask all{};
    std::copy(engine_.small_all_.begin(), engine_.small_all_.end(), all.begin());
    engine_.roots_.push_back(0);
    waiting_.push_back({.at = tree.node_count == 0 ? -1 : 0, .mask = all});
    while (!waiting_.empty()) {
      const Side side = reached(tree, std::exchange(waiting_.back(), {}));
      waiting_.pop_back();
      link(side);
      write(tree, side);
    }
  }

 private:
  using Mask = std::array<std::uint64_t, kEngineBlockWords>;
  enum class Link : std::uint8_t { kRoot, kNext, kOther };
  // A side of a node: its own node or ~leaf, the cell that it hangs on, and the candidates.
  struct Side {
    std::int32_t at = 0;
    Link link = Link::kRoot;
    std::size_t parent = 0;
    Mask mask{};
  };

  [[nodiscard]] bool is_on_config(std::uint32_t predicate) const {
    return predicate >= engine_.first_config_predicate_ &&
           predicate - engine_.first_config_predicate_ < engine_.config_bitsets_.size();
  }

  // Returns the parts of a mask on both sides of a predicate: the same where only a query knows.
  [[nodiscard]] std::pair<Mask, Mask> split(const Mask& mask, std::uint32_t predicate) const {
    std::pair<Mask, Mask> out(mask, mask);
    if (is_on_config(predicate)) {
      const std::uint64_t* bits =
          engine_.config_bitsets_[predicate - engine_.first_config_predicate_];
      for (std::size_t word = 0; word < engine_.small_words_; ++word) {
        out.first[word] &= bits[word];
        out.second[word] &= ~bits[word];
      }
    }
    return out;
  }

  // Follows predicates that send all candidates the same way.
  [[nodiscard]] Side reached(const Forest::Tree& tree, Side side) const {
    while (side.at >= 0) {
      const std::size_t node = tree.first_node + static_cast<std::uint32_t>(side.at);
      const auto [yes, no] = split(side.mask, of_node_[node]);
      if (yes != Mask{} && no != Mask{}) {
        break;
      }
      side.at = no == Mask{} ? forest_.left[node] : forest_.right[node];
    }
    return side;
  }

  void link(const Side& side) {
    const auto here = static_cast<std::uint32_t>(engine_.cells_.size());
    const std::uint32_t leaf = side.at < 0 ? kEngineLeafRef : 0;
    if (side.link == Link::kRoot) {
      engine_.roots_.back() = here | leaf;
    } else if (side.link == Link::kNext) {
      engine_.cells_[side.parent] |= leaf;
    } else {
      engine_.cells_[side.parent] |= std::uint64_t{here | leaf} << 32U;
    }
  }

  void write(const Forest::Tree& tree, const Side& side) {
    if (side.at < 0) {
      const double value =
          forest_.leaf_value[tree.first_leaf + static_cast<std::uint32_t>(~side.at)];
      engine_.cells_.push_back(std::bit_cast<std::uint64_t>(value));
      return;
    }
    const std::size_t node = tree.first_node + static_cast<std::uint32_t>(side.at);
    const auto [yes, no] = split(side.mask, of_node_[node]);
    const std::size_t here = engine_.cells_.size();
    engine_.cells_.push_back(of_node_[node]);
    waiting_.push_back(
        {.at = forest_.right[node], .link = Link::kOther, .parent = here, .mask = no});
    waiting_.push_back(
        {.at = forest_.left[node], .link = Link::kNext, .parent = here, .mask = yes});
  }

  ForestEngine& engine_;
  const Forest& forest_;
  const std::vector<std::uint32_t>& of_node_;
  std::vector<Side> waiting_;
};

void ForestEngine::build_cells(const Forest& forest, const std::vector<std::uint32_t>& of_node) {
  small_all_.assign(small_words_, 0);
  for (std::size_t i = 0; i < candidates_; ++i) {
    small_all_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  for (const std::uint64_t* bits : config_bitsets_) {
    small_config_words_.insert(small_config_words_.end(), bits, bits + small_words_);
  }
  cells_.reserve(forest.feature.size() + forest.leaf_value.size());
  CellWriter writer(*this, forest, of_node);
  for (const Forest::Tree& tree : forest.trees) {
    writer.add(tree);
  }
}

}  // namespace foretune
