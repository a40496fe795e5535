#include "foretune/model/model_columns.h"

#include <algorithm>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/model_file.h"
#include "foretune/model/training_range.h"

namespace foretune {

bool has_later_columns(const FeatureTable& table) {
  const std::span<const FeatureInfo> columns = table.columns();
  return std::any_of(columns.begin(), columns.end(),
                     [](const FeatureInfo& column) { return column.since > 1; });
}

ColumnMap ColumnMap::create(const FeatureTable& table, std::span<const std::string> names) {
  ColumnMap map;
  map.table_ = &table;
  const std::span<const FeatureInfo> columns = table.columns();
  if (names.empty()) {
    for (const FeatureInfo& column : columns) {
      if (column.since == 1) {
        map.names_.emplace_back(column.name);
      }
    }
  } else {
    map.names_.assign(names.begin(), names.end());
  }
  map.is_identity_ = map.names_.size() == columns.size();
  for (const std::string& name : map.names_) {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const FeatureInfo& column) { return column.name == name; });
    map.position_.push_back(
        found == columns.end() ? -1 : static_cast<std::int32_t>(found - columns.begin()));
    map.is_identity_ = map.is_identity_ &&
                       map.position_.back() == static_cast<std::int32_t>(map.position_.size()) - 1;
  }
  return map;
}

Result<std::uint16_t> ColumnMap::at(std::size_t column) const {
  if (column >= position_.size()) {
    return fail(ErrorCode::kCorrupt, "the model uses column ", column, " of ", position_.size());
  }
  if (position_[column] < 0) {
    return fail(ErrorCode::kMismatch, "the model uses the column ", quoted(names_[column], 60),
                ", which the feature table ", table_->name(), " does not have in this version");
  }
  return static_cast<std::uint16_t>(position_[column]);
}

Status ColumnMap::apply(Forest& forest) const {
  if (is_identity_ || forest.feature_count != position_.size()) {
    return {};  // another count is refused when the model is checked
  }
  for (std::uint32_t& feature : forest.feature) {
    FORETUNE_TRY(feature, at(feature));
  }
  forest.feature_count = static_cast<std::uint32_t>(table_->columns().size());
  return {};
}

Status ColumnMap::apply(Network& network) const {
  if (is_identity_) {
    return {};
  }
  for (NetworkInput& input : network.inputs) {
    FORETUNE_TRY(input.column, at(input.column));
  }
  return {};
}

Status ColumnMap::apply(Model& model) const {
  if (is_identity_) {
    return {};
  }
  std::vector<std::pair<double, double>> ranges(feature_count(*table_, FeatureKind::kProblem),
                                                kNoLimits);
  for (std::size_t i = 0; i < model.problem_range.size() && i < position_.size(); ++i) {
    if (position_[i] >= 0 && static_cast<std::size_t>(position_[i]) < ranges.size()) {
      ranges[static_cast<std::size_t>(position_[i])] = model.problem_range[i];
    }
  }
  model.problem_range = std::move(ranges);
  return {};
}

}  // namespace foretune
