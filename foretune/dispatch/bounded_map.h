// A map that keeps the keys added last: when there are too many, the oldest goes.
// Thread safety: as std::unordered_map. Cost: as std::unordered_map, and a list node per key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace foretune {

template <class Key, class Value>
class BoundedMap {
 public:
  // At least one key is kept.
  explicit BoundedMap(std::size_t most) : most_(std::max<std::size_t>(1, most)) {}

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] const Value* find(const Key& key) const {
    const auto place = values_.find(key);
    return place == values_.end() ? nullptr : &place->second.value;
  }

  // As the newest key, also one that was there. What had to go for it is returned.
  std::optional<std::pair<Key, Value>> put(const Key& key, Value value) {
    erase(key);
    std::optional<std::pair<Key, Value>> forgotten;
    if (values_.size() == most_) {
      auto oldest = values_.extract(*order_.front());
      order_.pop_front();
      forgotten.emplace(std::move(oldest.key()), std::move(oldest.mapped().value));
    }
    const auto place = values_.emplace(key, Node{std::move(value), order_.end()}).first;
    place->second.position = order_.insert(order_.end(), &place->first);
    return forgotten;
  }

  void erase(const Key& key) {
    if (const auto place = values_.find(key); place != values_.end()) {
      order_.erase(place->second.position);
      values_.erase(place);
    }
  }

  void clear() {
    values_.clear();
    order_.clear();
  }

  // visit(key, value) in no order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [key, node] : values_) {
      visit(key, node.value);
    }
  }

 private:
  struct Node {
    Value value;
    typename std::list<const Key*>::iterator position;
  };

  std::size_t most_;
  std::unordered_map<Key, Node> values_;
  std::list<const Key*> order_;  // of the map's keys, oldest first
};

}  // namespace foretune
