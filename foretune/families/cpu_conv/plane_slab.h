// The part of an input, channels first, that a slab of output points reads: where it is, or a copy
// with zeros around the image. It is the counterpart of InputSlabs, which cuts the slabs for both.
//
// Kernels read neighbouring columns with one vector. A copy therefore parts the columns of a
// strided convolution by their remainder, and its rows likewise: neighbouring output points then
// read neighbours, whatever the stride. Rows of output points may be joined into one line, whose
// columns between the rows belong to no point.
//
// Thread safety: constant after planning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/input_slab.h"

namespace foretune::cpu_conv {

class PlaneSlabs {
 public:
  struct Options {
    std::ptrdiff_t rows = 1;  // of a slab: more than an image has mean several images
    bool joins_rows = false;  // where the layout of the input allows it
    bool always_copies = false;
  };
  // Columns of output points that read neighbouring columns of the input.
  struct Line {
    std::ptrdiff_t image = 0;
    std::ptrdiff_t z = 0;
    std::ptrdiff_t y = 0;  // of the first row
    std::ptrdiff_t columns = 0;
  };

  PlaneSlabs() = default;
  PlaneSlabs(const ConvView& view, const ConvGrid& grid, const Options& options);

  [[nodiscard]] const ConvGrid& grid() const { return points_.grid(); }
  [[nodiscard]] const std::vector<Slab>& slabs() const { return points_.slabs(); }
  // Returns how many floats a copy takes at most, in whole cache lines.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Returns the distance between channels in fill()'s result, in elements.
  [[nodiscard]] std::ptrdiff_t channel_pitch() const { return channel_pitch_; }
  [[nodiscard]] std::ptrdiff_t offset(const ConvTap& tap) const;
  // Returns true when the output points of each line are neighbours and all its columns.
  [[nodiscard]] bool has_dense_lines() const {
    return grid().step.w == 1 &&
           (!joins_ || (row_columns_ == grid().count.w && grid().step.h == 1));
  }
  // Returns the columns of the longest line.
  [[nodiscard]] std::ptrdiff_t longest_line() const { return columns_of(joins_ ? largest_.h : 1); }

  // Copies the input of a slab to `to` if it must; returns the input that place() refers to.
  const float* fill(const Slab& slab, std::ptrdiff_t group, const float* input, float* to) const;
  // Returns where in fill()'s result the first column of a line finds its input, to which the
  // offsets of taps are added.
  [[nodiscard]] std::ptrdiff_t place(const Slab& slab, const Line& line) const;
  [[nodiscard]] std::ptrdiff_t taps_of_row() const { return points_.taps_of_row(); }
  // Returns taps of which all others of a line read only zeros around the image.
  [[nodiscard]] Range inner_taps(const Line& line) const;
  // Returns the number of an output point within its image.
  [[nodiscard]] std::ptrdiff_t out_point(std::ptrdiff_t z, std::ptrdiff_t y,
                                         std::ptrdiff_t x) const {
    return points_.out_point(0, z, y, x);
  }

  template <class Visit>
  void for_each_line(const Slab& slab, const Visit& visit) const {
    const std::ptrdiff_t rows = joins_ ? slab.h.length() : 1;
    for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
      for (std::ptrdiff_t z = slab.d.begin; z < slab.d.end; ++z) {
        for (std::ptrdiff_t y = slab.h.begin; y < slab.h.end; y += rows) {
          visit(Line{n, z, y, columns_of(rows)});
        }
      }
    }
  }
  // Calls visit(column, count, output point) for each run of neighbouring output points within
  // `columns` of a line.
  template <class Visit>
  void for_each_run(const Line& line, const Range& columns, const Visit& visit) const {
    for (std::ptrdiff_t column = columns.begin; column < columns.end;) {
      const std::ptrdiff_t y = column / row_columns_;
      const std::ptrdiff_t x = column - y * row_columns_;
      if (x >= grid().count.w) {
        column += row_columns_ - x;
        continue;
      }
      const std::ptrdiff_t count = std::min(grid().count.w - x, columns.end - column);
      visit(column, count, out_point(line.z, line.y + y, x));
      column += count;
    }
  }

 private:
  // One of the parts into which a copy parts rows or columns.
  [[nodiscard]] std::ptrdiff_t part(std::ptrdiff_t Triple::* axis, std::ptrdiff_t offset) const;
  void plan_copy();
  void fill_row(const float* row, float* to) const;
  [[nodiscard]] std::ptrdiff_t columns_of(std::ptrdiff_t rows) const {
    return (rows - 1) * row_columns_ + grid().count.w;
  }

  InputSlabs points_;
  std::ptrdiff_t inputs_ = 1;    // channels of a group
  std::ptrdiff_t channels_ = 1;  // of all groups
  Triple in_;
  bool copies_ = false;
  bool joins_ = false;
  Triple largest_;  // points of the largest slab
  Triple low_;      // the least offset of a tap, where a copy begins
  Triple reach_;    // from the lowest tap to the highest
  // In the order of a copy: the remainders of rows and columns that some tap reads.
  std::vector<std::ptrdiff_t> row_parts_;
  std::vector<std::ptrdiff_t> column_parts_;
  Triple extent_;  // of a copy: planes, rows of a part, columns of a part
  std::ptrdiff_t part_pitch_ = 0;
  std::ptrdiff_t row_columns_ = 1;
  std::ptrdiff_t plane_pitch_ = 0;
  std::ptrdiff_t channel_pitch_ = 0;
  std::ptrdiff_t image_pitch_ = 0;
  std::size_t size_ = 0;
};

}  // namespace foretune::cpu_conv
