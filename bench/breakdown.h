// Speeds beside a reference, class by class: how many, their geometric mean, how many are clearly
// slower and the worst, since a mean says nothing of those. Prints a table and adds its figures.
//
//   Breakdown breakdown;
//   breakdown.add(classes_of(shape, &trained), 1.05, 1.10);
//   breakdown.print("cublaslt", figures);
//
// Thread safety: none. Cost: of printing, a few passes over the values.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "bench/shape_classes.h"
#include "foretune/base/figures.h"

namespace foretune::bench {

// Slower than this share of the reference's speed is a loss that can be told from noise.
inline constexpr double kClearlySlower = 0.98;
// Of the values below it; NaN for none.
double share_slower(std::span<const double> speeds);

class Breakdown {
 public:
  // `best`: the speed of the fastest that was measured, the most that a choice could reach.
  void add(std::span<const ShapeClass> classes, double speed, double best);
  // A figure's name begins with `prefix` and ends with the class.
  void print(std::string_view prefix, Figures& figures) const;

 private:
  struct Speeds {
    std::vector<double> chosen;
    std::vector<double> best;
  };
  std::map<ShapeClass, Speeds> classes_;
};

}  // namespace foretune::bench
