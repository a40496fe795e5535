// Collects sets of categories for a forest, equal ones once. Internal to the module.
// Thread safety: a value of one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "foretune/model/forest/forest.h"

namespace foretune {

class CategoryInterner {
 public:
  // Adds to `sets`, which is empty and outlives this.
  explicit CategoryInterner(CategorySets& sets) : sets_(&sets) {}
  // The number of the set with these bits; zero words at the end make no difference.
  std::uint32_t intern(std::span<const std::uint32_t> words);

 private:
  CategorySets* sets_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace foretune
