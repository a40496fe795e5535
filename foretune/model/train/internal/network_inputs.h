// Makes the inputs of a network from a training set: columns of the feature table, chosen and
// transformed, and for two towers numbers about tiles from the problem's fields. Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/dataset/split.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/network/network.h"
#include "foretune/model/train/files/training_files.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {

// Returns features of the problem's fields alone that may matter to kernels that work in tiles:
// sizes, how well tiles fill them, waves of tiles over a device's cores. `tiles` are the sides of
// the tiles whose waves are counted, in all pairs.
std::vector<DistilledFeature> field_features(ProblemType type, const Hardware& hardware,
                                             std::span<const std::int32_t> tiles);

struct InputOptions {
  bool has_towers = false;
  bool transforms = true;  // false: numbers stay as they are
  // Problems of this fold have no influence on the inputs.
  std::span<const std::uint32_t> fold_of_problem = {};
  std::optional<std::uint32_t> held_out_fold = {};
};

// Returns a network without layers: its inputs, with mean 0 and deviation 1. It omits columns that
// do not vary over the examples, and columns that some examples lack, since a network needs a
// number. Codes and config columns of few values also become one input for each value. Numbers that
// span decades become logarithms. Two towers get no interaction columns; they get those features of
// field_features() that vary, or one of them if the problem's tower would have no input.
Network make_inputs(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                    const InputOptions& options);

// The examples in the form that the training program reads, problem after problem, and the example
// that each row came from.
struct NetworkRows {
  TrainingRows rows;
  std::vector<std::uint32_t> example;
};
NetworkRows make_rows(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                      const Network& inputs, std::span<const std::uint32_t> fold_of_problem,
                      GroupKey key);

// The inputs with the means and deviations of the training. Errors: kMismatch for other columns.
Result<Network> with_statistics(const Network& inputs, const TrainedNetwork& trained);

// Returns the network that was trained on rows of these inputs. Errors: kMismatch for another
// number of inputs; those of fold_layers() and Network::validate().
Result<Network> make_network(const Network& inputs, const TrainedNetwork& trained);

}  // namespace foretune::train_internal
