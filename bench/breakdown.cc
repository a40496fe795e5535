#include "bench/breakdown.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune::bench {
namespace {

// "llm: new layer" as a part of a figure's name.
std::string name_of(std::string_view text) {
  std::string name;
  for (const char letter : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (is_word) {
      name += letter;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

}  // namespace

double share_slower(std::span<const double> speeds) {
  const auto slower = std::count_if(speeds.begin(), speeds.end(),
                                    [](double speed) { return speed < kClearlySlower; });
  return static_cast<double>(slower) / static_cast<double>(speeds.size());
}

void Breakdown::add(std::span<const ShapeClass> classes, double speed, double best) {
  for (const ShapeClass& shape_class : classes) {
    Speeds& speeds = classes_[shape_class];
    speeds.chosen.push_back(speed);
    speeds.best.push_back(best);
  }
}

void Breakdown::print(std::string_view prefix, Figures& figures) const {
  std::printf("%-44s %8s %8s %8s %8s %8s %8s\n", "class", "products", "geomean", "% < 0.98",
              "worst", "fastest", "share");
  for (const auto& [shape_class, speeds] : classes_) {
    const double geomean = geometric_mean(speeds.chosen);
    const double slower = share_slower(speeds.chosen);
    const double worst = quantile(speeds.chosen, 0);
    const double best = geometric_mean(speeds.best);
    const double share = best > 1 ? std::log(geomean) / std::log(best) : 1;
    std::printf("%-44s %8zu %8.4f %8.1f %8.3f %8.4f %8.3f\n", shape_class.name.c_str(),
                speeds.chosen.size(), geomean, 100 * slower, worst, best, share);
    const std::string suffix = name_of(shape_class.name);
    figures.add(concat(prefix, "_problems_", suffix), static_cast<double>(speeds.chosen.size()));
    figures.add(concat(prefix, "_geomean_", suffix), geomean);
    figures.add(concat(prefix, "_share_slower_than_098_", suffix), slower);
    figures.add(concat(prefix, "_worst_", suffix), worst);
    figures.add(concat(prefix, "_share_of_possible_gain_", suffix), share);
  }
}

}  // namespace foretune::bench
