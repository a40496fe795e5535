// Lists of shapes without timings: torch-diode's operation_shapeset.json, tables, problems as text.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/exchange_json.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/problem/payload_store.h"

namespace foretune {

using dataset_internal::ImportCounter;
using dataset_internal::Json;
using dataset_internal::member;

namespace {

class ShapeList {
 public:
  void add(const Result<Problem>& problem, const std::string& place, bool transposed) {
    counter_.read();
    if (!problem) {
      counter_.drop(problem.error().message, place);
    } else if (!seen_.insert(*problem).second) {
      counter_.drop("a repeated shape", place);
    } else {
      counter_.keep();
      problems_.push_back(*problem);
      if (transposed) {
        counter_.note(dataset_internal::kTransposedNote, place);
      }
    }
  }

  Result<std::vector<Problem>> finish(ImportReport* report) {
    FORETUNE_TRY_STATUS(counter_.finish(report));
    if (problems_.empty()) {
      return fail(ErrorCode::kCorrupt, "there are no shapes");
    }
    return std::move(problems_);
  }

 private:
  ImportCounter counter_;
  std::unordered_set<Problem> seen_;
  std::vector<Problem> problems_;
};

Result<std::vector<Problem>> shapes_of_document(const Json& document, ImportReport* report) {
  const Json* operations = member(document, "operations");
  if (operations == nullptr || !operations->is_object()) {
    return fail(ErrorCode::kCorrupt, "the shape set has no 'operations'");
  }
  ShapeList list;
  for (const auto& [operation, content] : operations->items()) {
    const Json* shapes = member(content, "shapes");
    if (shapes == nullptr || !shapes->is_array()) {
      return fail(ErrorCode::kCorrupt, "operation '", operation.substr(0, 40), "' has no 'shapes'");
    }
    for (std::size_t i = 0; i < shapes->size(); ++i) {
      const Json& shape = (*shapes)[i];
      const Result<Problem> problem = dataset_internal::diode_problem(shape, operation);
      list.add(problem, concat(operation, ", shape ", i),
               problem && dataset_internal::is_transposed(shape, *problem));
    }
  }
  return list.finish(report);
}

// A table's columns in the order of its lines.
enum class ShapeColumn : std::uint8_t {
  kM,
  kN,
  kK,
  kBatch,
  kOperation,
  kDtype,
  kLayout,
  kTransposed,
  kRegime
};

std::optional<ShapeColumn> shape_column(std::string_view name) {
  const std::string lower = to_lower(trim(name));
  static constexpr std::pair<std::string_view, ShapeColumn> kNames[] = {
      {"m", ShapeColumn::kM},
      {"n", ShapeColumn::kN},
      {"k", ShapeColumn::kK},
      {"batch", ShapeColumn::kBatch},
      {"b", ShapeColumn::kBatch},
      {"op", ShapeColumn::kOperation},
      {"name", ShapeColumn::kOperation},
      {"operation", ShapeColumn::kOperation},
      {"dtype", ShapeColumn::kDtype},
      {"layout", ShapeColumn::kLayout},
      {"regime", ShapeColumn::kRegime},
      {"transposed", ShapeColumn::kTransposed}};
  for (const auto& [known, column] : kNames) {
    if (known == lower) {
      return column;
    }
  }
  return std::nullopt;
}

// The columns that a line of names gives; nothing when it holds anything else.
std::optional<std::vector<ShapeColumn>> columns_of(std::string_view line) {
  std::vector<ShapeColumn> columns;
  for (const std::string_view name : split(line, ',')) {
    const auto column = shape_column(name);
    if (!column || std::find(columns.begin(), columns.end(), *column) != columns.end()) {
      return std::nullopt;
    }
    columns.push_back(*column);
  }
  return columns;
}

Result<Problem> problem_of_line(std::string_view line, const std::vector<ShapeColumn>& columns,
                                PayloadStore* payloads, bool& transposed) {
  if (line.find(',') == std::string_view::npos) {
    if (payloads == nullptr) {
      return Problem::parse(line);
    }
    FORETUNE_TRY(const std::string resolved, payloads->resolve_names(line));
    return Problem::parse(resolved);
  }
  const std::vector<std::string_view> parts = split(line, ',');
  if (parts.size() < 3 || parts.size() > columns.size()) {
    return fail(ErrorCode::kCorrupt, "m,n,k[,batch[,op]] was expected, or a line of column names");
  }
  std::string batch = "1";
  std::string operation;
  std::string text = "gemm";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string value(trim(parts[i]));
    switch (columns[i]) {
      case ShapeColumn::kM:
        text += concat(" m=", value);
        break;
      case ShapeColumn::kN:
        text += concat(" n=", value);
        break;
      case ShapeColumn::kK:
        text += concat(" k=", value);
        break;
      case ShapeColumn::kDtype:
        text += concat(" dtype=", value);
        break;
      case ShapeColumn::kLayout:
        text += concat(" layout=", value);
        break;
      case ShapeColumn::kRegime:  // for whoever groups the shapes
        break;
      case ShapeColumn::kBatch:
        batch = value;
        break;
      case ShapeColumn::kOperation:
        operation = value;
        break;
      case ShapeColumn::kTransposed:
        transposed = value == "True" || value == "true" || value == "1";
        break;
    }
  }
  if (operation.empty()) {
    operation = batch == "1" ? "mm" : "bmm";
  }
  return Problem::parse(concat(text, " batch=", batch, " op=", operation));
}

Result<std::vector<Problem>> shapes_of_lines(std::string_view text, ImportReport* report,
                                             PayloadStore* payloads) {
  std::vector<ShapeColumn> columns{ShapeColumn::kM, ShapeColumn::kN, ShapeColumn::kK,
                                   ShapeColumn::kBatch, ShapeColumn::kOperation};
  ShapeList list;
  std::size_t number = 0;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (auto named = is_first ? columns_of(line) : std::nullopt) {
      columns = *std::move(named);
    } else {
      bool transposed = false;
      const Result<Problem> problem = problem_of_line(line, columns, payloads, transposed);
      if (!problem) {
        return fail_because(problem.error(), "line ", number);
      }
      list.add(problem, concat("line ", number), transposed);
    }
    is_first = false;
  }
  return list.finish(report);
}

}  // namespace

Result<std::vector<Problem>> parse_shape_set(std::string_view text, ImportReport* report,
                                             PayloadStore* payloads) {
  const std::string_view content = trim(text);
  if (!content.empty() && content.front() == '{') {
    FORETUNE_TRY(const Json document, dataset_internal::parse_json(text));
    return shapes_of_document(document, report);
  }
  return shapes_of_lines(text, report, payloads);
}

Result<std::vector<Problem>> read_shape_set(const std::filesystem::path& path, ImportReport* report,
                                            PayloadStore* payloads) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto shapes = parse_shape_set(dataset_internal::text_of(bytes), report, payloads);
  if (!shapes) {
    return fail_because(shapes.error(), path.string());
  }
  return shapes;
}

}  // namespace foretune
