#include "foretune/graph/blocks.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/graph/ops.h"

namespace foretune::graph {

namespace {

// Steps between a layer and the operations that have to be equal around it. Three tell the queries
// of an attention from its values: reshape, transpose, then different operands of products.
constexpr int kRounds = 3;

// Numbers keys by first appearance: equal numbers mean equal keys, not only equal hashes.
class KeyNumbers {
 public:
  std::int32_t of(const std::vector<std::int64_t>& key) {
    return numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::vector<std::int64_t>, std::int32_t> numbers_;
};

template <class Values>
void append(std::vector<std::int64_t>& key, const Values& values) {
  key.push_back(static_cast<std::int64_t>(std::size(values)));
  key.insert(key.end(), std::begin(values), std::end(values));
}

// Returns a number for each node, which is the same for equal operations.
std::vector<std::int32_t> operation_kinds(const Network& network) {
  KeyNumbers numbers;
  std::vector<std::int32_t> kinds;
  for (const Node& node : network.nodes()) {
    std::vector<std::int64_t> key;
    append(key, node.op->name);
    append(key, node.attributes.integers);
    key.push_back(static_cast<std::int64_t>(node.attributes.numbers.size()));
    for (const double number : node.attributes.numbers) {
      key.push_back(std::bit_cast<std::int64_t>(number));
    }
    for (const TensorId id : node.inputs) {
      key.push_back(network.tensor(id).is_constant() ? 1 : 0);
      append(key, network.tensor(id).shape);
    }
    append(key, network.tensor(node.output).shape);
    kinds.push_back(numbers.of(key));
  }
  return kinds;
}

// Returns the nodes that compute each node's operands, without those of constants. The network's
// first input counts as -1: it lies directly before the first node, as the input of a block lies
// before the block. Others lie too far before it to be the operand of an earlier repeat.
std::vector<std::vector<std::int32_t>> producing_nodes(const Network& network) {
  std::vector<std::vector<std::int32_t>> producers;
  std::map<TensorId, std::int32_t> inputs;
  for (const TensorId id : network.inputs()) {
    inputs.emplace(id, -1 - static_cast<std::int32_t>(inputs.size() * 2 * kMaxBlockLength));
  }
  for (const Node& node : network.nodes()) {
    producers.emplace_back();
    for (const TensorId id : node.inputs) {
      if (!network.tensor(id).is_constant()) {
        const auto input = inputs.find(id);
        producers.back().push_back(input == inputs.end() ? network.tensor(id).node : input->second);
      }
    }
  }
  return producers;
}

// Returns a number for each node, which is the same where all operations within kRounds steps are
// equal and equally connected.
std::vector<std::int32_t> surroundings(const Network& network) {
  const auto producers = producing_nodes(network);
  std::vector<std::int32_t> now = operation_kinds(network);
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> readers(now.size());
  std::vector<bool> is_output(now.size(), false);
  for (std::size_t i = 0; i < producers.size(); ++i) {
    for (std::size_t operand = 0; operand < producers[i].size(); ++operand) {
      if (producers[i][operand] >= 0) {
        readers[static_cast<std::size_t>(producers[i][operand])].emplace_back(i, operand);
      }
    }
  }
  for (const TensorId id : network.outputs()) {
    if (network.tensor(id).node >= 0) {
      is_output[static_cast<std::size_t>(network.tensor(id).node)] = true;
    }
  }
  for (int round = 0; round < kRounds; ++round) {
    KeyNumbers numbers;
    std::vector<std::int32_t> next;
    for (std::size_t i = 0; i < now.size(); ++i) {
      std::vector<std::int64_t> key{now[i], is_output[i] ? 1 : 0};
      for (const std::int32_t producer : producers[i]) {
        key.push_back(producer < 0 ? -1 : now[static_cast<std::size_t>(producer)]);
      }
      // Readers have no order of their own.
      std::vector<std::pair<std::int64_t, std::int64_t>> behind;
      for (const auto& [reader, operand] : readers[i]) {
        behind.emplace_back(now[reader], operand);
      }
      std::sort(behind.begin(), behind.end());
      for (const auto& [number, operand] : behind) {
        key.push_back(number);
        key.push_back(operand);
      }
      next.push_back(numbers.of(key));
    }
    now = std::move(next);
  }
  return now;
}

// Nodes [begin, end).
struct NodeRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Sets that are joined, each known by its smallest member.
class JoinedSets {
 public:
  explicit JoinedSets(std::size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  std::size_t find(std::size_t member) {
    while (parents_[member] != member) {
      parents_[member] = parents_[parents_[member]];
      member = parents_[member];
    }
    return member;
  }
  // Returns true when the two were in different sets.
  bool join(std::size_t a, std::size_t b) {
    const auto [first, second] = std::minmax({find(a), find(b)});
    parents_[second] = first;
    return first != second;
  }

 private:
  std::vector<std::size_t> parents_;
};

// Looks for stretches of nodes that do the same as those `length` later, and takes the blocks in
// them from the longest cover down. Looks again at the rest of those that a taken block overlaps.
class BlockFinder {
 public:
  explicit BlockFinder(const Network& network)
      : kinds_(operation_kinds(network)),
        producers_(producing_nodes(network)),
        patterns_(read_patterns()),
        taken_(kinds_.size(), 0),
        has_weights_(kinds_.size(), false),
        passing_(kinds_.size() + 1, 0) {
    std::vector<std::size_t> last_reader(kinds_.size(), 0);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      has_weights_[i] = has_weights(*network.nodes()[i].op);
      for (const std::int32_t producer : producers_[i]) {
        if (producer >= 0) {
          last_reader[static_cast<std::size_t>(producer)] = i;
        }
      }
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (last_reader[i] > i) {
        ++passing_[i + 1];
        --passing_[last_reader[i] + 1];
      }
    }
    std::partial_sum(passing_.begin(), passing_.end(), passing_.begin());
  }

