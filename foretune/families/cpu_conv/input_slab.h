// The part of an input that a slab of output points reads: where it is, or a copy with zeros around
// the image. Kernels see both alike, as distances between points and offsets of taps.
//
// Thread safety: constant after planning.
#pragma once

#include <cstddef>
#include <vector>

#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/kernels/aligned_buffer.h"

namespace foretune::cpu_conv {

struct Range {
  std::ptrdiff_t begin = 0;
  std::ptrdiff_t end = 0;
  [[nodiscard]] std::ptrdiff_t length() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Output points of a grid that are computed from one slab.
struct Slab {
  Range images;
  Range d;
  Range h;
  Range w;
};

// Distances between input points, in elements.
struct Pitch {
  std::ptrdiff_t image = 0;
  std::ptrdiff_t d = 0;
  std::ptrdiff_t h = 0;
  std::ptrdiff_t w = 0;
};

constexpr std::ptrdiff_t ceil_div(std::ptrdiff_t value, std::ptrdiff_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Returns the size of nearly equal parts of at most `bound`.
constexpr std::ptrdiff_t even_part(std::ptrdiff_t length, std::ptrdiff_t bound) {
  return length == 0 ? 1 : ceil_div(length, ceil_div(length, bound));
}

// Returns a number of floats rounded up to whole cache lines.
constexpr std::size_t in_lines(std::ptrdiff_t floats) {
  constexpr auto kLine = static_cast<std::ptrdiff_t>(AlignedBuffer::kAlignment / sizeof(float));
  return static_cast<std::size_t>(ceil_div(floats, kLine) * kLine);
}

// Returns the share of a thread when `threads` of them cut a length into nearly equal parts.
constexpr Range share_of(std::ptrdiff_t length, std::ptrdiff_t thread, std::ptrdiff_t threads) {
  return {length * thread / threads, length * (thread + 1) / threads};
}

// Returns the part of a range whose places are from 0 to below `limit`; places ascend.
template <class Place>
Range inside(Range range, std::ptrdiff_t limit, const Place& place) {
  while (range.begin < range.end && place(range.begin) < 0) {
    ++range.begin;
  }
  while (range.begin < range.end && place(range.end - 1) >= limit) {
    --range.end;
  }
  return range;
}

// A row of a slab's copy: points of zeros, points of the image, points of zeros.
struct CopiedRow {
  float* to = nullptr;
  std::ptrdiff_t points = 0;
  std::ptrdiff_t left = 0;    // points of zeros before those of the image
  std::ptrdiff_t first = 0;   // the first point of the image, counted over all images
  std::ptrdiff_t length = 0;  // points of the image; 0: all are zeros
};

class InputSlabs {
 public:
  struct Options {
    std::ptrdiff_t rows = 1;     // of a slab: more than an image has mean several images
    std::ptrdiff_t block_w = 1;  // a pointwise grid is cut at multiples of it
    bool always_copies = false;
    bool never_copies = false;  // the caller leaves out taps that reach beyond the image
  };

  InputSlabs() = default;
  // The view outlives the plan. A pointwise grid, whose points follow each other across rows and
  // images, becomes a single row.
  InputSlabs(const ConvView& view, const ConvGrid& grid, const Options& options);

  [[nodiscard]] const ConvGrid& grid() const { return grid_; }
  [[nodiscard]] const std::vector<Slab>& slabs() const { return slabs_; }
  [[nodiscard]] bool copies() const { return copies_; }
  [[nodiscard]] const Pitch& pitch() const { return pitch_; }
  // Returns how many floats a copy takes at most, in whole cache lines.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Returns true when the taps of a row are neighbours in memory, with all channels of a group.
  [[nodiscard]] bool has_dense_rows() const { return is_dense_; }
  [[nodiscard]] std::ptrdiff_t taps_of_row() const { return taps_of_row_; }
  // Returns taps of which all others of the grid's row (z, y) read only zeros around the image: a
  // range of whole rows of the filter.
  [[nodiscard]] Range inner_taps(std::ptrdiff_t z, std::ptrdiff_t y) const;
  // Returns which of the filter's planes (of a plane's rows) find the image from index `at` of the
  // grid.
  [[nodiscard]] Range inner_planes(std::ptrdiff_t at) const { return inner(&Triple::d, at); }
  [[nodiscard]] Range inner_rows(std::ptrdiff_t at) const { return inner(&Triple::h, at); }
  [[nodiscard]] std::ptrdiff_t rows_of_plane() const {
    return static_cast<std::ptrdiff_t>(offsets_h_.size());
  }
  // Returns the points of an input row.
  [[nodiscard]] std::ptrdiff_t width() const { return in_.w; }
  [[nodiscard]] std::ptrdiff_t offset(const ConvTap& tap) const;

  // Copies the input of a slab to `to` if it must; returns the input that place() refers to.
  const float* fill(const Slab& slab, std::ptrdiff_t group, const float* input, float* to) const;
  // Returns how many rows a slab's copy has, and one of them in the copy at `to`. Only where
  // copies() is true.
  [[nodiscard]] std::ptrdiff_t copied_rows(const Slab& slab) const;
  [[nodiscard]] CopiedRow copied_row(const Slab& slab, std::ptrdiff_t row, float* to) const;
  // Returns where in fill()'s result the grid's point (z, y, x) of image n finds its input, to
  // which the offsets of taps are added.
  [[nodiscard]] std::ptrdiff_t place(const Slab& slab, std::ptrdiff_t n, std::ptrdiff_t z,
                                     std::ptrdiff_t y, std::ptrdiff_t x) const;
  // Returns the number of the output point.
  [[nodiscard]] std::ptrdiff_t out_point(std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y,
                                         std::ptrdiff_t x) const;

 private:
  void plan_reading(const Options& options);
  void cut(const Options& options);
  [[nodiscard]] Range inner(std::ptrdiff_t Triple::* axis, std::ptrdiff_t at) const;

  ConvGrid grid_;
  std::ptrdiff_t images_ = 1;
  std::ptrdiff_t inputs_ = 1;    // channels of a group
  std::ptrdiff_t channels_ = 1;  // of all groups
  Triple in_;
  Triple out_;
  std::ptrdiff_t row_points_ = 1;  // of the grid before it became a single row
  bool copies_ = false;
  bool is_dense_ = false;
  std::ptrdiff_t taps_of_row_ = 1;
  std::vector<std::ptrdiff_t> offsets_d_;  // of the filter's planes and rows, ascending
  std::vector<std::ptrdiff_t> offsets_h_;
  Triple low_;     // the least offset of a tap, where a copy begins
  Triple reach_;   // from the lowest tap to the highest
  Triple extent_;  // points of the largest copy
  Pitch pitch_;
  std::vector<Slab> slabs_;
  std::size_t size_ = 0;
};

}  // namespace foretune::cpu_conv
