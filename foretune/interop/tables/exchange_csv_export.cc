// Exports CSV.
#include <algorithm>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/csv.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/exchange_io.h"

namespace foretune {

using dataset_internal::float_text;
using formats::csv_quoted;

namespace {

class CsvExporter {
 public:
  CsvExporter(const Dataset& dataset, const ProblemSchema& problem)
      : dataset_(dataset),
        problem_(problem),
        schema_(dataset.header().config_schema),
        metrics_(dataset.metrics()),
        has_metric_(metrics_.size()) {
    for (const Dataset::ExtraMetric& extra : dataset.extras()) {
      has_metric_[extra.metric] = true;
    }
    for (const Dataset::Baseline& baseline : dataset.baselines()) {
      for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
        has_metric_[metric.metric] = true;
      }
    }
  }

  Result<std::string> run() {
    header_line();
    std::size_t extra = 0;
    for (std::size_t i = 0; i < dataset_.size(); ++i) {
      row_line(dataset_.rows()[i]);
      FORETUNE_TRY_STATUS(metric_cells(static_cast<RowIndex>(i), extra));
      out_ += '\n';
    }
    for (const Dataset::Baseline& baseline : dataset_.baselines()) {
      baseline_line(baseline);
    }
    return std::move(out_);
  }

 private:
  void header_line() {
    for (const ProblemField& field : problem_.fields) {
      out_ += concat(field.name, ",");
    }
    if (is_sequence_) {
      out_ += concat(csv_quoted(dataset_internal::sequence_column_name(schema_)), ",");
    }
    for (const std::string& name : csv_parameter_columns(dataset_.header())) {
      out_ += concat(csv_quoted(name), ",");
    }
    out_ +=
        "time_ns,median_ns,spread,samples,outcome,stage,reason,flags,machine,device,"
        "context_threads,cache,clock_mhz,fidelity";
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      if (has_metric_[i]) {
        const std::string& name = metrics_[i].name;
        out_ += concat(",", to_text(metrics_[i]), ",", name, "_spread,", name, "_samples");
      }
    }
    out_ += '\n';
  }

  void problem_cells(const Problem& problem) {
    for (std::size_t i = 0; i < problem_.fields.size(); ++i) {
      out_ += concat(problem.field_text(i), ",");
    }
  }

  void row_line(const Dataset::Row& row) {
    problem_cells(dataset_.problems()[row.problem]);
    const Config& config = dataset_.configs()[row.config];
    if (is_sequence_) {
      out_ += concat(csv_quoted(to_text(schema_, config)), ",");
    }
    for (std::size_t i = 0; i < schema_.parameters.size(); ++i) {
      const std::vector<std::string>& labels = schema_.parameters[i].labels;
      const std::int32_t word = config.words[i];
      const bool is_label = word >= 0 && static_cast<std::size_t>(word) < labels.size();
      out_ +=
          concat(is_label ? csv_quoted(labels[static_cast<std::size_t>(word)]) : concat(word), ",");
    }
    const bool timed = row.time_ns > 0;
    out_ += concat(timed ? float_text(row.time_ns) : std::string(), ",",
                   row.median_ns > 0 ? float_text(row.median_ns) : std::string(), ",",
                   timed ? float_text(row.spread) : std::string(), ",", row.samples, ",",
                   to_string(row.outcome), ",", to_string(row.stage), ",",
                   csv_quoted(dataset_.reason(row.reason)), ",", row.flags, ",");
    const Context& context = dataset_.contexts()[row.context];
    out_ += concat(hex_text(context.machine), ",", csv_quoted(context.device), ",", context.threads,
                   ",", to_string(context.cache), ",", context.clock_mhz, ",", context.fidelity);
  }

  // Writes the metrics of row `row`, which begin at `next` among all.
  Status metric_cells(RowIndex row, std::size_t& next) {
    std::vector<const Dataset::ExtraMetric*> values(has_metric_.size());
    const auto extras = dataset_.extras();
    for (; next < extras.size() && extras[next].row == row; ++next) {
      const Dataset::ExtraMetric*& value = values[extras[next].metric];
      if (value != nullptr) {
        return fail(ErrorCode::kUnsupported, "row ", row, " has ", metrics_[value->metric].name,
                    " twice, which a table cannot hold");
      }
      value = &extras[next];
    }
    for (std::size_t i = 0; i < has_metric_.size(); ++i) {
      if (has_metric_[i]) {
        out_ += values[i] == nullptr ? std::string(",,,")
                                     : concat(",", values[i]->value, ",", values[i]->spread, ",",
                                              values[i]->samples);
      }
    }
    return {};
  }