  std::vector<RepeatedBlock> run() {
    const std::size_t longest = std::min(kinds_.size() / 2, kMaxBlockLength);
    for (std::size_t length = 1; length <= longest; ++length) {
      add_stretches(length);
    }
    std::vector<RepeatedBlock> blocks;
    while (!open_.empty()) {
      const Candidate best = open_.top();
      open_.pop();
      const auto begin = taken_.begin() + static_cast<std::ptrdiff_t>(best.block.first);
      const auto end = begin + static_cast<std::ptrdiff_t>(best.cover());
      if (best.is_exact && std::find(begin, end, 1) == end) {
        std::fill(begin, end, 1);
        blocks.push_back(best.block);
      } else {
        look_at_rest(best);
      }
    }
    return blocks;
  }

 private:
  struct Candidate {
    RepeatedBlock block;
    NodeRange stretch;      // in which the block lies
    bool is_exact = false;  // false: its cover is an upper bound, its begin not chosen yet

    [[nodiscard]] std::size_t cover() const { return block.length * block.times; }
    bool operator<(const Candidate& other) const {
      return std::tuple(cover(), other.block.length, other.block.first) <
             std::tuple(other.cover(), block.length, block.first);
    }
  };

  // Returns numbers that are the same for equal operations that read at the same distances.
  [[nodiscard]] std::vector<std::int32_t> read_patterns() const {
    KeyNumbers numbers;
    std::vector<std::int32_t> patterns;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      std::vector<std::int64_t> key{kinds_[i]};
      for (const std::int32_t producer : producers_[i]) {
        key.push_back(static_cast<std::int64_t>(i) - producer);
      }
      patterns.push_back(numbers.of(key));
    }
    return patterns;
  }

  // Returns true when a node and the one `length` later are equal and read each operand from the
  // same distance, or both from one tensor.
  [[nodiscard]] bool does_same(std::size_t node, std::size_t length) const {
    if (patterns_[node] == patterns_[node + length]) {
      return true;
    }
    if (kinds_[node] != kinds_[node + length]) {
      return false;
    }
    const std::vector<std::int32_t>& here = producers_[node];
    const std::vector<std::int32_t>& there = producers_[node + length];
    for (std::size_t i = 0; i < here.size(); ++i) {
      const std::int32_t step = there[i] - here[i];
      if (step != 0 && step != static_cast<std::int32_t>(length)) {
        return false;
      }
    }
    return true;
  }

