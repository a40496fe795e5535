// Where the weights of a view are in the problem's tensor.
// Thread safety: plain values.
#pragma once

#include <cstddef>

#include "foretune/families/cpu_conv/conv_view.h"

namespace foretune::cpu_conv {

// Returns how many groups are computed as one, whose weights between different groups are 0: as
// many as fit `columns` outputs.
constexpr std::ptrdiff_t joined_groups(std::ptrdiff_t groups, std::ptrdiff_t outputs,
                                       std::ptrdiff_t columns) {
  for (std::ptrdiff_t count = columns / outputs; count > 1; --count) {
    if (groups % count == 0) {
      return count;
    }
  }
  return 1;
}

class WeightPlaces {
 public:
  // `joined` groups of the problem are one group of the view.
  WeightPlaces(const ConvView& view, std::ptrdiff_t joined)
      : inputs_(view.inputs / joined),
        outputs_(view.outputs / joined),
        points_(view.filter_points),
        joined_(joined),
        is_transposed_(view.is_transposed) {}

  // Returns the position of a weight, or -1 where output and input are of different groups of the
  // problem. Outputs and inputs are those of the view's group; `point` is one of a filter.
  [[nodiscard]] std::ptrdiff_t find(std::ptrdiff_t group, std::ptrdiff_t output,
                                    std::ptrdiff_t point, std::ptrdiff_t input) const {
    const std::ptrdiff_t own = input / inputs_;
    if (output / outputs_ != own) {
      return -1;
    }
    const std::ptrdiff_t first = (group * joined_ + own) * points_ * inputs_ * outputs_;
    const std::ptrdiff_t out = output % outputs_;
    const std::ptrdiff_t in = input % inputs_;
    // Stored by filter, point, channel; for gradients of inputs filters are summed over.
    return first + (is_transposed_ ? (in * points_ + point) * outputs_ + out
                                   : (out * points_ + point) * inputs_ + in);
  }

 private:
  std::ptrdiff_t inputs_;
  std::ptrdiff_t outputs_;
  std::ptrdiff_t points_;
  std::ptrdiff_t joined_;
  bool is_transposed_;
};

}  // namespace foretune::cpu_conv
