// A map that keeps the keys added last: when it is full, the oldest key is erased. With a
// transparent Hash, find() takes whatever the hash and == take.
// Thread safety: as std::unordered_map. Cost: as std::unordered_map, plus a list node per key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace foretune {

template <class Key, class Value, class Hash = std::hash<Key>>
class BoundedMap {
 public:
  // Keeps at most `most` keys, and at least one.
  explicit BoundedMap(std::size_t most) : most_(std::max<std::size_t>(1, most)) {}

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  template <class Lookup>
  [[nodiscard]] const Value* find(const Lookup& key) const {
    const auto place = values_.find(key);
    return place == values_.end() ? nullptr : &place->second.value;
  }

  // Adds the key as the newest one, even when the map had it. Returns the pair that was erased to
  // make room for it.
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

  // Calls visit(key, value) for every pair, in no particular order.
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
  std::unordered_map<Key, Node, Hash, std::equal_to<>> values_;
  std::list<const Key*> order_;  // of the map's keys, oldest first
};

}  // namespace foretune