  // A stretch holds `length` nodes or more that do the same as those behind them, so it is enough
  // to look at every such node and from there to both sides.
  void add_stretches(std::size_t length) {
    const std::size_t last = kinds_.size() - length;
    for (std::size_t i = 0; i < last;) {
      std::size_t begin = i;
      std::size_t end = i;
      while (end < last && does_same(end, length)) {
        ++end;
      }
      while (begin > 0 && end > i && does_same(begin - 1, length)) {
        --begin;
      }
      if (end - begin >= length) {
        // Equal nodes before the stretch may make another repeat.
        const bool may_grow = begin > 0 && kinds_[begin - 1] == kinds_[begin - 1 + length];
        open_.push({.block = {begin, length, (end - begin) / length + (may_grow ? 2 : 1)},
                    .stretch = {begin, end + length}});
      }
      i += ((end - i) / length + 1) * length;
    }
  }

  void look_at_rest(const Candidate& candidate) {
    const auto at = [&](std::size_t node) {
      return taken_.begin() + static_cast<std::ptrdiff_t>(node);
    };
    const auto end = at(candidate.stretch.end);
    for (auto free = at(candidate.stretch.begin); free < end;) {
      const auto taken = std::find(free, end, 1);
      if (static_cast<std::size_t>(taken - free) >= 2 * candidate.block.length) {
        add_blocks(candidate.block.length, {static_cast<std::size_t>(free - taken_.begin()),
                                            static_cast<std::size_t>(taken - taken_.begin())});
      }
      free = std::find(taken, end, 0);
    }
  }

  // Adds the blocks of a stretch. One ends where a repeat does not follow from the one before it,
  // and begins before the stretch where only what the first repeat reads differs.
  void add_blocks(std::size_t length, NodeRange stretch) {
    const std::size_t first = best_first(length, stretch);
    const std::size_t times = (stretch.end - first) / length;
    std::size_t from = 0;
    for (std::size_t next = 1; next <= times; ++next) {
      if (next < times && follows(first + next * length, length)) {
        continue;
      }
      if (next - from >= 2 && is_connected(first + from * length, length)) {
        const std::size_t begin = first + from * length;
        const std::size_t more = from == 0 && may_precede(begin, length) ? 1 : 0;
        open_.push({.block = {begin - more * length, length, next - from + more},
                    .stretch = {from == 0 ? stretch.begin : first + from * length,
                                next == times ? stretch.end : first + next * length},
                    .is_exact = true});
      }
      from = next;
    }
  }

  // Returns the places in its repeat from which a node and the one `length` later read the same: a
  // tensor that both read has to come from outside of both repeats.
  [[nodiscard]] std::size_t room(std::size_t node, std::size_t length) const {
    std::int64_t room = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < producers_[node].size(); ++i) {
      if (producers_[node][i] == producers_[node + length][i]) {
        room = std::min(room, static_cast<std::int64_t>(node) - producers_[node][i]);
      }
    }
    return static_cast<std::size_t>(room);
  }

  // Returns true when no operation of a repeat stands apart from the others.
  [[nodiscard]] bool is_connected(std::size_t begin, std::size_t length) const {
    JoinedSets sets(length);
    std::size_t parts = length;
    for (std::size_t i = 0; i < length; ++i) {
      for (const std::int32_t producer : producers_[begin + i]) {
        if (producer >= static_cast<std::int64_t>(begin)) {
          parts -= sets.join(i, static_cast<std::size_t>(producer) - begin) ? 1U : 0U;
        }
      }
    }
    return parts == 1;
  }

  // Returns true when the repeat at `begin` reads as the one before it does, and reads from it.
  [[nodiscard]] bool follows(std::size_t begin, std::size_t length) const {
    bool reads_last = false;
    for (std::size_t i = begin; i < begin + length; ++i) {
      if (i - begin >= room(i - length, length)) {
        return false;
      }
      for (const std::int32_t producer : producers_[i]) {
        reads_last = reads_last || (producer >= static_cast<std::int64_t>(begin - length) &&
                                    producer < static_cast<std::int64_t>(begin));
      }
    }
    return reads_last;
  }

