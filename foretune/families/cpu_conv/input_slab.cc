#include "foretune/families/cpu_conv/input_slab.h"

#include <algorithm>
#include <cstring>

namespace foretune::cpu_conv {
namespace {

constexpr std::ptrdiff_t Triple::* kAxes[] = {&Triple::d, &Triple::h, &Triple::w};  // NOLINT

// Returns how many points of an axis `count` neighbours read.
std::ptrdiff_t points_read(std::ptrdiff_t count, std::ptrdiff_t stride, std::ptrdiff_t reach) {
  return (count - 1) * stride + reach;
}

// Returns true when neighbours in the grid are neighbours in memory, across rows and images.
bool is_pointwise(const ConvGrid& grid, const ConvView& view) {
  return grid.taps.size() == 1 && grid.taps.front().offset == Triple{} &&
         grid.stride == Triple{1, 1, 1} && grid.step == Triple{1, 1, 1} && grid.first == Triple{} &&
         view.in == view.out && grid.count == view.in;
}

// Returns true when all rows of taps reach the same columns.
bool has_equal_rows(const ConvGrid& grid) {
  std::size_t row = 0;  // its first tap
  for (std::size_t i = 0; i < grid.taps.size(); ++i) {
    const Triple& offset = grid.taps[i].offset;
    if (offset.h != grid.taps[row].offset.h || offset.d != grid.taps[row].offset.d) {
      row = i;
    }
    if (offset.w != grid.taps[i - row].offset.w) {
      return false;
    }
  }
  return true;
}

}  // namespace

InputSlabs::InputSlabs(const ConvView& view, const ConvGrid& grid, const Options& options)
    : grid_(grid),
      images_(view.images),
      inputs_(view.inputs),
      channels_(view.groups * view.inputs),
      in_(view.in),
      out_(view.out),
      row_points_(grid.count.w) {
  if (is_pointwise(grid, view) && !options.always_copies) {
    const Triple row{1, 1, images_ * grid.count.volume()};
    images_ = 1;
    grid_.count = row;
    in_ = row;
    out_ = row;
  }
  if (!grid_.taps.empty()) {
    plan_reading(options);
  }
  cut(options);
}

void InputSlabs::plan_reading(const Options& options) {
  low_ = grid_.taps.front().offset;
  Triple high = low_;
  for (const ConvTap& tap : grid_.taps) {
    for (const auto axis : kAxes) {
      low_.*axis = std::min(low_.*axis, tap.offset.*axis);
      high.*axis = std::max(high.*axis, tap.offset.*axis);
    }
  }
  copies_ = options.always_copies;
  for (const auto axis : kAxes) {
    reach_.*axis = high.*axis - low_.*axis + 1;
    copies_ = copies_ || low_.*axis < 0 ||
              points_read(grid_.count.*axis, grid_.stride.*axis, high.*axis + 1) > in_.*axis;
  }
  while (taps_of_row_ < static_cast<std::ptrdiff_t>(grid_.taps.size())) {
    const Triple& offset = grid_.taps[static_cast<std::size_t>(taps_of_row_)].offset;
    if (offset.d != grid_.taps.front().offset.d || offset.h != grid_.taps.front().offset.h) {
      break;
    }
    ++taps_of_row_;
  }
  copies_ = copies_ && !options.never_copies;
  for (const ConvTap& tap : grid_.taps) {
    if (offsets_d_.empty() || tap.offset.d > offsets_d_.back()) {
      offsets_d_.push_back(tap.offset.d);
    }
    if (offsets_h_.empty() || tap.offset.h > offsets_h_.back()) {
      offsets_h_.push_back(tap.offset.h);
    }
  }
  const std::size_t of_full_rows =
      offsets_d_.size() * offsets_h_.size() * static_cast<std::size_t>(taps_of_row_);
  if (of_full_rows != grid_.taps.size() || !has_equal_rows(grid_)) {
    // Where taps are left out (of a single plane), each one is a row by itself.
    taps_of_row_ = 1;
    offsets_h_.clear();
    for (const ConvTap& tap : grid_.taps) {
      offsets_h_.push_back(tap.offset.h);
    }
  }
  is_dense_ = reach_.w == taps_of_row_ && (copies_ || inputs_ == channels_);
}

// Cuts the points of a grid into slabs of about as many rows as wanted.
void InputSlabs::cut(const Options& options) {
  const Triple& count = grid_.count;
  const std::ptrdiff_t rows = std::max<std::ptrdiff_t>(1, options.rows);
  const bool is_single_row = count.w != row_points_;
  const std::ptrdiff_t w =
      is_single_row
          ? std::min(count.w, ceil_div(rows * row_points_, options.block_w) * options.block_w)
          : count.w;
  const std::ptrdiff_t h = even_part(count.h, std::min(rows, count.h));
  const std::ptrdiff_t d =
      even_part(count.d, std::clamp<std::ptrdiff_t>(rows / count.h, 1, count.d));
  const std::ptrdiff_t images =
      even_part(images_, std::clamp<std::ptrdiff_t>(rows / (count.h * count.d), 1, images_));
  const auto part = [](std::ptrdiff_t begin, std::ptrdiff_t length, std::ptrdiff_t end) {
    return Range{begin, std::min(end, begin + length)};
  };
  for (std::ptrdiff_t n = 0; n < images_; n += images) {
    for (std::ptrdiff_t z = 0; z < count.d; z += d) {
      for (std::ptrdiff_t y = 0; y < count.h; y += h) {
        for (std::ptrdiff_t x = 0; x < count.w; x += w) {
          slabs_.push_back({part(n, images, images_), part(z, d, count.d), part(y, h, count.h),
                            part(x, w, count.w)});
        }
      }
    }
  }
  const Triple largest{d, h, w};
  for (const auto axis : kAxes) {
    extent_.*axis =
        copies_ ? points_read(largest.*axis, grid_.stride.*axis, reach_.*axis) : in_.*axis;
  }
  pitch_.w = copies_ ? inputs_ : channels_;
  pitch_.h = extent_.w * pitch_.w;
  pitch_.d = extent_.h * pitch_.h;
  pitch_.image = extent_.d * pitch_.d;
  size_ = copies_ ? in_lines(images * pitch_.image) : 0;
}

Range InputSlabs::inner(std::ptrdiff_t Triple::* axis, std::ptrdiff_t at) const {
  const std::vector<std::ptrdiff_t>& offsets = axis == &Triple::d ? offsets_d_ : offsets_h_;
  return inside({0, static_cast<std::ptrdiff_t>(offsets.size())}, in_.*axis, [&](std::ptrdiff_t i) {
    return at * (grid_.stride.*axis) + offsets[static_cast<std::size_t>(i)];
  });
}

Range InputSlabs::inner_taps(std::ptrdiff_t z, std::ptrdiff_t y) const {
  const Range planes = inner(&Triple::d, z);
  Range rows = inner(&Triple::h, y);
  const auto of_plane = static_cast<std::ptrdiff_t>(offsets_h_.size());
  if (planes.length() == 0 || rows.length() == 0) {
    return {0, 0};
  }
  // Rows of several planes are a range only when they are all rows.
  if (planes.length() > 1) {
    rows = {0, of_plane};
  }
  return {(planes.begin * of_plane + rows.begin) * taps_of_row_,
          ((planes.end - 1) * of_plane + rows.end) * taps_of_row_};
}

std::ptrdiff_t InputSlabs::offset(const ConvTap& tap) const {
  const Triple origin = copies_ ? low_ : Triple{};
  return (tap.offset.d - origin.d) * pitch_.d + (tap.offset.h - origin.h) * pitch_.h +
         (tap.offset.w - origin.w) * pitch_.w;
}

std::ptrdiff_t InputSlabs::copied_rows(const Slab& slab) const {
  return slab.images.length() * points_read(slab.d.length(), grid_.stride.d, reach_.d) *
         points_read(slab.h.length(), grid_.stride.h, reach_.h);
}

CopiedRow InputSlabs::copied_row(const Slab& slab, std::ptrdiff_t row, float* to) const {
  const std::ptrdiff_t planes = points_read(slab.d.length(), grid_.stride.d, reach_.d);
  const std::ptrdiff_t rows = points_read(slab.h.length(), grid_.stride.h, reach_.h);
  const std::ptrdiff_t image = row / (planes * rows);
  const std::ptrdiff_t z = row / rows % planes;
  const std::ptrdiff_t y = row % rows;
  const std::ptrdiff_t depth = slab.d.begin * grid_.stride.d + low_.d + z;
  const std::ptrdiff_t height = slab.h.begin * grid_.stride.h + low_.h + y;
  const bool is_inside = depth >= 0 && depth < in_.d && height >= 0 && height < in_.h;
  const std::ptrdiff_t left = std::clamp<std::ptrdiff_t>(-low_.w, 0, extent_.w);
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(low_.w, 0);
  const std::ptrdiff_t length = std::clamp<std::ptrdiff_t>(in_.w - first, 0, extent_.w - left);
  return {.to = to + image * pitch_.image + z * pitch_.d + y * pitch_.h,
          .points = extent_.w,
          .left = left,
          .first = (((slab.images.begin + image) * in_.d + depth) * in_.h + height) * in_.w + first,
          .length = is_inside ? length : 0};
}

const float* InputSlabs::fill(const Slab& slab, std::ptrdiff_t group, const float* input,
                              float* to) const {
  if (!copies_) {
    return input + group * inputs_;
  }
  for (std::ptrdiff_t index = 0; index < copied_rows(slab); ++index) {
    const CopiedRow row = copied_row(slab, index, to);
    if (row.length == 0) {
      std::fill_n(row.to, row.points * inputs_, 0.0F);
      continue;
    }
    std::fill_n(row.to, row.left * inputs_, 0.0F);
    const float* const from = input + row.first * channels_ + group * inputs_;
    float* const inside = row.to + row.left * inputs_;
    if (inputs_ == channels_) {
      std::memcpy(inside, from, static_cast<std::size_t>(row.length * inputs_) * sizeof(float));
    } else {
      for (std::ptrdiff_t x = 0; x < row.length; ++x) {
        std::copy_n(from + x * channels_, inputs_, inside + x * inputs_);
      }
    }
    std::fill_n(inside + row.length * inputs_, (row.points - row.left - row.length) * inputs_,
                0.0F);
  }
  return to;
}

std::ptrdiff_t InputSlabs::place(const Slab& slab, std::ptrdiff_t n, std::ptrdiff_t z,
                                 std::ptrdiff_t y, std::ptrdiff_t x) const {
  if (copies_) {
    n -= slab.images.begin;
    z -= slab.d.begin;
    y -= slab.h.begin;
  }
  return n * pitch_.image + z * grid_.stride.d * pitch_.d + y * grid_.stride.h * pitch_.h +
         x * grid_.stride.w * pitch_.w;
}

std::ptrdiff_t InputSlabs::out_point(std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y,
                                     std::ptrdiff_t x) const {
  return ((n * out_.d + grid_.first.d + z * grid_.step.d) * out_.h + grid_.first.h +
          y * grid_.step.h) *
             out_.w +
         grid_.first.w + x * grid_.step.w;
}

}  // namespace foretune::cpu_conv
