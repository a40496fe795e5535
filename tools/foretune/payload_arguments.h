// --payloads: the folders in which the payloads of problems are, and what commands ask of them.
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
#include "tools/foretune/options.h"

namespace foretune::cli {

struct PayloadArguments {
  std::vector<std::string> folders;

  void visit(OptionList& list);
  // A store of these folders, which may be none. Errors: those of PayloadStore::open().
  [[nodiscard]] Result<std::shared_ptr<PayloadStore>> open() const;
  // Tells the problems of a data set what is known of their payloads. Without --payloads they stay
  // as they are; returned is how many have a payload of which nothing is known then. Errors: those
  // of open() and Dataset::describe_payloads().
  [[nodiscard]] Result<std::size_t> describe(Dataset& dataset) const;
};

// Problem::parse() of a text that may name payloads, resolved. Errors: those of both and of the
// store.
Result<Problem> parse_problem(std::string_view text, PayloadStore& payloads);
// Resolves all problems: their payloads are there and fit. Errors: those of the store.
Status resolve_all(std::vector<Problem>& problems, PayloadStore& payloads);

}  // namespace foretune::cli
