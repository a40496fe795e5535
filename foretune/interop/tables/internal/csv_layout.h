// The meaning of the columns of a CSV, by the first line and, where no schema is known, by the
// cells. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/metrics/metric.h"
#include "foretune/problem/problem.h"

namespace foretune::dataset_internal {

struct CsvLayout {
  std::vector<CsvColumn> columns;
  std::vector<std::string> names;
  std::vector<MetricInfo> metrics;  // as the data set numbers them
};

// The meaning of the columns called `names`. Adds to the header the metrics that they declare; a
// schema of no parameters becomes that of the column of sequences, or else gets the other columns
// as parameters. Errors: kInvalidArgument for columns that contradict each other or are missing,
// kMismatch for those of another schema.
Result<CsvLayout> read_csv_layout(const std::vector<std::string>& names,
                                  const ProblemSchema& problem, DatasetHeader& header);
// Makes parameters that hold anything but numbers parameters of labels, in alphabetical order, so
// that the schema does not depend on the order of rows. `text` are the records.
Status derive_csv_labels(std::string_view text, const CsvLayout& layout, ConfigSchema& schema);
// The name of somebody else's choice, when a record is one: in the first parameter's column, all
// other parameters being empty, or behind "baseline:" in a column of sequences. A single parameter
// leaves no doubt only when it is no label.
std::optional<std::string> csv_baseline_name(const CsvLayout& layout, std::size_t parameters,
                                             const std::vector<std::string>& cells);
std::optional<std::int32_t> parse_csv_word(std::string_view text);
// The type with the most fields among the columns, which have to have all fields without a default;
// of several such types the first.
Result<ProblemType> type_of_csv_columns(const std::vector<std::string>& names);

}  // namespace foretune::dataset_internal
