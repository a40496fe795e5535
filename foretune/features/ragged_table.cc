#include "foretune/features/ragged_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::size_t kQuarters = 4;
constexpr std::array<std::string_view, 5> kPools{"mean", "least", "most", "first", "last"};
constexpr std::size_t kPoolsOfColumn = kPools.size() + kQuarters;

// In the order of the names. An empty sequence, and a quarter without an element, give zeros.
void pool(std::span<const double> rows, std::size_t columns, std::size_t column,
          std::span<double, kPoolsOfColumn> out) {
  const std::size_t elements = rows.size() / columns;
  std::fill(out.begin(), out.end(), 0.0);
  if (elements == 0) {
    return;
  }
  const auto value = [&](std::size_t element) { return rows[element * columns + column]; };
  double least = value(0);
  double most = value(0);
  std::array<double, kQuarters> sums{};
  std::array<std::size_t, kQuarters> counts{};
  for (std::size_t i = 0; i < elements; ++i) {
    least = std::min(least, value(i));
    most = std::max(most, value(i));
    const std::size_t quarter = i * kQuarters / elements;
    sums[quarter] += value(i);
    ++counts[quarter];
  }
  double sum = 0;
  for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
    sum += sums[quarter];
    if (counts[quarter] > 0) {
      out[kPools.size() + quarter] = sums[quarter] / static_cast<double>(counts[quarter]);
    }
  }
  out[0] = sum / static_cast<double>(elements);
  out[1] = least;
  out[2] = most;
  out[3] = value(0);
  out[4] = value(elements - 1);
}

}  // namespace

RaggedTable::RaggedTable(std::span<const FeatureInfo> of_problem, std::vector<TokenInfo> tokens)
    : tokens_(std::move(tokens)), columns_(of_problem.begin(), of_problem.end()) {
  columns_.push_back({"log2_elements", FeatureKind::kInteraction, "log2 of the length"});
  const auto add = [this](std::string name, const TokenInfo& token) {
    columns_.push_back(
        {texts_.emplace_back(std::move(name)), FeatureKind::kInteraction, token.description});
  };
  for (const TokenInfo& token : tokens_) {
    for (const std::string_view name : kPools) {
      add(concat(name, "_", token.name), token);
    }
    for (std::size_t quarter = 1; quarter <= kQuarters; ++quarter) {
      add(concat("quarter", quarter, "_", token.name), token);
    }
  }
}

void RaggedTable::interaction_columns(const Problem& problem, const Hardware& hardware,
                                      ConfigWords configs, std::span<double> out,
                                      std::size_t stride) const {
  std::vector<double> rows;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    token_rows(problem, hardware, configs[i], rows);
    const std::size_t elements = rows.size() / tokens_.size();
    out[i] = std::log2(static_cast<double>(std::max<std::size_t>(1, elements)));
    std::size_t place = 1;
    for (std::size_t column = 0; column < tokens_.size(); ++column) {
      std::array<double, kPoolsOfColumn> pools{};
      pool(rows, tokens_.size(), column, pools);
      for (const double value : pools) {
        out[place++ * stride + i] = value;
      }
    }
  }
}

}  // namespace foretune
