// Bindings for tuning one problem and for measuring given configs of it.
#include "foretune/workflow/tuning.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/metrics/metric.h"
#include "foretune/workflow/measure_configs.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"

namespace foretune::python {
namespace {

workflow::Invocation invocation_of(const std::string& caller, std::int64_t seed,
                                   std::vector<std::string> worker_command) {
  return {.seed = static_cast<std::uint64_t>(seed),
          .worker_command = std::move(worker_command),
          .command_line = caller};
}

nb::dict values_of(const std::vector<MetricValue>& values) {
  nb::dict out;
  for (const MetricValue& value : values) {
    out[nb::cast(value.metric)] = value.value;
  }
  return out;
}

nb::dict describe(const TunedConfig& tuned, const ConfigSchema& schema) {
  nb::dict out;
  out["config"] = to_text(schema, tuned.config);
  out["time_ns"] = tuned.time_ns;
  out["spread"] = tuned.spread;
  out["metrics"] = values_of(tuned.values);
  return out;
}

nb::dict tune_now(const std::string& problem, const OptionTexts& texts, std::int64_t seed,
                  std::vector<std::string> worker_command, const nb::object& callback) {
  workflow::TuneArguments arguments;
  set_options([&](workflow::OptionList& list) { arguments.visit_search(list); }, texts);
  arguments.problem.text = {problem};
  const workflow::Invocation invocation =
      invocation_of("foretune.tune", seed, std::move(worker_command));
  Interruptions interruptions;
  std::atomic<bool> stop = false;
  workflow::TuneHooks hooks;
  hooks.stop = &stop;
  hooks.on_progress = [&](const CollectProgress& progress, std::size_t /*index*/) {
    const bool goes_on = interruptions.poll(callback, [&] {
      nb::dict out;
      out["measured"] = progress.measured;
      out["elapsed_s"] = progress.elapsed_s;
      out["best_ns"] = progress.best_ns;
      out["best_config"] = progress.best_config;
      return out;
    });
    stop = stop || !goes_on;
  };
  ConfigSchema schema;
  auto tuned = with_callbacks([&]() -> Result<workflow::Tuning> {
    FORETUNE_TRY(const workflow::PreparedTuning prepared,
                 workflow::prepare_tuning(arguments, invocation));
    schema = prepared.live.family->info().config_schema;
    return workflow::run_tuning(prepared, invocation, hooks);
  });
  interruptions.raise_pending();
  const workflow::Tuning tuning = checked(std::move(tuned));
  if (tuning.tuned.empty()) {
    raise({ErrorCode::kInvalidArgument,
           concat("the data set ", arguments.output, " holds this problem's result already")});
  }
  const TuneResult& result = tuning.tuned.front().second;
  nb::dict out;
  nb::list finalists;
  for (const TunedConfig& finalist : result.finalists) {
    finalists.append(describe(finalist, schema));
  }
  out["finalists"] = finalists;
  out["default"] =
      result.by_default ? nb::object(describe(*result.by_default, schema)) : nb::object(nb::none());
  out["measured"] = result.progress.measured;
  out["seconds"] = result.progress.elapsed_s;
  return out;
}

nb::list measure_now(const std::string& problem, const std::vector<std::string>& configs,
                     const OptionTexts& texts, std::int64_t seed,
                     std::vector<std::string> worker_command) {
  workflow::MeasureConfigsArguments arguments;
  set_options([&](workflow::OptionList& list) { arguments.visit_measuring(list); }, texts);
  arguments.problem.text = {problem};
  arguments.configs = configs;
  const workflow::Invocation invocation =
      invocation_of("foretune.measure", seed, std::move(worker_command));
  const workflow::MeasuredConfigs measured =
      checked(with_callbacks([&] { return workflow::measure_configs(arguments, invocation); }));
  nb::list out;
  for (const workflow::MeasuredConfig& each : measured.configs) {
    const MetricValue* const time = each.time();
    const Measurement& last =
        each.alone->outcome == Outcome::kOk && each.beside ? *each.beside : *each.alone;
    nb::dict entry;
    entry["name"] = each.name;
    entry["config"] = to_text(measured.live.family->info().config_schema, each.config);
    entry["outcome"] = std::string(to_string(last.outcome));
    entry["reason"] = last.reason;
    entry["time_ns"] = time == nullptr ? nb::object(nb::none()) : nb::cast(time->value);
    entry["spread"] = time == nullptr ? nb::object(nb::none()) : nb::cast(time->spread);
    entry["metrics"] = values_of(each.alone->metrics);
    out.append(entry);
  }
  return out;
}

}  // namespace

void bind_tuning(nb::module_& module) {
  module.def("tune", &tune_now, nb::arg("problem"), nb::arg("options"), nb::arg("seed"),
             nb::arg("worker_command"), nb::arg("progress").none());
  module.def("measure", &measure_now, nb::arg("problem"), nb::arg("configs"), nb::arg("options"),
             nb::arg("seed"), nb::arg("worker_command"));
}

}  // namespace foretune::python
