// The data sets that this repository publishes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "foretune/dataset/journal.h"

namespace foretune {
namespace {

TEST(CommittedData, NoConfigTookMoreThreadsThanItsContextAllows) {
  std::size_t files = 0;
  std::size_t rows = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(FORETUNE_SOURCE_DIR) / "bench")) {
    if (entry.path().extension() != ".ftd") {
      continue;
    }
    const auto dataset = read_dataset(entry.path());
    ASSERT_TRUE(dataset) << dataset.error().message;
    ++files;
    const ConfigSchema& schema = dataset->header().config_schema;
    const auto threads =
        std::find_if(schema.parameters.begin(), schema.parameters.end(),
                     [](const Parameter& known) { return known.name == "threads"; });
    if (threads == schema.parameters.end()) {
      continue;
    }
    const auto word = static_cast<std::size_t>(threads - schema.parameters.begin());
    for (const Dataset::Row& row : dataset->rows()) {
      const Config& config = dataset->configs()[row.config];
      ASSERT_EQ(config.schema, schema.id());
      ASSERT_LE(config.words[word], dataset->contexts()[row.context].threads) << entry.path();
      ++rows;
    }
  }
  EXPECT_GE(files, 7U);
  EXPECT_GE(rows, 70'000U);
}

}  // namespace
}  // namespace foretune
