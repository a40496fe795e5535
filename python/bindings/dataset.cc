// Bindings for data sets: reading and writing files, rows as NumPy arrays. A Dataset never changes
// after it was made, so arrays may point into it.
#include "foretune/dataset/dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/split.h"
#include "foretune/families/load_recorded.h"
#include "foretune/interop/ck/rocminfo.h"
#include "foretune/interop/tables/exchange.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using Row = Dataset::Row;

// Returns one column of the rows without a copy: the elements lie sizeof(Row) apart, and the array
// keeps the data set alive.
template <class Stored, class Value>
nb::ndarray<nb::numpy, const Value, nb::ndim<1>> column_of(const nb::handle& self,
                                                           Stored Row::* field) {
  static_assert(sizeof(Stored) == sizeof(Value) && sizeof(Row) % sizeof(Value) == 0);
  static const Row kNone{};
  const auto& dataset = nb::cast<const Dataset&>(self);
  const Row& first = dataset.rows().empty() ? kNone : dataset.rows().front();
  return {reinterpret_cast<const Value*>(&(first.*field)),
          {dataset.size()},
          self,
          {static_cast<std::int64_t>(sizeof(Row) / sizeof(Value))}};
}

template <class Stored, class Value = Stored>
void bind_column(nb::class_<Dataset>& type, const char* name, Stored Row::* field) {
  type.def_prop_ro(
      name, [field](const nb::handle& self) { return column_of<Stored, Value>(self, field); });
}

auto problem_fields(const Dataset& dataset) {
  const ProblemSchema* schema = find_problem_schema(dataset.header().problem_type);
  const std::size_t width = schema == nullptr ? 0 : schema->fields.size();
  std::vector<std::int64_t> values;
  values.reserve(dataset.problems().size() * width);
  for (const Problem& problem : dataset.problems()) {
    values.insert(values.end(), problem.fields().begin(), problem.fields().end());
  }
  return matrix(std::move(values), dataset.problems().size(), width);
}

auto config_words(const Dataset& dataset) {
  const std::size_t width = dataset.header().config_schema.parameters.size();
  std::vector<std::int32_t> values;
  values.reserve(dataset.configs().size() * width);
  for (const Config& config : dataset.configs()) {
    const std::span<const std::int32_t> words = config.words.view();
    values.insert(values.end(), words.begin(),
                  words.begin() + static_cast<std::ptrdiff_t>(std::min(width, words.size())));
    values.resize(values.size() + width - std::min(width, words.size()), 0);
  }
  return matrix(std::move(values), dataset.configs().size(), width);
}

using Column = std::pair<std::string, std::vector<std::string>>;  // name, labels

std::vector<Column> problem_columns(const Dataset& dataset) {
  std::vector<Column> columns;
  for (const ProblemField& field : find_problem_schema(dataset.header().problem_type)->fields) {
    columns.emplace_back(field.name,
                         std::vector<std::string>(field.labels.begin(), field.labels.end()));
  }
  return columns;
}

std::vector<Column> config_columns(const Dataset& dataset) {
  std::vector<Column> columns;
  const std::vector<std::string> names = csv_parameter_columns(dataset.header());
  for (std::size_t i = 0; i < names.size(); ++i) {
    columns.emplace_back(names[i], dataset.header().config_schema.parameters[i].labels);
  }
  return columns;
}

// Maps each metric's name to the name of its column in a table.
nb::dict metric_columns(const Dataset& dataset) {
  nb::dict out;
  for (const MetricInfo& info : dataset.metrics()) {
    out[info.name.c_str()] = to_text(info);
  }
  return out;
}

nb::dict header_of(const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  nb::dict out;
  out["family"] = header.family;
  out["role"] = std::string(to_string(header.role));
  out["problem_type"] = std::string(find_problem_schema(header.problem_type)->name);
  out["config_schema"] = header.config_schema.name;
  out["config_schema_version"] = header.config_schema.version;
  out["config_schema_kind"] =
      header.config_schema.kind == SchemaKind::kSequence ? "sequence" : "parametric";
  out["device"] = header.fingerprint.device;
  out["isa"] = header.fingerprint.isa;
  out["system"] = header.fingerprint.system;
  out["seed"] = header.seed;
  out["created_by"] = header.created_by;
  return out;
}

std::string hex_text(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return {digits.data(), written.ptr};
}

nb::list contexts_of(const Dataset& dataset) {
  nb::list out;
  for (const Context& context : dataset.contexts()) {
    nb::dict entry;
    entry["machine"] = hex_text(context.machine);
    entry["device"] = context.device;
    entry["context_threads"] = context.threads;
    entry["cache"] = std::string(to_string(context.cache));
    entry["clock_mhz"] = context.clock_mhz;
    entry["fidelity"] = context.fidelity;
    out.append(entry);
  }
  return out;
}

nb::list baselines_of(const Dataset& dataset) {
  nb::list out;
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    out.append(nb::make_tuple(dataset.problems()[baseline.problem].text(), baseline.name,
                              baseline.time_ns));
  }
  return out;
}

