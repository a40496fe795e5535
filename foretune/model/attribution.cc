#include "foretune/model/attribution.h"

#include <cstdint>

#include "foretune/base/check.h"

namespace foretune {
namespace {

// Mean prediction of one tree over the rows that reach each of its nodes.
class NodeMeans {
 public:
  NodeMeans(const Forest& forest, const Forest::Tree& tree)
      : forest_(forest), tree_(tree), sums_(tree.node_count), counts_(tree.node_count) {}

  void add(std::span<const double> row) {
    path_.clear();
    std::int32_t at = root();
    while (at >= 0) {
      path_.push_back(static_cast<std::size_t>(at));
      at = next_node(forest_, tree_, at, row);
    }
    for (const std::size_t node : path_) {
      sums_[node] += leaf(at);
      ++counts_[node];
    }
    total_ += leaf(at);
  }

  [[nodiscard]] std::int32_t root() const { return tree_.node_count == 0 ? ~0 : 0; }
  [[nodiscard]] double total() const { return total_; }
  // Returns the mean of a leaf, or of a node that some row reached.
  [[nodiscard]] double mean(std::int32_t at) const {
    const auto node = static_cast<std::size_t>(at);
    return at < 0 ? leaf(at) : sums_[node] / static_cast<double>(counts_[node]);
  }

 private:
  [[nodiscard]] double leaf(std::int32_t at) const {
    return forest_.leaf_value[tree_.first_leaf + static_cast<std::uint32_t>(~at)];
  }

  const Forest& forest_;
  const Forest::Tree& tree_;
  std::vector<double> sums_;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> path_;
  double total_ = 0;
};

}  // namespace

std::vector<Attribution> attribute_paths(const Forest& forest, std::span<const double> rows,
                                         std::span<const std::size_t> explained) {
  const std::size_t width = forest.feature_count;
  const std::size_t count = width == 0 ? 0 : rows.size() / width;
  FORETUNE_CHECK(rows.size() == count * width);
  const auto row_at = [&](std::size_t i) { return rows.subspan(i * width, width); };
  std::vector<Attribution> out(explained.size());
  for (Attribution& attribution : out) {
    attribution.of_feature.assign(width, 0);
  }
  for (const Forest::Tree& tree : forest.trees) {
    NodeMeans means(forest, tree);
    for (std::size_t i = 0; i < count; ++i) {
      means.add(row_at(i));
    }
    for (std::size_t i = 0; i < explained.size(); ++i) {
      FORETUNE_CHECK(explained[i] < count);
      out[i].base += means.total() / static_cast<double>(count);
      std::int32_t at = means.root();
      while (at >= 0) {
        const std::int32_t next = next_node(forest, tree, at, row_at(explained[i]));
        const std::size_t node = tree.first_node + static_cast<std::uint32_t>(at);
        out[i].of_feature[forest.feature[node]] += means.mean(next) - means.mean(at);
        at = next;
      }
    }
  }
  return out;
}

}  // namespace foretune
