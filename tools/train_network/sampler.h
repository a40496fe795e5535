// Which rows an epoch visits, in which batches.
//
// Without a ranking loss: all rows in random order, cut into batches that differ by one row at
// most. With one: groups of rows of one problem. A problem of no more rows than a group holds is
// one group. The rows of a larger one are dealt in random order to groups, three quarters of each,
// and the last quarter is drawn from the problem's fastest rows: who is to find the fastest config
// has to tell fast ones apart, and among hundreds two of them would rarely meet. Batches are random
// groups until they have enough rows.
//
// Thread safety: free functions. Cost: linear in the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/models/neural/training_files.h"

namespace foretune::network_training {

struct EpochPlan {
  struct Batch {
    std::size_t begin_row = 0;  // in `rows`
    std::size_t end_row = 0;
    std::size_t begin_group = 0;
    std::size_t end_group = 0;
  };
  std::vector<std::int64_t> rows;
  std::vector<Batch> batches;
  // Of groups: where each one's rows are in the batch, `places` each; absent ones are row 0.
  std::size_t places = 0;
  std::vector<std::int64_t> position;
  std::vector<std::uint8_t> present;
};

// Rows of one problem, as positions in TrainingRows.
using ProblemRows = std::vector<std::vector<std::int64_t>>;

EpochPlan plan_rows(std::span<const std::int64_t> rows, std::size_t batch_size, Rng& rng);
EpochPlan plan_groups(const TrainingRows& data, const ProblemRows& problems, std::size_t batch_size,
                      std::size_t group_size, Rng& rng);

}  // namespace foretune::network_training
