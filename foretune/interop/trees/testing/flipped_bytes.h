// A test that all parsers of foreign trees pass: damaged files. Thread safety: a free function.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "foretune/base/rng.h"

namespace foretune {

// Parses `rounds` copies of a good file, each with one to three bytes replaced. A parser refuses a
// copy with a message or returns a valid forest; it refuses more than 500 copies.
template <class Parse>
void expect_valid_forests_from_flipped_bytes(const std::string& good, int rounds,
                                             std::uint64_t seed, const Parse& parse) {
  Rng rng(seed);
  std::size_t refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text = good;
    for (std::uint64_t flips = 1 + rng.below(3); flips > 0; --flips) {
      text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    }
    const auto model = parse(text);
    if (!model) {
      EXPECT_FALSE(model.error().message.empty());
      ++refused;
    } else {
      EXPECT_TRUE(model->forest.validate()) << "seed " << seed << "\n" << text;
    }
  }
  EXPECT_GT(refused, 500U);
}

}  // namespace foretune
