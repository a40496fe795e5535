#include "foretune/model/domain_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>

namespace foretune {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

// The items of a list that may be near enough, by their distances.
class Near {
 public:
  Near(std::span<const float> distances, float most) : distances_(distances) {
    for (std::size_t i = 0; i < distances.size(); ++i) {
      left_ |= static_cast<unsigned>(distances[i] <= most) << i;
    }
  }
  // Returns the position of the nearest one and takes it out.
  std::optional<std::size_t> take() {
    std::optional<std::size_t> out;
    for (unsigned rest = left_; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      out = !out || distances_[i] < distances_[*out] ? i : *out;
    }
    left_ &= out ? ~(1U << *out) : 0U;
    return out;
  }

 private:
  std::span<const float> distances_;
  unsigned left_ = 0;
};

}  // namespace

DomainIndex::DomainIndex(const ApplicabilityDomain& domain)
    : domain_(&domain), most_(domain.limit * domain.limit) {
  const std::size_t width = domain.sizes.size();
  const std::size_t count = width == 0 ? 0 : domain.points.size() / width;
  for (std::size_t axis = 0; axis < width; ++axis) {
    const float first = domain.points[axis];
    bool differs = false;
    for (std::uint32_t point = 0; point < count; ++point) {
      differs = differs || coordinate(point, axis) != first;
    }
    if (differs) {
      axes_.push_back(axis);
    } else {
      fixed_.push_back(axis);
      fixed_at_.push_back(first);
    }
  }
  std::vector<std::uint32_t> points(count);
  std::iota(points.begin(), points.end(), 0U);
  bring_together(points);
  add_points(points);
  add_boxes();
  add_large_boxes();
}

float DomainIndex::coordinate(std::uint32_t point, std::size_t axis) const {
  return domain_->points[point * domain_->sizes.size() + axis];
}

// Halves the points along their longest axis, again and again, so that eight and 64 in a row are
// near each other.
void DomainIndex::bring_together(std::span<std::uint32_t> points) const {
  if (points.size() <= kLanes || axes_.empty()) {
    return;
  }
  std::size_t longest = axes_.front();
  float length = -1;
  for (const std::size_t axis : axes_) {
    const auto [low, high] =
        std::minmax_element(points.begin(), points.end(), [&](std::uint32_t a, std::uint32_t b) {
          return coordinate(a, axis) < coordinate(b, axis);
        });
    const float extent = coordinate(*high, axis) - coordinate(*low, axis);
    if (extent > length) {
      length = extent;
      longest = axis;
    }
  }
  const std::size_t whole = points.size() > kLanes * kLanes ? kLanes * kLanes : kLanes;
  const std::size_t half = (points.size() / 2 + whole - 1) / whole * whole;
  std::nth_element(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(half), points.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return coordinate(a, longest) < coordinate(b, longest);
                   });
  bring_together(points.first(half));
  bring_together(points.subspan(half));
}

void DomainIndex::add_points(std::span<const std::uint32_t> points) {
  for (std::size_t first = 0; first < points.size(); first += kLanes) {
    for (const std::size_t axis : axes_) {
      Lanes lanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes.value[lane] =
            first + lane < points.size() ? coordinate(points[first + lane], axis) : kFar;
      }
      points_.push_back(lanes);
    }
  }
}

// Missing points, and boxes without points, are infinitely far away.
void DomainIndex::add_boxes() {
  const std::size_t blocks = axes_.empty() ? 0 : points_.size() / axes_.size();
  for (std::size_t first = 0; first < blocks; first += kLanes) {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      Bounds bounds;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        float low = kFar;
        float high = -kFar;
        if (first + lane < blocks) {
          for (const float value : points_[(first + lane) * axes_.size() + axis].value) {
            low = std::min(low, value);
            high = value == kFar ? high : std::max(high, value);
          }
        }
        bounds.low.value[lane] = low;
        bounds.high.value[lane] = low == kFar ? kFar : high;
      }
      boxes_.push_back(bounds);
    }
  }
}

