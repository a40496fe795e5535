// Bindings for training: the options of the command line as keywords.
#include "foretune/workflow/training.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/collection.h"
#include "foretune/workflow/measure_configs.h"
#include "foretune/workflow/tuning.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"

namespace foretune::python {
namespace {

std::string_view kind_of(const workflow::Option::Target& target) {
  struct Visitor {
    std::string_view operator()(const bool* /*value*/) const { return "switch"; }
    std::string_view operator()(const std::int64_t* /*value*/) const { return "int"; }
    std::string_view operator()(const std::optional<std::int64_t>* /*value*/) const {
      return "int";
    }
    std::string_view operator()(const double* /*value*/) const { return "float"; }
    std::string_view operator()(const std::optional<double>* /*value*/) const { return "float"; }
    std::string_view operator()(const std::string* /*value*/) const { return "str"; }
    std::string_view operator()(const std::vector<std::string>* /*value*/) const { return "list"; }
  };
  return std::visit(Visitor{}, target);
}

// Returns the model, its held-out figures and the held-out scores of the rows.
nb::tuple train_now(const Dataset& dataset, const OptionTexts& texts, std::int64_t seed,
                    std::vector<std::string> program, const nb::object& callback) {
  workflow::TrainArguments arguments;
  set_options([&](workflow::OptionList& list) { arguments.visit_training(list); }, texts);
  const workflow::Invocation invocation{.seed = static_cast<std::uint64_t>(seed),
                                        .worker_command = std::move(program),
                                        .command_line = "foretune.train"};
  Interruptions interruptions;
  workflow::TrainHooks hooks;
  hooks.on_progress = [&](const TrainProgress& progress) {
    return interruptions.poll(callback, [&] {
      nb::dict out;
      out["stage"] = progress.stage;
      out["tree"] = progress.tree;
      out["trees"] = progress.trees;
      out["loss"] = progress.loss;
      return out;
    });
  };
  const CallbackErrors errors;
  auto trained = without_lock([&]() -> Result<workflow::Training> {
    FORETUNE_TRY(workflow::Training training,
                 workflow::train_on(dataset, arguments, invocation, hooks));
    if (!arguments.out_dir.empty()) {
      FORETUNE_TRY_STATUS(
          workflow::write_trained(arguments, training).map([](const workflow::TrainedFiles&) {}));
    }
    return training;
  });
  interruptions.raise_pending();
  errors.raise_pending();
  workflow::Training training = checked(std::move(trained));
  TrainResult& result = training.results.front();
  nb::dict metrics;
  for (const auto& [name, value] : result.metrics) {
    metrics[nb::cast(name)] = value;
  }
  return nb::make_tuple(std::move(result.model), metrics, array(std::move(result.held_out_scores)));
}

nb::list options_of(const std::string& use_case) {
  workflow::OptionList list;
  workflow::TrainArguments training;
  workflow::TrainingArguments collected;
  workflow::ValidationArguments validation;
  workflow::TuneArguments tuning;
  workflow::MeasureConfigsArguments measuring;
  if (use_case == "train") {
    training.visit_training(list);
  } else if (use_case == "collect") {
    collected.visit(list);
  } else if (use_case == "create-validation") {
    validation.visit(list);
  } else if (use_case == "tune") {
    tuning.visit_search(list);
  } else if (use_case == "measure") {
    measuring.visit_measuring(list);
  } else {
    raise({ErrorCode::kInvalidArgument, concat("there are no options of '", use_case, "'")});
  }
  return describe_options(list);
}

}  // namespace

nb::list describe_options(const workflow::OptionList& list) {
  nb::list out;
  for (const workflow::Option& option : list.options()) {
    if (option.hidden || option.positional) {
      continue;
    }
    nb::dict entry;
    entry["name"] = option.name;
    entry["kind"] = std::string(kind_of(option.target));
    entry["value"] = option.value_name;
    entry["help"] = option.help;
    entry["default"] = option.default_text;
    entry["choices"] = option.choices;
    entry["section"] = option.section;
    out.append(entry);
  }
  return out;
}

void bind_training(nb::module_& module) {
  module.def("train", &train_now, nb::arg("dataset"), nb::arg("options"), nb::arg("seed"),
             nb::arg("program"), nb::arg("progress").none());
  module.def("options_of", &options_of, nb::arg("use_case"));
}

}  // namespace foretune::python
