// foretune predict: the best configs for one problem.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm.h"
#include "foretune/select/select.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct PredictArguments {
  std::string model;
  std::vector<std::string> problem;
  std::optional<std::int64_t> m;
  std::optional<std::int64_t> n;
  std::optional<std::int64_t> k;
  std::int64_t batch = 1;
  std::string operation;
  std::string dtype;
  std::string layout;
  std::int64_t top = 5;
  std::string json;

  void visit(OptionList& list) {
    list.add("model", model, "FILE", "model file").require();
    list.add_positional("problem", problem, "in text form: gemm m=128 n=1536 k=7168");
    list.add("m", m, "N", "rows of A and C").at_least(1);
    list.add("n", n, "N", "columns of B and C").at_least(1);
    list.add("k", k, "N", "columns of A, rows of B").at_least(1);
    list.add("batch", batch, "N", "independent products").at_least(1);
    list.add("op", operation, "OP", "mm, addmm or bmm (default: mm, bmm with a batch)");
    list.add("dtype", dtype, "TYPE", "data type (default: f32)");
    list.add("layout", layout, "LAYOUT", "rcr, rrr, crr or ccr (default: rrr)");
    list.add("top", top, "N", "configs to list").at_least(1);
    list.add("json", json, "FILE", "write the figures as JSON");
  }
};

Result<Problem> problem_of(const PredictArguments& arguments) {
  if (!arguments.problem.empty()) {
    if (arguments.m || arguments.n || arguments.k) {
      return fail(ErrorCode::kInvalidArgument,
                  "give the problem as text or by --m, --n and --k, not both");
    }
    return Problem::parse(join(arguments.problem, " "));
  }
  if (!arguments.m || !arguments.n || !arguments.k) {
    return fail(ErrorCode::kInvalidArgument, "--m, --n and --k are all needed");
  }
  std::string text = concat("gemm m=", *arguments.m, " n=", *arguments.n, " k=", *arguments.k,
                            " batch=", arguments.batch);
  const std::string operation = !arguments.operation.empty() ? arguments.operation
                                : arguments.batch > 1        ? "bmm"
                                                             : "mm";
  text += concat(" op=", operation);
  if (!arguments.dtype.empty()) {
    text += concat(" dtype=", arguments.dtype);
  }
  if (!arguments.layout.empty()) {
    text += concat(" layout=", arguments.layout);
  }
  return Problem::parse(text);
}

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
  FORETUNE_TRY(const Problem problem, problem_of(arguments));
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

int run_predict(const PredictArguments& arguments, const Invocation& invocation) {
  const Result<int> result = predict(arguments, invocation);
  return result ? *result : report_error(result.error());
}

}  // namespace

std::function<int(const Invocation&)> prepare_predict(OptionList& list) {
  return prepare_with<PredictArguments, run_predict>(list);
}

}  // namespace foretune::cli
