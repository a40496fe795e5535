#include "foretune/workflow/payload_arguments.h"

#include <algorithm>
#include <span>

#include "foretune/formats/gzip.h"

namespace foretune::workflow {

void PayloadArguments::visit(OptionList& list) {
  list.add(
      "payloads", folders, "DIR",
      "folder of files that problems refer to, by name (payload=@FILE) or digest; may be repeated");
}

Result<std::shared_ptr<PayloadStore>> PayloadArguments::open() const {
  return PayloadStore::open(folders, &formats::inflate_gzip);
}

Result<std::size_t> PayloadArguments::describe(Dataset& dataset) const {
  if (folders.empty()) {
    const std::span<const Problem> problems = dataset.problems();
    return static_cast<std::size_t>(
        std::count_if(problems.begin(), problems.end(),
                      [](const Problem& problem) { return problem.has_payload(); }));
  }
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, open());
  FORETUNE_TRY_STATUS(dataset.describe_payloads(*payloads));
  return std::size_t{0};
}

Result<Problem> parse_problem(std::string_view text, PayloadStore& payloads) {
  FORETUNE_TRY(const std::string resolved, payloads.resolve_names(text));
  FORETUNE_TRY(Problem problem, Problem::parse(resolved));
  return payloads.resolve(std::move(problem));
}

Status resolve_all(std::vector<Problem>& problems, PayloadStore& payloads) {
  for (Problem& problem : problems) {
    FORETUNE_TRY(problem, payloads.resolve(std::move(problem)));
  }
  return {};
}

}  // namespace foretune::workflow
