// A feature table may get columns after models were trained with it. A model file names the columns
// that it was written with, or means the table's first ones; a map leads from those to the columns
// of this version. Internal to the module. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/network/network.h"

namespace foretune {

struct Model;

// Returns true where a column was added after the first version of its table.
bool has_later_columns(const FeatureTable& table);

class ColumnMap {
 public:
  // Changes nothing.
  ColumnMap() = default;
  // `names` are the columns of the file; none stand for the table's first columns.
  static ColumnMap create(const FeatureTable& table, std::span<const std::string> names);

  // Returns true where the file's columns are those of the table, so that nothing needs to change.
  [[nodiscard]] bool is_identity() const { return is_identity_; }
  // Errors: kMismatch for a use of a column that the table does not have, with its name.
  Status apply(Forest& forest) const;
  Status apply(Network& network) const;
  // The ranges of a model. A column that it does not know has no limits.
  Status apply(Model& model) const;

 private:
  [[nodiscard]] Result<std::uint16_t> at(std::size_t column) const;

  const FeatureTable* table_ = nullptr;
  std::vector<std::string> names_;      // of the file
  std::vector<std::int32_t> position_;  // in the table; -1 for a column that it does not have
  bool is_identity_ = true;
};

}  // namespace foretune
