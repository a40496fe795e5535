// The options of searching the space of a problem with a model, and the search itself, which
// measures at most the configs that it lists. Nothing here prints.
//
//   SearchArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const SearchReport report, run_search(arguments, invocation));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "foretune/base/result.h"
#include "foretune/report/search_report.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/model_source.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

struct SearchArguments {
  ModelArguments model;
  OneProblemArguments problem;
  std::string strategy = "local";
  std::int64_t budget = 500;
  std::int64_t top = 10;
  bool measure = false;
  std::int64_t rounds = 15;
  std::string json;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list);
};

// Errors: kMismatch for a problem of another type and for a model that knows no space; kUnsupported
// when no listed config could be timed; those of the files, of the family and of the search.
Result<SearchReport> run_search(const SearchArguments& arguments, const Invocation& invocation);

}  // namespace foretune::workflow
