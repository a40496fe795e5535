// Bindings for models: files, ranking, selection; models that other programs trained.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/learned_rate.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"
#include "foretune/select/generate.h"
#include "foretune/select/select.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

Problem problem_from(const std::string& text) { return checked(Problem::parse(text)); }

// Returns the name of each problem type and the names of its fields.
std::vector<std::pair<std::string, std::vector<std::string>>> names_of_problem_types() {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const ProblemTypeInfo* type : problem_types()) {
    std::vector<std::string> fields;
    for (const ProblemField& field : type->schema.fields) {
      fields.emplace_back(field.name);
    }
    out.emplace_back(type->schema.name, std::move(fields));
  }
  return out;
}

double flops_of(const std::string& text) {
  const Problem problem = problem_from(text);
  const std::optional<ProblemWork> work = problem_work(problem);
  if (!work) {
    raise({ErrorCode::kUnsupported, concat("nothing says how many operations ", text, " takes")});
  }
  return work->flops;
}

// Scores any configs of the model's schema, in the order given. Scores are natural logarithms of
// time, up to a constant of the problem unless the model's target is "log".
nb::ndarray<nb::numpy, double, nb::ndim<1>> score(const Model& model, const std::string& problem,
                                                  const std::vector<std::string>& configs) {
  const Problem parsed = problem_from(problem);
  std::vector<Config> parsed_configs;
  for (const std::string& text : configs) {
    parsed_configs.push_back(checked(parse_config(model.config_schema, text)));
  }
  return array(
      checked(with_callbacks([&] { return score_configs(model, parsed, parsed_configs); })));
}

nb::dict describe(const Model& model) {
  nb::dict out;
  out["kind"] = model.kind;
  out["family"] = model.family;
  out["problem_type"] = std::string(find_problem_schema(model.problem_type)->name);
  out["config_schema"] = model.config_schema.name;
  out["config_schema_version"] = model.config_schema.version;
  out["feature_table"] = model.feature_table;
  out["target"] = model.target;
  out["device"] = model.fingerprint.device;
  nb::dict figures;
  for (const auto& [name, value] : describe_model(model).figures) {
    figures[name.c_str()] = value;
  }
  out["figures"] = figures;
  nb::list metrics;
  for (const ScoreColumn& column : columns_of(model)) {
    nb::dict metric;
    metric["name"] = column.metric.name;
    metric["unit"] = column.metric.unit;
    metric["direction"] = std::string(to_string(column.metric.direction));
    metric["is_absolute"] = column.is_absolute;
    metrics.append(metric);
  }
  out["metrics"] = metrics;
  out["pool_size"] = model.pool.size();
  out["seed"] = model.seed;
  out["data_fingerprint"] = model.data_fingerprint.hex();
  out["card_json"] = model.card_json;
  return out;
}

SelectorOptions selector_options(const std::string& objective) {
  SelectorOptions options;
  if (!objective.empty()) {
    options.objective = checked(Objective::parse(objective));
  }
  return options;
}

nb::dict choice_of(const Selector& selector, const std::string& text) {
  const Problem problem = problem_from(text);
  const Choice choice = may_call_python(selector.model())
                            ? with_callbacks([&] { return selector.select(problem); })
                            : selector.select(problem);
  nb::dict out;
  out["config"] = choice.has_candidate ? nb::cast(selector.config_text(choice.candidate))
                                       : nb::object(nb::none());
  out["reason"] =
      choice.picked() ? nb::object(nb::none()) : nb::cast(std::string(to_string(choice.reason)));
  out["score"] = choice.score;
  out["margin"] = choice.margin;
  return out;
}

// Returns the best `top` configs with the predicted value and interval of each metric.
nb::list predictions_of(const Selector& selector, const std::string& text, std::size_t top) {
  const Problem problem = problem_from(text);
  std::vector<RankedCandidate> ranked;
  std::vector<std::vector<PredictedMetric>> predicted;
  with_callbacks([&] {
    ranked = selector.rank(problem);
    ranked.resize(std::min(ranked.size(), top));
    std::vector<std::uint32_t> candidates;
    for (const RankedCandidate& candidate : ranked) {
      candidates.push_back(candidate.candidate);
    }
    predicted = selector.predict_metrics(problem, candidates);
    return 0;
  });
  nb::list out;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    nb::dict entry;
    entry["config"] = selector.config_text(ranked[i].candidate);
    entry["score"] = ranked[i].score;
    entry["keeps_bounds"] = keeps_bounds(ranked[i].score);
    nb::dict metrics;
    for (std::size_t c = 0; c < selector.columns().size(); ++c) {
      const PredictedMetric& metric = predicted[i][c];
      metrics[nb::cast(selector.columns()[c].metric.name)] =
          nb::make_tuple(metric.value, metric.low, metric.high);
    }
    entry["metrics"] = metrics;
    out.append(entry);
  }
  return out;
}

