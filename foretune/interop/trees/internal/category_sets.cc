#include "foretune/interop/trees/internal/category_sets.h"

#include <utility>

namespace foretune {

std::uint32_t CategoryInterner::intern(std::span<const std::uint32_t> words) {
  while (!words.empty() && words.back() == 0) {
    words = words.first(words.size() - 1);
  }
  std::vector<std::uint32_t> key(words.begin(), words.end());
  const auto number = static_cast<std::uint32_t>(sets_->size());
  const auto [entry, added] = numbers_.emplace(std::move(key), number);
  if (added) {
    sets_->words.insert(sets_->words.end(), words.begin(), words.end());
    sets_->end.push_back(static_cast<std::uint32_t>(sets_->words.size()));
  }
  return entry->second;
}

}  // namespace foretune
