// Renders evaluations of models: as text for a terminal, as JSON for programs, as one HTML page.
//
//   FORETUNE_TRY(const Evaluation evaluation, evaluate(dataset, ranked, &model, options));
//   print(report_text(evaluation, true));
//
// Text has at most 100 columns where problems are short, and ANSI colours when `color`. JSON has
// the envelope {"name", "metrics": {...}, "machine": {...}, "command"} and more parts. HTML is
// self-contained: inline SVG, no scripts.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/evaluate/compare.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/evaluate/unseen_configs.h"
#include "foretune/hardware/hardware.h"
#include "foretune/report/figure_file.h"

namespace foretune {

std::string report_text(const Evaluation& evaluation, bool color);
// Further parts: "baselines", "slices", "worst", "facts" and "warnings". JSON alone has the figures
// of every problem.
std::string report_json(const Evaluation& evaluation, const std::string& name,
                        const std::string& command, const Fingerprint& machine);
// `source` is one line below each figure: program, data and model, device, date.
std::string report_html(const Evaluation& evaluation, const std::string& title,
                        std::string_view source);
// The plots of the page.
std::vector<FigureFile> report_figures(const Evaluation& evaluation, std::string_view source);

// Lists `rows` problems that lost and as many that won.
std::string comparison_text(const ModelComparison& comparison, std::size_t rows, bool color);
std::string comparison_json(const ModelComparison& comparison, const std::string& command);

// A table of the splits, to stand before the report of the evaluation.
std::string splits_text(const CrossEvaluation& result);
// report_json() with "splits".
std::string cross_report_json(const CrossEvaluation& result, const std::string& name,
                              const std::string& command, const Fingerprint& machine);

// A table of the parts of the configs, and what its columns mean.
std::string unseen_text(const UnseenEvaluation& unseen);
std::string unseen_json(const UnseenEvaluation& unseen, const std::string& name,
                        const std::string& command, const Fingerprint& machine);

// Lists the `worst` problems.
std::string fronts_text(const FrontEvaluation& fronts, std::size_t worst);
std::string fronts_json(const FrontEvaluation& fronts, const std::string& name,
                        const std::string& command, const Fingerprint& machine);

std::string prediction_text(const Prediction& prediction, bool color);
// docs/guides/predict-and-search.md lists the fields.
std::string prediction_json(const Prediction& prediction, const std::string& command);
// Several problems: the list of each, then what the first of all lists have in common.
std::string predictions_text(std::span<const Prediction> predictions, bool color);
// Figures of them all, and in "problems" what prediction_json() has of each.
std::string predictions_json(std::span<const Prediction> predictions, const std::string& command);

// "57 epochs, best 47: training loss 0.0123, stopping loss 0.0145"
std::string training_text(const TrainingCurve& curve);
// An SVG file with the source of its numbers; empty without curves.
std::string loss_svg(const TrainingCurves& trained, std::string_view source);

}  // namespace foretune
