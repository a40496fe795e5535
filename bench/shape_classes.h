// Classifies products: by the regime that the shape set names, and by their overlap with the
// training products. A mean over a whole set hides that most of a gain may come from one class.
//
//   FORETUNE_TRY(const std::vector<RegimeShape> shapes, read_regimes("bench/shapes/blas.csv"));
//   FORETUNE_TRY(const TrainedShapes trained, TrainedShapes::read("train.ftd,more.csv"));
//   classes_of(shapes[0], &trained);  // all; llm; new layer; llm: new layer
//
// Thread safety: plain values. Cost: that of reading the files; classifying is a look-up.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune::bench {

// A line of a shape set with the column `regime`.
struct RegimeShape {
  std::string regime;
  Problem problem;
};

// Reads shape sets; commas separate their paths. Errors: kInvalidArgument for a set without the
// column.
Result<std::vector<RegimeShape>> read_regimes(std::string_view paths);

// Returns true when the products of a regime are layers of networks: not drawn (log-normal) or
// chosen for their sizes alone (square, skinny, odd).
bool is_network_regime(std::string_view regime);

// The overlap of a product with the training products.
enum class Novelty : std::uint8_t {
  kTrainedSizes,    // all sizes, perhaps in another type or layout
  kTrainedWeights,  // a network's layer: n and k, the sizes of its weights, for another m
  kNewLayer,        // a network's layer with other weights
  kNoLayer,         // sizes of no network
};
std::string_view to_string(Novelty novelty);

class TrainedShapes {
 public:
  explicit TrainedShapes(std::span<const Problem> problems);
  // Data sets (.ftd) and shape sets, their paths separated by commas.
  static Result<TrainedShapes> read(std::string_view paths);

  [[nodiscard]] Novelty novelty(const RegimeShape& shape) const;

 private:
  using Sizes = std::vector<std::int64_t>;
  std::set<Sizes> sizes_;    // m, n, k, batch
  std::set<Sizes> weights_;  // n, k
};

// Classes are listed in this order.
struct ShapeClass {
  int order = 0;
  std::string name;
  auto operator<=>(const ShapeClass&) const = default;
};
// Returns all classes of the shape; `trained` may be nullptr.
std::vector<ShapeClass> classes_of(const RegimeShape& shape, const TrainedShapes* trained);

}  // namespace foretune::bench