void DomainIndex::add_large_boxes() {
  const std::size_t groups = axes_.empty() ? 0 : boxes_.size() / axes_.size();
  for (std::size_t first = 0; first < groups; first += kLanes) {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      Bounds bounds;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        float low = kFar;
        float high = -kFar;
        if (first + lane < groups) {
          const Bounds& boxes = boxes_[(first + lane) * axes_.size() + axis];
          for (std::size_t box = 0; box < kLanes; ++box) {
            low = std::min(low, boxes.low.value[box]);
            high = boxes.low.value[box] == kFar ? high : std::max(high, boxes.high.value[box]);
          }
        }
        bounds.low.value[lane] = low;
        bounds.high.value[lane] = low == kFar ? kFar : high;
      }
      large_boxes_.push_back(bounds);
    }
  }
}

// Adds the squares in the order of the domain, so that the sums are the same to the last bit.
void DomainIndex::measure_points(const Lanes* points, const Coordinates& at,
                                 Lanes& out) const noexcept {
  out = {};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float apart = points[axis].value[lane] - at[axis];
      out.value[lane] += apart * apart;
    }
  }
}

// No point of a box has a smaller sum: rounding keeps the order of differences, squares and sums.
void DomainIndex::measure_boxes(const Bounds* boxes, const Coordinates& at,
                                Lanes& out) const noexcept {
  out = {};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float below = std::min(at[axis], boxes[axis].high.value[lane]);
      const float apart = std::max(below, boxes[axis].low.value[lane]) - at[axis];
      out.value[lane] += apart * apart;
    }
  }
}

// Looks in the nearest boxes first: most problems are inside.
bool DomainIndex::has_near_point(const Coordinates& at) const noexcept {
  const std::size_t width = axes_.size();
  const std::size_t groups = boxes_.size() / width;
  const std::size_t blocks = points_.size() / width;
  std::array<float, kMaxGroups> group_distances;  // NOLINT: written before it is read
  for (std::size_t large = 0; large * kLanes < groups; ++large) {
    Lanes distances;
    measure_boxes(&large_boxes_[large * width], at, distances);
    std::copy(distances.value.begin(), distances.value.end(),
              group_distances.begin() + static_cast<std::ptrdiff_t>(large * kLanes));
  }
  Near near_groups({group_distances.data(), groups}, most_);
  while (const auto group = near_groups.take()) {
    Lanes block_distances;
    measure_boxes(&boxes_[*group * width], at, block_distances);
    const std::size_t first = *group * kLanes;
    Near near_blocks({block_distances.value.data(), std::min(kLanes, blocks - first)}, most_);
    while (const auto block = near_blocks.take()) {
      Lanes distances;
      measure_points(&points_[(first + *block) * width], at, distances);
      if (std::any_of(distances.value.begin(), distances.value.end(),
                      [&](float distance) { return distance <= most_; })) {
        return true;
      }
    }
  }
  return false;
}

bool DomainIndex::is_inside(std::span<const std::int64_t> fields) const noexcept {
  for (const ApplicabilityDomain::Label& label : domain_->labels) {
    if (!label.occurred(fields[label.field])) {
      return false;
    }
  }
  if (domain_->sizes.empty()) {
    return true;
  }
  for (std::size_t i = 0; i < fixed_.size(); ++i) {
    const float apart = fixed_at_[i] - domain_->coordinate(fixed_[i], fields);
    if (apart != 0) {
      // All points are as far away along this axis, and mostly too far.
      return apart * apart <= most_ && domain_->is_inside(fields);
    }
  }
  if (axes_.empty()) {
    return true;
  }
  Coordinates at;  // NOLINT: written before it is read
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    at[axis] = domain_->coordinate(axes_[axis], fields);
  }
  return has_near_point(at);
}

}  // namespace foretune
