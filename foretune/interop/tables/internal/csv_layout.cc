#include "foretune/interop/tables/internal/csv_layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/problem/problem_type.h"

namespace foretune::dataset_internal {
namespace {

tl::unexpected<Error> wrong_header(const std::string& why) {
  return fail(ErrorCode::kInvalidArgument, "the CSV's column names: ", why);
}

// Names and labels stand in texts like "tile=8 order=mnk".
bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n\v\f") == std::string_view::npos;
}

bool is_sequence(std::string_view text) {
  return parse_config({.name = {}, .kind = SchemaKind::kSequence, .parameters = {}}, text)
      .has_value();
}

// A reader that knows the schema finds its column by "config" alone as well.
bool is_config_column(std::string_view name, const ConfigSchema& schema) {
  return name == "config" || sequence_column(name) == schema;
}

// The schema that a column of sequences names, if there is one. `derive` as below.
Status take_sequence_schema(const std::vector<std::string>& names, ConfigSchema& schema,
                            bool derive) {
  for (const std::string& raw : names) {
    const std::string name(trim(raw));
    const std::optional<ConfigSchema> named = sequence_column(name);
    if (!named || *named == schema || schema.find(name)) {
      continue;
    }
    if (schema.kind == SchemaKind::kSequence && derive) {
      return wrong_header(concat("'", name.substr(0, 60), "' is a second column of configs"));
    }
    if (!derive) {
      return fail(ErrorCode::kMismatch, "column '", name.substr(0, 60),
                  "' of the CSV holds configs of another schema than ", schema.name, " v",
                  schema.version);
    }
    schema = *named;
  }
  return {};
}

// The meaning of column `name`. With `derive`, one that is nothing else becomes a parameter of
// `schema`.
Result<CsvColumn> column_of(const std::string& name, const ProblemSchema& problem,
                            std::span<const MetricInfo> metrics, ConfigSchema& schema,
                            bool derive) {
  if (schema.kind == SchemaKind::kSequence && is_config_column(name, schema)) {
    return CsvColumn{CsvRole::kConfig, 0, 1};
  }
  const bool has_prefix =
      std::string_view(name).substr(0, kParameterPrefix.size()) == kParameterPrefix;
  const std::string parameter = has_prefix ? name.substr(kParameterPrefix.size()) : name;
  if (!has_prefix) {
    if (const auto known = measurement_column(name, problem, metrics)) {
      return *known;
    }
    if (const auto field = problem.find(name)) {
      return CsvColumn{CsvRole::kField, *field, 1};
    }
  }
  if (const auto index = schema.find(parameter)) {
    return CsvColumn{CsvRole::kParameter, *index, 1};
  }
  if (!derive) {
    return wrong_header(concat("'", name.substr(0, 60), "' is neither a field of ", problem.name,
                               ", nor a parameter of ", schema.name, ", nor a measurement"));
  }
  if (!is_word(parameter) || parameter.find('=') != std::string::npos) {
    return wrong_header(concat("'", name.substr(0, 60), "' cannot be the name of a parameter"));
  }
  schema.parameters.push_back({parameter, {}});
  return CsvColumn{CsvRole::kParameter, schema.parameters.size() - 1, 1};
}

// Every column once, and all that is needed.
Status check_columns(const CsvLayout& layout, const ProblemSchema& problem,
                     const ConfigSchema& schema) {
  std::set<std::pair<CsvRole, std::size_t>> seen;
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    if (!seen.emplace(layout.columns[i].role, layout.columns[i].index).second) {
      return wrong_header(concat("'", layout.names[i].substr(0, 60), "' repeats another column"));
    }
  }
  const bool has_metric = std::any_of(seen.begin(), seen.end(), [](const auto& column) {
    return column.first == CsvRole::kMetric;
  });
  if (!seen.contains({CsvRole::kTime, 0}) && !has_metric) {
    return wrong_header("one of time_ns, time_us and time_ms is needed, or another metric");
  }
  for (std::size_t i = 0; i < problem.fields.size(); ++i) {
    if (!problem.fields[i].default_value && !seen.contains({CsvRole::kField, i})) {
      return wrong_header(concat("'", problem.fields[i].name, "' of the problem is missing"));
    }
  }
  if (schema.kind == SchemaKind::kSequence && !schema.parameters.empty()) {
    return wrong_header(concat("'", schema.parameters[0].name.substr(0, 60),
                               "' is neither a field of ", problem.name,
                               " nor a measurement, and beside a column of whole "
                               "configs none is a parameter"));
  }
  if (schema.kind == SchemaKind::kSequence && !seen.contains({CsvRole::kConfig, 0})) {
    return fail(ErrorCode::kMismatch, "the CSV has no column '",
                sequence_column_name(schema).substr(0, 60), "'");
  }
  for (std::size_t i = 0; i < schema.parameters.size(); ++i) {
    if (!seen.contains({CsvRole::kParameter, i})) {
      return fail(ErrorCode::kMismatch, "the CSV has no column for parameter '",
                  schema.parameters[i].name, "' of ", schema.name);
    }
  }
  return {};
}

