// The data sets that use cases write: their paths, headers and journals.
// Thread safety: used by one thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/workflow/invocation.h"

namespace foretune::workflow {

// Paths of a data set and of its export: `--output x.msgpack` keeps x.ftd and writes x.msgpack
// beside it.
struct OutputPaths {
  std::filesystem::path journal;
  std::optional<std::filesystem::path> exported;
  ExchangeFormat format = ExchangeFormat::kForetune;
};
Result<OutputPaths> output_paths(const std::string& output, const Invocation& invocation);

// Errors: kInvalidArgument for a file that exists, unless it may be replaced.
Status refuse_existing(const std::string& path, bool overwrite);

// Returns the header of a data set that the invocation creates.
DatasetHeader dataset_header(const FamilyInfo& info, DatasetRole role,
                             const Invocation& invocation);
// Opens a journal. Creates its folder when that is missing, and warns of a torn end,
// which is cut off.
Result<std::unique_ptr<JournalWriter>> open_journal(const std::filesystem::path& path,
                                                    const DatasetHeader& header,
                                                    const Invocation& invocation);

// Returns machine facts for the JSON envelope.
std::vector<std::pair<std::string, std::string>> machine_facts(const Fingerprint& fingerprint);

}  // namespace foretune::workflow
