// Bindings for foretune.evaluate: the quality of a model's picks.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/judge.h"
#include "foretune/workflow/source.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

struct Report {
  Evaluation evaluation;
  Fingerprint fingerprint;
  std::string source;
};

Report evaluate_now(const Model& model, const Dataset& dataset, const Dataset* training,
                    std::size_t top_n_worst, std::uint64_t seed) {
  return checked(with_callbacks([&]() -> Result<Report> {
    EvaluateOptions options;
    options.top_n_worst = top_n_worst;
    options.seed = seed;
    options.training = training;
    FORETUNE_TRY(Evaluation evaluation,
                 workflow::evaluate_model(model, dataset, "the data set", {}, options));
    return Report{std::move(evaluation), dataset.header().fingerprint,
                  workflow::source_line(
                      {workflow::data_source({}, dataset), workflow::model_source({}, model)},
                      dataset.header().fingerprint.device)};
  }));
}

std::vector<nb::dict> picks_of(const Report& report) {
  std::vector<nb::dict> out;
  for (const PickedProblem& picked : report.evaluation.picks) {
    nb::dict entry;
    entry["problem"] = picked.problem;
    entry["pick"] = picked.pick;
    entry["best_ns"] = picked.best_ns;
    entry["efficiency"] = picked.efficiency;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  nb::class_<Report>(module, "Report")
      .def(
          "text",
          [](const Report& report, bool color) { return report_text(report.evaluation, color); },
          nb::arg("color"))
      .def("json",
           [](const Report& report) {
             return report_json(report.evaluation, "evaluate", "foretune.evaluate",
                                report.fingerprint);
           })
      .def(
          "html",
          [](const Report& report, const std::string& title) {
            return report_html(report.evaluation, title, report.source);
          },
          nb::arg("title"))
      .def("picks", &picks_of);
  module.def("evaluate", &evaluate_now, nb::arg("model"), nb::arg("dataset"),
             nb::arg("training").none(), nb::arg("top_n_worst"), nb::arg("seed"));
}

}  // namespace foretune::python