auto scores_of(const std::vector<RankedCandidate>& ranked) {
  std::vector<double> scores;
  for (const RankedCandidate& candidate : ranked) {
    scores.push_back(candidate.score);
  }
  return array(std::move(scores));
}

nb::tuple ranking_of(const Selector& selector, const std::string& text) {
  const Problem problem = problem_from(text);
  const std::vector<RankedCandidate> ranked =
      with_callbacks([&] { return selector.rank(problem); });
  std::vector<std::string> configs;
  for (const RankedCandidate& candidate : ranked) {
    configs.push_back(selector.config_text(candidate.candidate));
  }
  return nb::make_tuple(configs, scores_of(ranked));
}

// Returns the ranking with configs as rows of values, which is faster than as text.
nb::tuple word_ranking_of(const Selector& selector, const std::string& text) {
  const Problem problem = problem_from(text);
  const std::vector<RankedCandidate> ranked =
      with_callbacks([&] { return selector.rank(problem); });
  std::vector<std::int32_t> words;
  for (const RankedCandidate& candidate : ranked) {
    const std::span row = selector.words(candidate.candidate);
    words.insert(words.end(), row.begin(), row.end());
  }
  return nb::make_tuple(
      matrix(std::move(words), ranked.size(), selector.model().config_schema.parameters.size()),
      scores_of(ranked));
}

std::optional<std::string> abstention_of(const Selector& selector, const std::string& text) {
  const Problem problem = problem_from(text);
  const AbstainReason reason = with_callbacks([&] { return selector.coverage(problem); });
  return reason == AbstainReason::kNone ? std::nullopt
                                        : std::optional(std::string(to_string(reason)));
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def("describe", &describe)
      .def("score", &score, nb::arg("problem"), nb::arg("configs"))
      .def("config_columns",
           [](const Model& model) {
             std::vector<std::string> names;
             for (const Parameter& parameter : model.config_schema.parameters) {
               names.push_back(parameter.name);
             }
             return names;
           })
      .def(
          "write",
          [](const Model& model, const std::string& path) {
            checked(without_lock([&] { return write_model(model, path); }));
          },
          nb::arg("path"))
      // (unit, log1p, factor) of a model of rates or latencies: its scores are the factor times
      // what it learned.
      .def("learned_rate",
           [](const Model& model) -> nb::object {
             const std::optional<LearnedRate> rate = learned_rate_of(model);
             if (!rate) {
               return nb::none();
             }
             constexpr std::array<const char*, 3> kUnits{"tflops", "latency", "bandwidth"};
             return nb::make_tuple(kUnits.at(static_cast<std::size_t>(rate->unit)), rate->log1p,
                                   rate->factor);
           })
      .def_prop_ro("is_lasting",
                   [](const Model& model) { return check_lasting(model).has_value(); })
      .def("to_bytes", [](const Model& model) {
        checked(check_lasting(model));
        const std::vector<std::byte> bytes = model_bytes(model);
        return nb::bytes(bytes.data(), bytes.size());
      });
  nb::class_<Selector>(module, "Selector")
      .def_prop_ro("pool_size", &Selector::pool_size)
      .def("select", &choice_of, nb::arg("problem"))
      .def("predict", &predictions_of, nb::arg("problem"), nb::arg("top"))
      .def("abstention", &abstention_of, nb::arg("problem"))
      .def("rank", &ranking_of, nb::arg("problem"))
      .def("rank_words", &word_ranking_of, nb::arg("problem"));
  module.def(
      "read_model",
      [](const std::string& path) {
        return checked(without_lock([&]() -> Result<Model> {
          FORETUNE_TRY(Model model, read_model(path));
          FORETUNE_TRY_STATUS(feature_table_of(model).map([](const auto&) {}));
          return model;
        }));
      },
      nb::arg("path"));
  module.def(
      "make_selector",
      [](const Model& model, const std::string& objective) {
        const SelectorOptions options = selector_options(objective);
        return checked(without_lock([&] { return Selector::create(model, options); }));
      },
      nb::arg("model"), nb::arg("objective") = "");
  module.def("needs_generating", &needs_generating, nb::arg("model"));
  module.def(
      "make_generated_selector",
      [](const Model& model, const std::string& problem, const std::string& objective) {
        const SelectorOptions options = selector_options(objective);
        const Problem parsed = problem_from(problem);
        return checked(without_lock([&]() -> Result<std::unique_ptr<Selector>> {
          FORETUNE_TRY(GeneratedConfigs found, generate_configs(model, parsed, {}));
          return Selector::create(with_pool(model, std::move(found.configs)), options);
        }));
      },
      nb::arg("model"), nb::arg("problem"), nb::arg("objective") = "");
  module.def("problem_types", &names_of_problem_types);
  module.def("canonical_problem",
             [](const std::string& text) { return problem_from(text).text(); });
  module.def("problem_flops", &flops_of, nb::arg("problem"));
}

}  // namespace foretune::python
