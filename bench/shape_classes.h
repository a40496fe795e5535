// Which class of problems a product belongs to: the regime that its shape set names, and what of it
// the training products had already. A mean over a whole set hides that most of a gain may come
// from one class.
//
//   FORETUNE_TRY(const std::vector<RegimeShape> shapes, read_regimes("bench/shapes/blas.csv"));
//   FORETUNE_TRY(const TrainedShapes trained, TrainedShapes::read("train.ftd,more.csv"));
//   classes_of(shapes[0], &trained);  // all; llm; new layer; llm: new layer
//
// Thread safety: plain values. Cost: reading is that of the files; a question is a look-up.
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

// Of shape sets whose paths are separated by commas. Errors: kInvalidArgument for one without the
// column.
Result<std::vector<RegimeShape>> read_regimes(std::string_view paths);

// Whether the products of a regime are layers of networks: those that were drawn (log-normal) or
// chosen for their sizes alone (square, skinny, odd) are not.
bool is_network_regime(std::string_view regime);

// What the training products had already of another product.
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
// All that the shape belongs to; `trained` may be nullptr.
std::vector<ShapeClass> classes_of(const RegimeShape& shape, const TrainedShapes* trained);

}  // namespace foretune::bench
