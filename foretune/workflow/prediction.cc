#include "foretune/workflow/prediction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/evaluate/card_identifiers.h"
#include "foretune/hardware/cpu.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/model/model_folder.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"
#include "foretune/select/generate.h"
#include "foretune/select/select.h"

namespace foretune::workflow {

void PredictArguments::visit(OptionList& list) {
  model.visit(list).require();
  problem.visit(list);
  list.add("problems", problems, "FILE",
           concat("predict every problem of an operation shape set or a CSV file, or of ",
                  shape_set_names()));
  payloads.visit(list);
  list.add("top-k", top, "N", "number of configs to list").at_least(1);
  list.add("objective", objective, "TEXT",
           "objective to pick by, over the metrics that the model predicts: \"minimise time_ns "
           "subject to pack_ns <= 2 ms\", or \"pareto time_ns pack_ns\" for the predicted front");
  list.add_switch("explain", explain,
                  "say why the first config beats the second, and which rules exclude others");
  list.add("json", json, "FILE", "write everything as JSON");
}

namespace {

// Returns the numbers that the model knows of the fields that are missing (ProblemField::
// is_identifier), for a message: "; the model knows variant 1, 4".
std::string known_identifiers(const Model& model, const OneProblemArguments& problem) {
  constexpr std::size_t kShown = 8;
  std::string out;
  for (const ProblemField& field : find_problem_schema(model.problem_type)->fields) {
    const std::vector<std::int64_t> known = problem.gives(field.name)
                                                ? std::vector<std::int64_t>()
                                                : card_identifiers(model.card_json, field.name);
    if (known.empty()) {
      continue;
    }
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(kShown, known.size()); ++i) {
      shown.push_back(concat(known[i]));
    }
    out += concat("; the model knows ", field.name, " ", join(shown, ", "),
                  known.size() > kShown ? ", ..." : "");
  }
  return out;
}

// Predicts problems with one model, or with those of a directory.
class Predictions {
 public:
  Predictions(const PredictArguments& arguments, std::optional<Objective> objective)
      : arguments_(arguments), objective_(std::move(objective)) {}

  Status open(PayloadStore& payloads, const Invocation& invocation) {
    if (objective_ && objective_->is_pareto()) {
      if (arguments_.explain) {
        return without_effect({"--explain"}, "with one target");
      }
    } else {
      options_.objective = objective_;
    }
    if (arguments_.model.is_folder() ||
        (!arguments_.model.is_directory() && !arguments_.model.path.empty())) {
      FORETUNE_TRY(const std::string file, model_file(payloads));
      FORETUNE_TRY(selector_, Selector::open(file, options_));
      return {};
    }
    FORETUNE_TRY(OpenedModels opened, arguments_.model.open(invocation));
    others_ = std::move(opened.others);
    labels_ = std::move(opened.labels);
    FORETUNE_TRY(selector_, Selector::create(std::move(opened.model), options_));
    return {};
  }

  // Returns the problem of the command line, or those of --problems.
  Result<std::vector<Problem>> problems(PayloadStore& payloads) const {
    const ProblemType type = selector_->model().problem_type;
    OneProblemArguments problem = arguments_.problem;
    for (const auto& [field, label] : labels_) {
      problem.assume(field, label);
    }
    std::vector<Problem> out;
    if (arguments_.problems.empty()) {
      Result<Problem> one = problem.parse(type, payloads);
      if (!one) {
        return fail(one.error().code, one.error().message,
                    known_identifiers(selector_->model(), problem));
      }
      out.push_back(*std::move(one));
      return out;
    }
    if (arguments_.problem.given()) {
      return fail(ErrorCode::kInvalidArgument, "give one problem or --problems, not both");
    }
    FORETUNE_TRY(out, read_shapes(arguments_.problems, payloads));
    std::erase_if(out, [&](const Problem& shape) { return shape.type() != type; });
    if (out.empty()) {
      return fail(ErrorCode::kMismatch, "there is no ", find_problem_schema(type)->name,
                  " problem in ", arguments_.problems, ", and the model is for no other");
    }
    // Shape sets rarely say in which type they are computed; a directory does.
    for (Problem& shape : out) {
      if (const auto dtype = labels_.find("dtype");
          dtype != labels_.end() && shape.schema().find(dtype->first)) {
        FORETUNE_TRY(shape, with_label(shape, dtype->first, dtype->second));
      }
    }
    return out;
  }