  // Writes a baseline with its name in the first parameter's column, in place of a config.
  void baseline_line(const Dataset::Baseline& baseline) {
    problem_cells(dataset_.problems()[baseline.problem]);
    out_ += is_sequence_
                ? concat(csv_quoted(concat(dataset_internal::kBaselinePrefix, baseline.name)), ",")
                : csv_quoted(baseline.name);
    out_.append(schema_.parameters.size(), ',');
    out_ += baseline.time_ns > 0 ? float_text(baseline.time_ns) : std::string();
    out_.append(kColumnsBehindTime, ',');
    for (std::size_t i = 0; i < has_metric_.size(); ++i) {
      const auto own =
          std::find_if(baseline.metrics.begin(), baseline.metrics.end(),
                       [&](const Dataset::Baseline::Metric& metric) { return metric.metric == i; });
      if (has_metric_[i]) {
        out_ +=
            concat(",", own == baseline.metrics.end() ? std::string() : concat(own->value), ",,");
      }
    }
    out_ += '\n';
  }

  static constexpr std::size_t kColumnsBehindTime = 13;
  const Dataset& dataset_;
  const ProblemSchema& problem_;
  const ConfigSchema& schema_;
  bool is_sequence_ = schema_.kind == SchemaKind::kSequence;
  std::vector<MetricInfo> metrics_;
  std::vector<bool> has_metric_;
  std::string out_;
};

// Fails when a reader could take a baseline's name for a value.
Status check_baselines(const Dataset& dataset) {
  if (dataset.header().config_schema.kind == SchemaKind::kSequence) {
    return {};  // they are marked
  }
  const std::vector<Parameter>& parameters = dataset.header().config_schema.parameters;
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    const bool is_label =
        !parameters.empty() && std::find(parameters[0].labels.begin(), parameters[0].labels.end(),
                                         baseline.name) != parameters[0].labels.end();
    if (parameters.size() < 2 || is_label || parse_int(trim(baseline.name)) ||
        trim(baseline.name) != baseline.name || baseline.name.empty()) {
      return fail(ErrorCode::kUnsupported, "baseline '", baseline.name.substr(0, 40),
                  "' cannot be told from a config in a table; JSON holds it");
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> csv_parameter_columns(const DatasetHeader& header) {
  const ProblemSchema* const problem = find_problem_schema(header.problem_type);
  const std::vector<MetricInfo> metrics = Dataset(header).metrics();
  std::vector<std::string> out;
  for (const Parameter& parameter : header.config_schema.parameters) {
    out.push_back(problem == nullptr
                      ? parameter.name
                      : dataset_internal::parameter_column(*problem, metrics, parameter.name));
  }
  return out;
}

Result<std::string> export_csv_text(const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  const ProblemSchema* problem = find_problem_schema(header.problem_type);
  const std::span<const Problem> problems = dataset.problems();
  if (problem == nullptr ||
      std::any_of(problems.begin(), problems.end(),
                  [](const Problem& listed) { return listed.has_payload(); })) {
    return fail(ErrorCode::kUnsupported,
                "problems with payloads do not fit a table; JSON holds them");
  }
  for (const MetricInfo& metric : header.metrics) {
    if (dataset_internal::sequence_column(to_text(metric))) {
      return fail(ErrorCode::kUnsupported, "the metric ", to_text(metric),
                  " would be a column of configs in a table; JSON holds it");
    }
  }
  FORETUNE_TRY_STATUS(check_baselines(dataset));
  return CsvExporter(dataset, *problem).run();
}

Status export_csv(const Dataset& dataset, const std::filesystem::path& path) {
  auto text = export_csv_text(dataset);
  if (!text) {
    return fail_because(text.error(), "cannot write ", path.string());
  }
  if (path.extension() == ".gz") {
    return write_file_atomically(path, dataset_internal::deflate_gzip(bytes_of(*text)));
  }
  return write_text_file_atomically(path, *text);
}

}  // namespace foretune
