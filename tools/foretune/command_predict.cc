// foretune predict: the best configs for one problem.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/select/select.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct PredictArguments {
  std::string model;
  OneProblemArguments problem;
  std::int64_t top = 5;
  std::string json;

  void visit(OptionList& list) {
    list.add("model", model, "FILE", "model file").require();
    problem.visit(list);
    list.add("top", top, "N", "configs to list").at_least(1);
    list.add("json", json, "FILE", "write the figures as JSON");
  }
};

void print_ranking(const Selector& selector, const std::vector<RankedCandidate>& ranked,
                   std::size_t top) {
  print("  rank  slower than the pick  config\n");
  for (std::size_t i = 0; i < std::min(top, ranked.size()); ++i) {
    const double factor = std::exp(ranked[i].score - ranked[0].score);
    std::string rank = concat(i + 1);
    rank.insert(0, 6 - std::min<std::size_t>(6, rank.size()), ' ');
    std::string slower = i == 0 ? std::string("-") : concat(fixed(100 * (factor - 1), 1), " %");
    slower.insert(0, 22 - std::min<std::size_t>(22, slower.size()), ' ');
    print(concat(rank, slower, "  ", selector.config_text(ranked[i].candidate), "\n"));
  }
}

Result<int> predict(const PredictArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const Problem problem, arguments.problem.parse());
  FORETUNE_TRY(const std::unique_ptr<Selector> selector, Selector::open(arguments.model));
  if (problem.type() != selector->model().problem_type) {
    return fail(ErrorCode::kMismatch, arguments.model, " is not a model for such problems");
  }
  const Choice choice = selector->select_uncached(problem);
  const std::vector<RankedCandidate> ranked = selector->rank(problem);
  print(concat(problem.text(), "\n"));
  if (choice.picked()) {
    print(concat("pick: ", selector->config_text(choice.candidate), "\n"));
  } else {
    print(concat("abstains: ", to_string(choice.reason), "\n"));
    if (choice.has_candidate) {
      print(concat("fallback: ", selector->config_text(choice.candidate), "\n"));
    }
  }
  print(concat(ranked.size(), " of ", selector->pool_size(), " candidates are legal here\n"));
  print_ranking(*selector, ranked, static_cast<std::size_t>(arguments.top));
  if (!arguments.json.empty()) {
    Figures figures;
    figures.name = "predict";
    figures.machine = machine_facts(selector->model().fingerprint);
    figures.command = invocation.command_line;
    figures.add("picked", choice.picked() ? 1 : 0);
    figures.add("candidate", choice.candidate);
    figures.add("margin", choice.margin);
    figures.add("legal_candidates", static_cast<double>(ranked.size()));
    FORETUNE_TRY_STATUS(figures.write(arguments.json));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_predict(OptionList& list) {
  return prepare_with<PredictArguments, predict>(list);
}

}  // namespace foretune::cli