  Result<Prediction> predict_one(const Problem& problem) {
    std::size_t generated = 0;
    Selector* selector = selector_.get();
    std::unique_ptr<Selector> made;
    if (needs_generating(selector_->model())) {
      FORETUNE_TRY(const Model model, for_problem_type(selector_->model(), problem.type()));
      FORETUNE_TRY(GeneratedConfigs found, generate_configs(model, problem, {}));
      generated = found.considered;
      FORETUNE_TRY(made, Selector::create(with_pool(model, std::move(found.configs)), options_));
      selector = made.get();
    }
    const PredictOptions options{.top = static_cast<std::size_t>(arguments_.top),
                                 .explain = arguments_.explain,
                                 .kernel_name = ck_kernel_name};
    auto prediction = objective_ && objective_->is_pareto()
                          ? predict_front(*selector, problem, *objective_, options)
                          : predict(*selector, problem, options);
    if (!prediction) {
      return fail_because(prediction.error(), arguments_.model.path);
    }
    prediction->generated = generated;
    FORETUNE_TRY_STATUS(add_others(*selector, problem, *prediction));
    return prediction;
  }

 private:
  // Returns the model file: in a folder of models the one for the problem on this machine.
  Result<std::string> model_file(PayloadStore& payloads) const {
    if (!arguments_.model.is_folder()) {
      return arguments_.model.path;
    }
    if (arguments_.problem.text.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "a folder of models needs the problem as a text: gemm m=128 n=1536 k=7168");
    }
    FORETUNE_TRY(const Problem problem, arguments_.problem.parse(kGemmProblem, payloads));
    FORETUNE_TRY(const ModelFolder folder, ModelFolder::open(arguments_.model.path));
    FORETUNE_TRY(const std::filesystem::path chosen,
                 folder.choose(problem, cpu_fingerprint(read_cpu_facts(), CpuPeaks{})));
    return chosen.string();
  }

  // Adds what the models of further targets predict.
  Status add_others(const Selector& selector, const Problem& problem,
                    Prediction& prediction) const {
    std::vector<Config> configs;
    for (const PredictedConfig& entry : prediction.ranked) {
      configs.push_back(selector.config(entry.candidate));
    }
    for (const Model& other : others_) {
      if (const Status added = add_predicted_target(other, problem, configs, prediction); !added) {
        return fail_because(added.error(), arguments_.model.path);
      }
    }
    return {};
  }

  const PredictArguments& arguments_;
  std::optional<Objective> objective_;
  SelectorOptions options_;
  std::unique_ptr<Selector> selector_;
  std::vector<Model> others_;
  std::map<std::string, std::string> labels_;
};

}  // namespace

Result<std::vector<Prediction>> run_prediction(const PredictArguments& arguments,
                                               const Invocation& invocation) {
  std::optional<Objective> objective;
  if (!arguments.objective.empty()) {
    FORETUNE_TRY(objective, Objective::parse(arguments.objective));
  }
  Predictions predictions(arguments, std::move(objective));
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.payloads.open());
  FORETUNE_TRY_STATUS(predictions.open(*payloads, invocation));
  FORETUNE_TRY(const std::vector<Problem> problems, predictions.problems(*payloads));
  std::vector<Prediction> out;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(Prediction prediction, predictions.predict_one(problem));
    out.push_back(std::move(prediction));
  }
  return out;
}

}  // namespace foretune::workflow
