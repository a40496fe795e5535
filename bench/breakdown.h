// Speeds relative to a reference, class by class: their number, geometric mean, share of clearly
// slower ones and worst, since a mean hides those. Prints a table and adds its figures.
//
//   Breakdown breakdown;
//   breakdown.add(classes_of(shape, &trained), 1.05, 1.10);
//   breakdown.print("cublaslt", figures);
//
// Thread safety: none. Cost: printing makes a few passes over the values.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "bench/shape_classes.h"
#include "foretune/base/figures.h"

namespace foretune::bench {

// A speed below this share of the reference's is a loss beyond noise.
inline constexpr double kClearlySlower = 0.98;
// Returns the share of values below kClearlySlower; NaN when there are no values.
double share_slower(std::span<const double> speeds);

class Breakdown {
 public:
  // `best`: the speed of the fastest measured config, the upper limit of a choice.
  void add(std::span<const ShapeClass> classes, double speed, double best);
  // The last column is the share of the gain that was possible: the ratio of the logarithms. A
  // figure's name begins with `prefix` and ends with the class.
  void print(std::string_view prefix, Figures& figures) const;

 private:
  struct Speeds {
    std::vector<double> chosen;
    std::vector<double> best;
  };
  std::map<ShapeClass, Speeds> classes_;
};

}  // namespace foretune::bench
