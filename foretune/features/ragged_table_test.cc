#include "foretune/features/ragged_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/features/testing/named_row.h"

namespace foretune {
namespace {

const ConfigSchema kWords{
    .name = "words", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};

std::map<std::string, double> row_of(const std::vector<std::int32_t>& words) {
  return named_row(**find_feature_table("sequence-words"),
                   Problem::parse("gemm m=4 n=8 k=16").value(), {},
                   {kWords.id(), Config::Words(words)});
}

TEST(RaggedTable, PoolsAreOfTheWholeAndOfQuarters) {
  const auto row = row_of({1, 1, 5, 5, 0, 2, 2, 2});
  EXPECT_EQ(row.at("log2_elements"), 3);
  EXPECT_EQ(row.at("mean_word"), 18.0 / 8);
  EXPECT_EQ(row.at("least_word"), 0);
  EXPECT_EQ(row.at("most_word"), 5);
  EXPECT_EQ(row.at("first_word"), 1);
  EXPECT_EQ(row.at("last_word"), 2);
  EXPECT_EQ(row.at("quarter2_word"), 5);
  EXPECT_EQ(row.at("quarter3_word"), 1);
  EXPECT_EQ(row.at("mean_differs"), 3.0 / 8);
  EXPECT_EQ(row.at("mean_is_2"), 3.0 / 8);
  EXPECT_EQ(row.at("quarter4_is_2"), 1);
}

TEST(RaggedTable, ShortAndEmptySequencesHaveZeros) {
  const auto empty = row_of({});
  for (const auto& [name, value] : empty) {
    if (!name.starts_with("log2_f") && !name.starts_with("log2_b")) {
      EXPECT_EQ(value, 0) << name;
    }
  }
  const auto one = row_of({3});
  EXPECT_EQ(one.at("quarter1_word"), 3);
  EXPECT_EQ(one.at("quarter4_word"), 0);
  EXPECT_EQ(one.at("mean_is_3"), 1);
}

// Pools of any table, by their definition.
TEST(RaggedTable, AreWhatTheRowsSay) {
  const FeatureTable& table = **find_feature_table("sequence-words");
  const auto* const ragged = dynamic_cast<const RaggedTable*>(&table);
  ASSERT_NE(ragged, nullptr);
  const Problem problem = Problem::parse("gemm m=4 n=8 k=16").value();
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int32_t> words(1 + rng.below(400));
    for (std::int32_t& word : words) {
      word = static_cast<std::int32_t>(rng.below(12));
    }
    std::vector<double> rows;
    ragged->token_rows(problem, {}, words, rows);
    const std::size_t columns = ragged->token_columns().size();
    ASSERT_EQ(rows.size(), words.size() * columns);
    const auto row = row_of(words);
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      double most = rows[c];
      for (std::size_t i = 0; i < words.size(); ++i) {
        sum += rows[i * columns + c];
        most = std::max(most, rows[i * columns + c]);
      }
      const std::string& name = ragged->token_columns()[c].name;
      EXPECT_NEAR(row.at(concat("mean_", name)), sum / static_cast<double>(words.size()), 1e-9);
      EXPECT_EQ(row.at(concat("most_", name)), most);
    }
  }
}

}  // namespace
}  // namespace foretune
