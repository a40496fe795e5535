// Who is trained on, who decides when to stop, and who is held out.
// Thread safety: a free function.
#pragma once

#include <cstdint>
#include <vector>

#include "foretune/model/train/files/training_files.h"
#include "options.h"

namespace foretune::network_training {

// RowRole of every row. By problem: those of the held-out fold, then a share of the rest by seed.
// By sample, the trap: each row for itself. Which rows are held out then depends on the fold alone,
// never on the seed, so that networks of an ensemble hold out the same.
std::vector<std::uint8_t> row_roles(const TrainingRows& rows, const TrainOptions& options);

}  // namespace foretune::network_training