// Adds to the header the metrics that a column declares, and returns all that there are.
Result<std::vector<MetricInfo>> metrics_of(const std::vector<std::string>& names,
                                           DatasetHeader& header) {
  std::vector<MetricInfo>& declared = header.metrics;
  std::vector<MetricInfo> metrics(common_metrics().begin(), common_metrics().end());
  metrics.insert(metrics.end(), declared.begin(), declared.end());
  for (const std::string& raw : names) {
    const std::string name(trim(raw));
    if (!declares_metric(name) || header.config_schema.find(name)) {
      continue;
    }
    const Result<MetricInfo> info = parse_metric_info(name);
    if (!info) {
      return wrong_header(info.error().message);
    }
    const MetricInfo* const known = find_metric(metrics, info->name);
    if (known != nullptr && *known != *info) {
      return wrong_header(concat("the metric ", name, " is known as ", to_text(*known)));
    }
    if (known == nullptr) {
      metrics.push_back(*info);
      declared.push_back(*info);
    }
  }
  return metrics;
}

}  // namespace

Result<CsvLayout> read_csv_layout(const std::vector<std::string>& names,
                                  const ProblemSchema& problem, DatasetHeader& header) {
  ConfigSchema& schema = header.config_schema;
  const bool derive = schema.kind == SchemaKind::kParametric && schema.parameters.empty();
  CsvLayout layout;
  FORETUNE_TRY_STATUS(take_sequence_schema(names, schema, derive));
  FORETUNE_TRY(layout.metrics, metrics_of(names, header));
  for (const std::string& raw : names) {
    layout.names.emplace_back(trim(raw));
    FORETUNE_TRY(const CsvColumn column,
                 column_of(layout.names.back(), problem, layout.metrics, schema, derive));
    layout.columns.push_back(column);
  }
  FORETUNE_TRY_STATUS(check_columns(layout, problem, schema));
  if (schema.kind == SchemaKind::kParametric && schema.parameters.empty()) {
    return wrong_header("there is no column for a parameter of a config");
  }
  return layout;
}

std::optional<std::int32_t> parse_csv_word(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

std::optional<std::string> csv_baseline_name(const CsvLayout& layout, std::size_t parameters,
                                             const std::vector<std::string>& cells) {
  std::string name;
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    if (layout.columns[i].role == CsvRole::kConfig) {
      return cells[i].starts_with(kBaselinePrefix)
                 ? std::optional(cells[i].substr(kBaselinePrefix.size()))
                 : std::nullopt;
    }
    if (layout.columns[i].role != CsvRole::kParameter) {
      continue;
    }
    const std::string_view text = trim(cells[i]);
    if (layout.columns[i].index == 0) {
      name = text;
    } else if (!text.empty()) {
      return std::nullopt;
    }
  }
  return parameters > 1 && !name.empty() && !parse_csv_word(name) ? std::optional(name)
                                                                  : std::nullopt;
}

Status derive_csv_labels(std::string_view text, const CsvLayout& layout, ConfigSchema& schema) {
  std::vector<std::set<std::string>> texts(schema.parameters.size());
  std::vector<bool> is_text(schema.parameters.size(), false);
  std::vector<std::string> cells;
  while (!text.empty() && next_csv_record(text, cells)) {
    if (cells.size() != layout.columns.size() ||
        csv_baseline_name(layout, schema.parameters.size(), cells)) {
      continue;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view cell = trim(cells[i]);
      if (layout.columns[i].role != CsvRole::kParameter || cell.empty()) {
        continue;
      }
      const std::size_t parameter = layout.columns[i].index;
      is_text[parameter] = is_text[parameter] || !parse_csv_word(cell);
      if (texts[parameter].size() <= kMaxLabels) {
        texts[parameter].emplace(cell);
      }
    }
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!is_text[i]) {
      continue;
    }
    if (texts.size() == 1 && schema.parameters[i].name == "config" &&
        std::all_of(texts[i].begin(), texts[i].end(), &is_sequence)) {
      return wrong_header("a column of sequences is called config:NAME:VERSION, not only 'config'");
    }
    if (texts[i].size() > kMaxLabels || !std::all_of(texts[i].begin(), texts[i].end(), &is_word)) {
      return fail(ErrorCode::kInvalidArgument, "column '", schema.parameters[i].name,
                  "' of the CSV holds texts that cannot be labels (with blanks, or over ",
                  kMaxLabels, " different ones)");
    }
    schema.parameters[i].labels.assign(texts[i].begin(), texts[i].end());
  }
  return {};
}

Result<ProblemType> type_of_csv_columns(const std::vector<std::string>& names) {
  std::set<std::string_view> columns;
  for (const std::string& name : names) {
    columns.insert(trim(name));
  }
  std::string needed;
  std::string nearest;  // a type of which columns are there, and a single one is missing
  std::size_t most_there = 0;
  std::optional<ProblemType> best;
  std::size_t most = 0;
  for (const ProblemTypeInfo* type : problem_types()) {
    std::string all;
    std::string missing;
    std::size_t lacking = 0;
    std::size_t found = 0;
    bool is_whole = type->schema.payload != PayloadUse::kRequired;
    for (const ProblemField& field : type->schema.fields) {
      const bool is_there = columns.contains(field.name);
      found += is_there ? 1U : 0U;
      if (!field.default_value) {
        all += concat(" ", field.name);
        is_whole = is_whole && is_there;
        if (!is_there) {
          missing = concat(field.name, " (", field.help, ")");
          ++lacking;
        }
      }
    }
    if (found > most_there && lacking == 1) {
      most_there = found;
      nearest = concat("for problems of type ", type->schema.name, " the CSV lacks ", missing);
    }
    if (is_whole && found > most) {
      best = type->schema.type;
      most = found;
    }
    needed += concat(needed.empty() ? "" : ", ", type->schema.name, " needs", all);
  }
  if (best) {
    return *best;
  }
  return fail(ErrorCode::kCorrupt,
              "the columns of the CSV are those of no type of problem: ", nearest,
              nearest.empty() ? "" : "; ", needed);
}

}  // namespace foretune::dataset_internal