  // Returns true when the free nodes before `begin` are a repeat that differs from the one at
  // `begin` only in what it reads from outside.
  [[nodiscard]] bool may_precede(std::size_t begin, std::size_t length) const {
    if (begin < length) {
      return false;
    }
    const auto here = static_cast<std::int64_t>(begin);
    const auto step = static_cast<std::int64_t>(length);
    for (std::size_t i = begin; i < begin + length; ++i) {
      if (taken_[i - length] == 1 || kinds_[i - length] != kinds_[i]) {
        return false;
      }
      for (std::size_t operand = 0; operand < producers_[i].size(); ++operand) {
        const std::int64_t before = producers_[i - length][operand];
        const std::int64_t now = producers_[i][operand];
        if (before + step != now && (before >= here - step || now >= here)) {
          return false;
        }
      }
    }
    return true;
  }

  // Returns where the repeats of a stretch should begin.
  [[nodiscard]] std::size_t best_first(std::size_t length, NodeRange stretch) const {
    // By offset: the nodes that would read a tensor of their own repeat with the next one.
    std::vector<std::int64_t> misfits(length + 1, 0);
    const auto forbid = [&](std::size_t begin, std::size_t end) {
      ++misfits[begin];
      --misfits[end];
    };
    for (std::size_t i = stretch.begin; i + length < stretch.end; ++i) {
      const std::size_t room = this->room(i, length);
      if (room >= length) {
        continue;
      }
      // The node's place is (at - offset) modulo length: below `room` for offsets in
      // (at - room, at].
      const std::size_t at = (i - stretch.begin) % length;
      const std::size_t fits = at + 1 >= room ? at + 1 - room : 0;
      forbid(0, fits);
      if (i >= stretch.begin + length) {  // else the node lies before the first repeat
        forbid(at + 1, at + 1 >= room ? length : length - (room - at - 1));
      }
    }
    std::partial_sum(misfits.begin(), misfits.end(), misfits.begin());
    const std::size_t most = stretch.end - stretch.begin;
    const auto rank = [&](std::size_t offset) {
      const std::size_t first = stretch.begin + offset;
      return std::tuple(misfits[offset], most - (most - offset) / length, passing_[first + length],
                        !has_weights_[first]);
    };
    std::size_t best = 0;
    for (std::size_t offset = 1; offset < length && offset + 2 * length <= most; ++offset) {
      if (rank(offset) < rank(best)) {
        best = offset;
      }
    }
    return stretch.begin + best;
  }

  std::vector<std::int32_t> kinds_;
  std::vector<std::vector<std::int32_t>> producers_;
  std::vector<std::int32_t> patterns_;
  std::vector<std::uint8_t> taken_;  // 1: in a block
  std::vector<bool> has_weights_;
  // By node: tensors of nodes before it that are read from it on.
  std::vector<std::int64_t> passing_;
  std::priority_queue<Candidate> open_;
};

}  // namespace

std::vector<RepeatedBlock> repeated_blocks(const Network& network) {
  return BlockFinder(network).run();
}

std::vector<std::int32_t> alike_layers(const Network& network) {
  const std::span<const Node> nodes = network.nodes();
  JoinedSets sets(nodes.size());
  const std::vector<std::int32_t> around = surroundings(network);
  std::vector<std::size_t> first_of(nodes.size(), nodes.size());  // by number of the surroundings
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t& first = first_of[static_cast<std::size_t>(around[i])];
    first = std::min(first, i);
    sets.join(first, i);
  }
  for (const RepeatedBlock& block : repeated_blocks(network)) {
    for (std::size_t i = block.length; i < block.length * block.times; ++i) {
      sets.join(block.first + i - block.length, block.first + i);
    }
  }
  std::vector<std::int32_t> classes;
  std::map<std::size_t, std::int32_t> numbers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (has_weights(*nodes[i].op)) {
      const auto number = static_cast<std::int32_t>(numbers.size());
      classes.push_back(numbers.try_emplace(sets.find(i), number).first->second);
    }
  }
  return classes;
}

}  // namespace foretune::graph
