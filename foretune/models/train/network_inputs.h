// What a network sees of a training set: columns of the feature table, chosen and transformed, and
// for two towers what the problem's fields say about tiles. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/dataset/split.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/network.h"
#include "foretune/models/neural/training_files.h"
#include "foretune/models/train/training_set.h"

namespace foretune::train_internal {

// Numbers from the problem's fields alone that may matter to kernels that work in tiles: sizes,
// how well tiles fill them, waves of tiles over a device's cores.
// `tiles` are the sides of the tiles whose waves are counted, in all pairs.
std::vector<FastFeature> field_features(ProblemType type, const Hardware& hardware,
                                        std::span<const std::int32_t> tiles);

struct InputOptions {
  bool has_towers = false;
  bool transforms = true;  // without, numbers stay as they are
  // Problems of this fold are not looked at.
  std::span<const std::uint32_t> fold_of_problem = {};
  std::optional<std::uint32_t> held_out_fold = {};
};

// A network without layers: its inputs, with mean 0 and deviation 1. Columns that do not vary over
// the examples are left out, and so are those that some examples lack, since a network has to have
// a number; codes and config columns of few values also become one input for each
// value; numbers that span decades become logarithms. Two towers get no column of both, and those
// of field_features() that vary instead; the problem's tower gets one where none does.
Network make_inputs(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                    const InputOptions& options);

// The examples as the program that trains wants them, problem after problem, and which example each
// row is.
struct NetworkRows {
  TrainingRows rows;
  std::vector<std::uint32_t> example;
};
NetworkRows make_rows(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                      const Network& inputs, std::span<const std::uint32_t> fold_of_problem,
                      GroupKey key);

// The network that was trained on rows of those inputs. Errors: those of fold_layers().
Result<Network> make_network(const Network& inputs, const TrainedNetwork& trained);

}  // namespace foretune::train_internal