// Returns the metrics beyond time as (row, name, value, spread, samples).
nb::list extras_of(const Dataset& dataset) {
  nb::list out;
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    out.append(nb::make_tuple(extra.row, dataset.metric(extra.metric).name, extra.value,
                              extra.spread, extra.samples));
  }
  return out;
}

// Returns the metrics that rows may have as (name, unit, direction, stage).
nb::list metrics_of(const Dataset& dataset) {
  nb::list out;
  for (const MetricInfo& info : dataset.metrics()) {
    out.append(nb::make_tuple(info.name, info.unit, std::string(to_string(info.direction)),
                              info.stage == MetricStage::kEvaluation ? "evaluation" : "run"));
  }
  return out;
}

// Returns the metrics of baselines other than time as (problem, baseline, metric, value).
nb::list baseline_metrics_of(const Dataset& dataset) {
  nb::list out;
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
      out.append(nb::make_tuple(dataset.problems()[baseline.problem].text(), baseline.name,
                                dataset.metric(metric.metric).name, metric.value));
    }
  }
  return out;
}

nb::dict report_of(const ImportReport& report) {
  nb::dict out;
  out["rows_read"] = report.rows_read;
  out["rows_kept"] = report.rows_kept;
  out["dropped"] = report.dropped;
  out["notes"] = report.notes;
  return out;
}

DatasetRole role_of(const std::string& role) {
  if (role != "training" && role != "validation") {
    raise({ErrorCode::kInvalidArgument,
           concat("a role is training or validation, not '", role, "'")});
  }
  return role == "validation" ? DatasetRole::kValidation : DatasetRole::kTraining;
}

std::optional<ExchangeFormat> format_of(const std::string& name) {
  if (name.empty()) {
    return std::nullopt;
  }
  return checked(parse_exchange_format(name));
}

// Returns the data set of a reader and its report on kept and dropped rows.
nb::tuple with_report(Result<Dataset> dataset, const ImportReport& report) {
  return nb::make_tuple(checked(std::move(dataset)), report_of(report));
}

nb::tuple read(const std::string& path, const std::string& format_name, const std::string& family,
               const std::string& role_name, const std::string& device) {
  const std::optional<ExchangeFormat> format = format_of(format_name);
  const DatasetRole role = role_of(role_name);
  ImportReport report;
  auto read_file = [&]() -> Result<Dataset> {
    ExchangeFormat found = ExchangeFormat::kForetune;
    if (format) {
      found = *format;
    } else {
      FORETUNE_TRY(found, detect_format(path));
    }
    ImportFacts facts{.family = family, .role = role, .fingerprint = {}};
    if (is_ck_format(found)) {
      if (!device.empty()) {
        FORETUNE_TRY(facts.fingerprint, ck_fingerprint(device));
      }
      return import_ck(path, found, facts, &report);
    }
    if (found == ExchangeFormat::kCsv) {
      return import_csv_file(path, {.family = family, .role = role, .device = device}, &report);
    }
    return import_dataset(path, found, &report, facts);
  };
  Result<Dataset> dataset = without_lock(read_file);
  return with_report(std::move(dataset), report);
}

// Reads CSV text with the header and the baselines of `like`; restores frames and tables.
nb::tuple from_csv_text(const std::string& text, const Dataset& like) {
  ImportReport report;
  Result<Dataset> dataset = without_lock([&]() -> Result<Dataset> {
    FORETUNE_TRY(Dataset read, import_csv_text(text, like.header(), &report));
    // Copying is valid: both data sets have the header of `like`, so metrics have the same numbers.
    for (Dataset::Baseline baseline : like.baselines()) {
      baseline.problem = read.intern_problem(like.problems()[baseline.problem]);
      read.add_baseline(std::move(baseline));
    }
    return read;
  });
  return with_report(std::move(dataset), report);
}

nb::tuple from_ck_csv_text(const std::string& text, const std::string& family,
                           const std::string& role, const std::string& arch,
                           const std::string& hardware) {
  ImportFacts facts{.family = family, .role = role_of(role), .fingerprint = {}};
  if (!hardware.empty()) {
    const std::string rocminfo = checked(read_text_file(hardware));
    facts.fingerprint = checked(parse_rocminfo(rocminfo, arch));
  } else if (!arch.empty()) {
    facts.fingerprint = checked(ck_fingerprint(arch));
  }
  ImportReport report;
  Result<Dataset> dataset =
      without_lock([&] { return import_ck_text(text, ExchangeFormat::kCkCsv, facts, &report); });
  return with_report(std::move(dataset), report);
}

nb::dict write(const Dataset& dataset, const std::string& path, const std::string& format_name) {
  const ExchangeFormat format = format_of(format_name).value_or(ExchangeFormat::kForetune);
  ImportReport report;
  checked(without_lock([&] {
    return format == ExchangeFormat::kForetune ? write_dataset(dataset, path)
                                               : export_dataset(dataset, path, format, &report);
  }));
  return report_of(report);
}

