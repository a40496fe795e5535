// Joins the journals of a run's tasks into one data set.
// Thread safety: a free function. Tasks may write meanwhile; their later rows are then missing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/run_folder.h"
#include "foretune/dataset/dataset.h"

namespace foretune::cluster {

struct MergedRun {
  Dataset dataset;
  // Rows left out: another row of the same problem, config and context came first. Rows of a
  // comparison (kFlagReference) repeat on purpose and all stay.
  std::uint64_t duplicates = 0;
  // Some of these were no copies: their outcomes differ. Each is a sentence.
  std::vector<std::string> conflicts;
  // Rows by context, as text, comparisons among them: machines are never mixed.
  std::map<std::string, std::uint64_t> rows_by_context;
  std::uint64_t journals = 0;
  std::uint64_t torn = 0;  // journals that end in a record that a kill interrupted
};

// Returns the rows of all journals, ordered by the plan's problems. Errors: kNotFound when no task
// measured anything; kCorrupt for a damaged journal; kMismatch for journals of different families.
Result<MergedRun> merge_run(const RunFolder& run);

}  // namespace foretune::cluster
