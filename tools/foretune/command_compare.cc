// foretune compare: an old model against a new one, and whether the new one may replace it.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/evaluate/compare.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/models/infer/model_file.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct CompareArguments {
  std::string before;
  std::string after;
  std::string dataset;
  std::string json;
  std::int64_t list = 5;
  double mean = 0.5;
  double median = 0.5;
  double p10 = 2;
  double problem = 10;
  void visit(OptionList& list_of) {
    list_of.add_positional("old", before, "model, or report of validate-model --json").require();
    list_of.add_positional("new", after, "the same, of what is to replace it").require();
    list_of.add("dataset", dataset, "FILE", "validation data set; needed for models");
    list_of.add("json", json, "FILE", "write everything as JSON, every problem included");
    list_of.add("list", list, "N", "problems to list that lost or won most").at_least(0);
    list_of.section("What the new one may lose, in percent of the old");
    list_of.add("mean", mean, "X", "of the mean efficiency");
    list_of.add("median", median, "X", "of the median");
    list_of.add("p10", p10, "X", "of the tenth percentile");
    list_of.add("problem", problem, "X", "of any single problem's efficiency");
  }
};

bool is_model(const std::string& path) { return std::filesystem::path(path).extension() == ".ftm"; }

Result<std::vector<PickedProblem>> picks_of(const std::string& path, const Dataset* dataset) {
  if (!is_model(path)) {
    FORETUNE_TRY(const std::string text, read_text_file(path));
    auto picks = parse_picks(text);
    return picks ? std::move(picks) : fail_because(picks.error(), path);
  }
  if (dataset == nullptr) {
    return fail(ErrorCode::kInvalidArgument, path, " is a model: say on which --dataset");
  }
  FORETUNE_TRY(const Model model, read_model(path));
  auto ranked = rank_with_model(model, *dataset);
  if (!ranked) {
    return fail_because(ranked.error(), path);
  }
  FORETUNE_TRY(Evaluation evaluation, evaluate(*dataset, *ranked, &model, {}));
  if (evaluation.unmeasured_picks > 0) {
    remark(concat(path, ": ", evaluation.unmeasured_picks,
                  " picks were never measured, the best-ranked measured configs stand in; "
                  "validate-model measures them"));
  }
  return std::move(evaluation.picks);
}

Result<int> compare(const CompareArguments& arguments, const Invocation& invocation) {
  std::optional<Dataset> dataset;
  if (!arguments.dataset.empty()) {
    FORETUNE_TRY(dataset, import_dataset(arguments.dataset, std::nullopt));
  }
  const Dataset* const measured = dataset ? &*dataset : nullptr;
  FORETUNE_TRY(const auto before, picks_of(arguments.before, measured));
  FORETUNE_TRY(const auto after, picks_of(arguments.after, measured));
  const AcceptanceRules rules{.mean = arguments.mean / 100,
                              .median = arguments.median / 100,
                              .p10 = arguments.p10 / 100,
                              .problem = arguments.problem / 100};
  FORETUNE_TRY(
      const ModelComparison comparison,
      compare_models(before, after, rules, static_cast<std::uint64_t>(invocation.global->seed)));
  print(comparison_text(comparison, static_cast<std::size_t>(arguments.list), output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, comparison_json(comparison, invocation.command_line)));
  }
  return comparison.accepted() ? kExitOk : kExitRejected;
}

}  // namespace

std::function<int(const Invocation&)> prepare_compare(OptionList& list) {
  return prepare_with<CompareArguments, compare>(list);
}

}  // namespace foretune::cli
