// A model of boosted trees that another program trained: the forest, the transform from its sum to
// the prediction, and the names of its features. The readers of this module return it.
//
//   FORETUNE_TRY(const TreeModel model, read_tree_model("model_tflops.lgbm.gz"));
//   const double tflops = predict(model, row);
//
// Thread safety: plain data. Cost: one walk from root to leaf per tree; ForestEngine is the fast
// evaluation of `forest`, and transforms never change the order of scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

// Computes a prediction from the sum of the leaves. Every transform is increasing.
struct OutputTransform {
  enum class Kind : std::uint8_t {
    kIdentity,
    kExp,           // poisson, gamma, tweedie
    kSigmoid,       // 1 / (1 + exp(-slope * sum)): binary, cross_entropy
    kSignedSquare,  // the model learned the target's root: regression sqrt
    kLogOnePlusExp  // cross_entropy_lambda
  };
  Kind kind = Kind::kIdentity;
  double slope = 1;  // of kSigmoid, positive

  // Follows LightGBM's arithmetic, operation by operation.
  [[nodiscard]] double apply(double sum) const;
  bool operator==(const OutputTransform&) const = default;
};

struct TreeModel {
  Forest forest;
  OutputTransform output;
  bool average = false;                    // the sum is divided by the number of trees
  std::vector<std::string> feature_names;  // one per feature, or empty

  bool operator==(const TreeModel&) const = default;
};

// The slow, obviously right prediction for one row of at least feature_count values.
double predict(const TreeModel& model, std::span<const double> row);

// Reads a model in a format that it detects by content (LightGBM text, XGBoost JSON), plain or
// gzip. Errors: those of the formats, and kNotFound for a missing file, each with the path.
Result<TreeModel> read_tree_model(const std::filesystem::path& path);
Result<TreeModel> parse_tree_model(std::span<const std::byte> bytes);

}  // namespace foretune
