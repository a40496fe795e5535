// Decides which rows an epoch visits, in which batches.
//
// Without a ranking loss, all rows in random order are cut into batches whose sizes differ by at
// most one row. With a ranking loss, batches consist of groups of rows of one problem. A problem
// with no more rows than a group holds is one group. The rows of a larger problem are distributed
// in random order over groups, where they fill three quarters of each; the last quarter is drawn
// from the problem's fastest rows. A model that has to find the fastest config must tell fast ones
// apart, and among hundreds of rows two fast ones would rarely meet. A batch takes random groups
// until it has enough rows.
//
// Thread safety: free functions. Cost: linear in the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/model/train/files/training_files.h"

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
  // For each group, the positions of its rows in the batch, `places` each; absent ones are row 0.
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
