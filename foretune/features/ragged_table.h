// Tables of configs that are sequences of any length: a row of numbers for each element, which may
// be a layer of a network or a step of a pipeline. Trees take rows of one length, so they read the
// elements pooled: the mean over all and over each quarter of the sequence, the least, the most,
// the first and the last.
//
//   table.token_rows(problem, hardware, words, rows);         // [elements][token columns]
//
// Thread safety and cost: as FeatureTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"

namespace foretune {

// A number of each element.
struct TokenInfo {
  std::string name;
  std::string description;  // with the unit
};

class RaggedTable : public FeatureTable {
 public:
  [[nodiscard]] std::span<const TokenInfo> token_columns() const { return tokens_; }
  // Replaces `rows` by one row for each element, [elements][token_columns().size()].
  virtual void token_rows(const Problem& problem, const Hardware& hardware,
                          std::span<const std::int32_t> words, std::vector<double>& rows) const = 0;

  std::span<const FeatureInfo> columns() const final { return columns_; }
  void config_row(std::span<const std::int32_t> /*words*/, std::span<double> /*out*/) const final {}
  // log2 of the number of elements, then for each token column its pools.
  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const final;

 protected:
  RaggedTable(std::span<const FeatureInfo> of_problem, std::vector<TokenInfo> tokens);

 private:
  std::vector<TokenInfo> tokens_;
  std::deque<std::string> texts_;  // that columns_ refer to
  std::vector<FeatureInfo> columns_;
};

}  // namespace foretune