nb::tuple to_bytes(const Dataset& dataset, const std::string& format_name) {
  const std::optional<ExchangeFormat> format = format_of(format_name);
  ImportReport report;
  const std::vector<std::byte> bytes = checked(without_lock([&] {
    return format && *format != ExchangeFormat::kForetune ? export_bytes(dataset, *format, &report)
                                                          : dataset_bytes(dataset);
  }));
  return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), report_of(report));
}

Dataset from_bytes(const nb::bytes& bytes) {
  return checked(
      read_dataset_bytes(std::span(static_cast<const std::byte*>(bytes.data()), bytes.size())));
}

// Returns the parts that a table of rows lacks: header, interned values and baselines.
Dataset without_rows(const Dataset& dataset) {
  Dataset out = dataset;
  out.drop_rows();
  return out;
}

nb::tuple merged(const Dataset& first, const std::vector<const Dataset*>& others) {
  Result<std::pair<Dataset, std::size_t>> result =
      without_lock([&]() -> Result<std::pair<Dataset, std::size_t>> {
        Dataset all = first;
        for (const Dataset* other : others) {
          FORETUNE_TRY_STATUS(all.merge(*other));
        }
        const std::size_t repeats = all.deduplicate();
        return std::pair(std::move(all), repeats);
      });
  auto [all, repeats] = checked(std::move(result));
  return nb::make_tuple(std::move(all), repeats);
}

std::vector<std::uint32_t> folds_of(const Dataset& dataset, std::uint32_t folds,
                                    std::uint64_t seed) {
  if (folds < 2) {
    raise({ErrorCode::kInvalidArgument, concat("a split needs at least 2 folds, not ", folds)});
  }
  Rng rng(seed);
  return group_folds(dataset.problems(), folds, rng);
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<Dataset> type(module, "Dataset");
  bind_column(type, "problem_ids", &Row::problem);
  bind_column(type, "config_ids", &Row::config);
  bind_column(type, "context_ids", &Row::context);
  bind_column<Outcome, std::uint8_t>(type, "outcomes", &Row::outcome);
  bind_column<Stage, std::uint8_t>(type, "stages", &Row::stage);
  bind_column(type, "flags", &Row::flags);
  bind_column(type, "samples", &Row::samples);
  bind_column(type, "reason_ids", &Row::reason);
  bind_column(type, "time_ns", &Row::time_ns);
  bind_column(type, "median_ns", &Row::median_ns);
  bind_column(type, "spread", &Row::spread);
  type.def("__len__", &Dataset::size)
      .def("header", &header_of)
      .def("problem_fields", &problem_fields)
      .def("problem_columns", &problem_columns)
      .def("config_words", &config_words)
      .def("config_columns", &config_columns)
      .def("metric_columns", &metric_columns)
      .def("contexts", &contexts_of)
      .def("baselines", &baselines_of)
      .def("extras", &extras_of)
      .def("metrics", &metrics_of)
      .def("notes", &Dataset::notes)
      .def("baseline_metrics", &baseline_metrics_of)
      .def("problems",
           [](const Dataset& dataset) {
             std::vector<std::string> out;
             for (const Problem& problem : dataset.problems()) {
               out.push_back(problem.text());
             }
             return out;
           })
      .def("configs",
           [](const Dataset& dataset) {
             std::vector<std::string> out;
             for (const Config& config : dataset.configs()) {
               out.push_back(to_text(dataset.header().config_schema, config));
             }
             return out;
           })
      .def("reasons",
           [](const Dataset& dataset) {
             return std::vector<std::string>(dataset.reasons().begin(), dataset.reasons().end());
           })
      .def("fingerprint", [](const Dataset& dataset) { return dataset.fingerprint().hex(); })
      .def("write", &write, nb::arg("path"), nb::arg("format"))
      .def("to_bytes", &to_bytes, nb::arg("format"))
      .def("without_rows", &without_rows)
      .def("merged", &merged, nb::arg("others"))
      .def("filter_problems", &Dataset::filter_problems, nb::arg("keep"))
      .def("folds", &folds_of, nb::arg("folds"), nb::arg("seed"));
  module.def("read_dataset", &read, nb::arg("path"), nb::arg("format"), nb::arg("family"),
             nb::arg("role"), nb::arg("device"));
  module.def("dataset_from_csv_text", &from_csv_text, nb::arg("text"), nb::arg("like"));
  module.def("dataset_from_ck_csv_text", &from_ck_csv_text, nb::arg("text"), nb::arg("family"),
             nb::arg("role"), nb::arg("arch"), nb::arg("hardware"));
  module.def("dataset_from_bytes", &from_bytes, nb::arg("bytes"));
  const auto texts = [](std::span<const std::string_view> names) {
    return std::vector<std::string>(names.begin(), names.end());
  };
  module.attr("outcomes") = nb::cast(texts(outcome_names()));
  const std::vector<std::string> stages = texts(stage_names());
  module.attr("stages") = nb::cast(stages);
}

}  // namespace foretune::python
