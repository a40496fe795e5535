#include "foretune/families/cpu_conv/plane_slab.h"

#include <algorithm>

namespace foretune::cpu_conv {
namespace {

constexpr std::ptrdiff_t Triple::* kPlaneAxes[] = {&Triple::d, &Triple::h, &Triple::w};  // NOLINT

}  // namespace

PlaneSlabs::PlaneSlabs(const ConvView& view, const ConvGrid& grid, const Options& options)
    // These options keep the rows of a pointwise grid apart.
    : points_(view, grid, {.rows = options.rows, .always_copies = true}),
      inputs_(view.inputs),
      channels_(view.groups * view.inputs),
      in_(view.in),
      copies_(options.always_copies || grid.stride.w > 1) {
  for (const Slab& slab : slabs()) {
    largest_ = {std::max(largest_.d, slab.d.length()), std::max(largest_.h, slab.h.length()),
                std::max(largest_.w, slab.w.length())};
  }
  if (grid.taps.empty()) {
    row_columns_ = grid.count.w;
    return;
  }
  low_ = grid.taps.front().offset;
  Triple high = low_;
  for (const ConvTap& tap : grid.taps) {
    for (const auto axis : kPlaneAxes) {
      low_.*axis = std::min(low_.*axis, tap.offset.*axis);
      high.*axis = std::max(high.*axis, tap.offset.*axis);
    }
  }
  for (const auto axis : kPlaneAxes) {
    reach_.*axis = high.*axis - low_.*axis + 1;
    copies_ = copies_ || low_.*axis < 0 ||
              (grid.count.*axis - 1) * (grid.stride.*axis) + high.*axis >= in_.*axis;
  }
  if (copies_) {
    plan_copy();
  } else {
    row_columns_ = grid.stride.h * in_.w;
    plane_pitch_ = in_.h * in_.w;
    channel_pitch_ = in_.volume();
    image_pitch_ = channels_ * channel_pitch_;
  }
  joins_ = row_columns_ == grid.count.w || (options.joins_rows && (copies_ || grid.stride.h == 1));
}

void PlaneSlabs::plan_copy() {
  const Triple& stride = grid().stride;
  const auto add = [](std::vector<std::ptrdiff_t>& parts, std::ptrdiff_t part) {
    if (std::ranges::find(parts, part) == parts.end()) {
      parts.push_back(part);
    }
  };
  for (const ConvTap& tap : grid().taps) {
    add(row_parts_, (tap.offset.h - low_.h) % stride.h);
    add(column_parts_, (tap.offset.w - low_.w) % stride.w);
  }
  extent_ = {(largest_.d - 1) * stride.d + reach_.d, largest_.h + (reach_.h - 1) / stride.h,
             largest_.w + (reach_.w - 1) / stride.w};
  row_columns_ = extent_.w;
  part_pitch_ = extent_.h * extent_.w;
  const auto parts = static_cast<std::ptrdiff_t>(row_parts_.size() * column_parts_.size());
  plane_pitch_ = parts * part_pitch_;
  channel_pitch_ = extent_.d * plane_pitch_;
  image_pitch_ = inputs_ * channel_pitch_;
  std::ptrdiff_t images = 0;
  for (const Slab& slab : slabs()) {
    images = std::max(images, slab.images.length());
  }
  size_ = in_lines(images * image_pitch_);
}

std::ptrdiff_t PlaneSlabs::part(std::ptrdiff_t Triple::* axis, std::ptrdiff_t offset) const {
  const std::vector<std::ptrdiff_t>& parts = axis == &Triple::h ? row_parts_ : column_parts_;
  return std::ranges::find(parts, offset % (grid().stride.*axis)) - parts.begin();
}

std::ptrdiff_t PlaneSlabs::offset(const ConvTap& tap) const {
  if (!copies_) {
    return (tap.offset.d * in_.h + tap.offset.h) * in_.w + tap.offset.w;
  }
  const Triple& stride = grid().stride;
  const Triple from{tap.offset.d - low_.d, tap.offset.h - low_.h, tap.offset.w - low_.w};
  const auto columns = static_cast<std::ptrdiff_t>(column_parts_.size());
  return from.d * plane_pitch_ +
         (part(&Triple::h, from.h) * columns + part(&Triple::w, from.w)) * part_pitch_ +
         from.h / stride.h * row_columns_ + from.w / stride.w;
}

// Copies one input row, by parts of columns; zeros where it is null or ends.
void PlaneSlabs::fill_row(const float* row, float* to) const {
  const std::ptrdiff_t stride = grid().stride.w;
  for (const std::ptrdiff_t part : column_parts_) {
    // Columns of the image are those from `begin` to below `end`.
    const std::ptrdiff_t origin = low_.w + part;
    const std::ptrdiff_t begin = std::clamp<std::ptrdiff_t>(
        ceil_div(std::max<std::ptrdiff_t>(-origin, 0), stride), 0, extent_.w);
    const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(
        row == nullptr ? 0 : ceil_div(std::max<std::ptrdiff_t>(in_.w - origin, 0), stride), begin,
        extent_.w);
    std::fill_n(to, begin, 0.0F);
    if (stride == 1 && begin < end) {
      std::copy_n(row + origin + begin, end - begin, to + begin);
    } else {
      for (std::ptrdiff_t x = begin; x < end; ++x) {
        to[x] = row[origin + x * stride];
      }
    }
    std::fill_n(to + end, extent_.w - end, 0.0F);
    to += part_pitch_;
  }
}

const float* PlaneSlabs::fill(const Slab& slab, std::ptrdiff_t group, const float* input,
                              float* to) const {
  if (!copies_) {
    return input + group * inputs_ * channel_pitch_;
  }
  const Triple& stride = grid().stride;
  const std::ptrdiff_t planes = (slab.d.length() - 1) * stride.d + reach_.d;
  const std::ptrdiff_t rows = slab.h.length() + (reach_.h - 1) / stride.h;
  const auto columns = static_cast<std::ptrdiff_t>(column_parts_.size());
  for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
    for (std::ptrdiff_t channel = 0; channel < inputs_; ++channel) {
      const float* const image = input + (n * channels_ + group * inputs_ + channel) * in_.volume();
      float* const copy = to + (n - slab.images.begin) * image_pitch_ + channel * channel_pitch_;
      for (std::ptrdiff_t z = 0; z < planes; ++z) {
        const std::ptrdiff_t depth = slab.d.begin * stride.d + low_.d + z;
        float* part = copy + z * plane_pitch_;
        for (const std::ptrdiff_t row_part : row_parts_) {
          for (std::ptrdiff_t y = 0; y < rows; ++y) {
            const std::ptrdiff_t height = (slab.h.begin + y) * stride.h + low_.h + row_part;
            const bool is_inside = depth >= 0 && depth < in_.d && height >= 0 && height < in_.h;
            fill_row(is_inside ? image + (depth * in_.h + height) * in_.w : nullptr,
                     part + y * row_columns_);
          }
          part += columns * part_pitch_;
        }
      }
    }
  }
  return to;
}

std::ptrdiff_t PlaneSlabs::place(const Slab& slab, const Line& line) const {
  if (!copies_) {
    return line.image * image_pitch_ + line.z * grid().stride.d * plane_pitch_ +
           line.y * row_columns_;
  }
  return (line.image - slab.images.begin) * image_pitch_ +
         (line.z - slab.d.begin) * grid().stride.d * plane_pitch_ +
         (line.y - slab.h.begin) * row_columns_;
}

Range PlaneSlabs::inner_taps(const Line& line) const {
  return line.columns > grid().count.w ? Range{0, static_cast<std::ptrdiff_t>(grid().taps.size())}
                                       : points_.inner_taps(line.z, line.y);
}

}  // namespace foretune::cpu_conv
