// --payloads: the folders that hold the payloads of problems, and the commands' functions on them.
// Nothing here prints.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/problem.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct PayloadArguments {
  std::vector<std::string> folders;

  void visit(OptionList& list);
  // Returns a store of these folders, of which there may be none. Errors: those of
  // PayloadStore::open().
  [[nodiscard]] Result<std::shared_ptr<PayloadStore>> open() const;
  // Adds the known facts of payloads to the problems of a data set. Without --payloads it changes
  // nothing, and returns the number of problems with a payload whose facts are then unknown.
  // Errors: those of open() and Dataset::describe_payloads().
  [[nodiscard]] Result<std::size_t> describe(Dataset& dataset) const;
};

// Parses a problem by Problem::parse(), and resolves the payloads that it names. Errors: those of
// both and of the store.
Result<Problem> parse_problem(std::string_view text, PayloadStore& payloads);
// Resolves all problems: checks that their payloads exist and fit. Errors: those of the store.
Status resolve_all(std::vector<Problem>& problems, PayloadStore& payloads);

}  // namespace foretune::workflow
