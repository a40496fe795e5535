// Bindings for data set files that several processes append to: rows as plain values, for the parts
// of the package that measure by themselves.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/shared_journal.h"
#include "foretune/metrics/metric.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using Labels = std::vector<std::string>;
using Parameters = std::vector<std::pair<std::string, Labels>>;
// Name, value, spread, samples.
using Value = std::tuple<std::string, double, double, std::uint32_t>;
// Problem as text, words of the config, outcome, stage, reason, metrics.
using Appended = std::tuple<std::string, std::vector<std::int32_t>, std::string, std::string,
                            std::string, std::vector<Value>>;

Result<DatasetHeader> make_header(const std::string& problem_type, const std::string& schema,
                                  const Parameters& parameters, const std::string& fingerprint,
                                  const std::vector<std::string>& metrics,
                                  const std::string& created_by) {
  DatasetHeader header;
  header.family = "recorded";
  const ProblemSchema* const type = find_problem_schema(problem_type);
  if (type == nullptr) {
    return fail(ErrorCode::kInvalidArgument, quoted(problem_type, 40), " is not a problem type");
  }
  header.problem_type = type->type;
  header.config_schema.name = schema;
  for (const auto& [name, labels] : parameters) {
    header.config_schema.parameters.push_back({name, labels});
  }
  FORETUNE_TRY(header.fingerprint, Fingerprint::parse(fingerprint));
  for (const std::string& metric : metrics) {
    FORETUNE_TRY(MetricInfo info, parse_metric_info(metric));
    header.metrics.push_back(std::move(info));
  }
  header.created_by = created_by;
  return header;
}

Result<Measurement> make_measurement(const Appended& row, const DatasetHeader& header) {
  const auto& [problem, words, outcome, stage, reason, metrics] = row;
  const std::optional<Outcome> known_outcome = parse_outcome(outcome);
  const std::optional<Stage> known_stage = parse_stage(stage);
  if (!known_outcome || !known_stage) {
    return fail(ErrorCode::kInvalidArgument, "there is no outcome '", outcome, "' at the stage '",
                stage, "'");
  }
  FORETUNE_TRY(Problem parsed, Problem::parse(problem));
  Measurement out{.problem = std::move(parsed),
                  .config = {.schema = header.config_schema.id(), .words = {}},
                  .context = {.machine = header.fingerprint.digest(),
                              .device = header.fingerprint.device,
                              .threads = 0},
                  .outcome = *known_outcome,
                  .stage = *known_stage,
                  .flags = 0,
                  .reason = reason,
                  .metrics = {},
                  .samples_ns = {}};
  for (const std::int32_t word : words) {
    out.config.words.push_back(word);
  }
  for (const auto& [name, value, spread, samples] : metrics) {
    out.metrics.emplace_back(name, value, spread, samples);
  }
  return out;
}

// A journal with the header that it was opened with, for new rows of a file that does not exist.
struct Journal {
  std::optional<DatasetHeader> wanted;
  std::unique_ptr<SharedJournal> shared;

  [[nodiscard]] const DatasetHeader& header() const {
    return wanted ? *wanted : shared->dataset().header();
  }
};

std::unique_ptr<Journal> open(const std::string& path, const nb::object& make) {
  auto journal = std::make_unique<Journal>();
  if (!make.is_none()) {
    const auto text = [&](const char* key) { return nb::cast<std::string>(make[key]); };
    journal->wanted = checked(
        make_header(text("problem_type"), text("schema"), nb::cast<Parameters>(make["parameters"]),
                    text("fingerprint"), nb::cast<std::vector<std::string>>(make["metrics"]),
                    text("created_by")));
  }
  journal->shared =
      checked(without_lock([&] { return SharedJournal::open(path, journal->wanted); }));
  return journal;
}

void append(Journal& journal, const std::vector<Appended>& rows, const Notes& notes) {
  std::vector<Measurement> measurements;
  for (const Appended& row : rows) {
    measurements.push_back(checked(make_measurement(row, journal.header())));
  }
  checked(without_lock([&] { return journal.shared->append(measurements, notes); }));
}

// Returns the rows from `first` on as (problem id, config id, outcome, stage, reason, metrics by
// name, each with value, spread and samples).
nb::list rows_from(const Journal& journal, std::size_t first) {
  const Dataset& dataset = journal.shared->dataset();
  nb::list out;
  for (std::size_t i = first; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    nb::dict metrics;
    for (const MetricValue& value : dataset.values(static_cast<RowIndex>(i))) {
      metrics[nb::cast(value.metric)] = nb::make_tuple(value.value, value.spread, value.samples);
    }
    out.append(nb::make_tuple(row.problem, row.config, std::string(to_string(row.outcome)),
                              std::string(to_string(row.stage)), dataset.reason(row.reason),
                              metrics));
  }
  return out;
}

nb::list problems_from(const Journal& journal, std::size_t first) {
  nb::list out;
  const std::span<const Problem> problems = journal.shared->dataset().problems();
  for (std::size_t i = first; i < problems.size(); ++i) {
    out.append(std::vector<std::int64_t>(problems[i].fields().begin(), problems[i].fields().end()));
  }
  return out;
}

nb::list configs_from(const Journal& journal, std::size_t first) {
  nb::list out;
  const std::span<const Config> configs = journal.shared->dataset().configs();
  for (std::size_t i = first; i < configs.size(); ++i) {
    out.append(std::vector<std::int32_t>(configs[i].words.begin(), configs[i].words.end()));
  }
  return out;
}

Parameters parameters_of(const Journal& journal) {
  Parameters out;
  for (const Parameter& parameter : journal.header().config_schema.parameters) {
    out.emplace_back(parameter.name, parameter.labels);
  }
  return out;
}

void remove_failures(Journal& journal) {
  checked(without_lock([&] {
    return journal.shared->remove_rows([](const Dataset::Row& row) {
      return row.outcome != Outcome::kOk && row.outcome != Outcome::kCensored;
    });
  }));
}

}  // namespace

void bind_journal(nb::module_& module) {
  nb::class_<Journal>(module, "SharedJournal")
      .def("__len__", [](const Journal& journal) { return journal.shared->dataset().size(); })
      .def("refresh",
           [](Journal& journal) {
             checked(without_lock([&] { return journal.shared->refresh(); }));
           })
      .def("append", &append, nb::arg("rows"), nb::arg("notes"))
      .def("remove_failures", &remove_failures)
      .def("rows", &rows_from, nb::arg("first"))
      .def("problems", &problems_from, nb::arg("first"))
      .def("configs", &configs_from, nb::arg("first"))
      .def("notes", [](const Journal& journal) { return journal.shared->dataset().notes(); })
      .def_prop_ro("parameters", &parameters_of)
      .def_prop_ro("generation",
                   [](const Journal& journal) { return journal.shared->generation(); });
  module.def("open_journal", &open, nb::arg("path"), nb::arg("make").none());
}

}  // namespace foretune::python
