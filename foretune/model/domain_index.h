// Answers whether a problem lies inside of an applicability domain, as ApplicabilityDomain does, in
// a tenth of a microsecond instead of a few: near points are in boxes, and boxes that are too far
// away are skipped.
//
//   const DomainIndex index(domain);   // `domain` has to outlive it
//   if (index.is_inside(problem.fields())) ...
//
// Thread safety: immutable after creation. Cost: is_inside() does not allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/model/applicability_domain.h"

namespace foretune {

class DomainIndex {
 public:
  // The domain is valid (ApplicabilityDomain::validate()).
  explicit DomainIndex(const ApplicabilityDomain& domain);

  // Returns what domain.is_inside() returns.
  [[nodiscard]] bool is_inside(std::span<const std::int64_t> fields) const noexcept;

 private:
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kMaxGroups = ApplicabilityDomain::kMaxPoints / (kLanes * kLanes);
  // One coordinate of eight points or boxes.
  struct alignas(32) Lanes {
    std::array<float, kLanes> value{};
  };
  struct Bounds {
    Lanes low;
    Lanes high;
  };
  using Coordinates = std::array<float, ApplicabilityDomain::kMaxSizes>;

  [[nodiscard]] float coordinate(std::uint32_t point, std::size_t axis) const;
  void bring_together(std::span<std::uint32_t> points) const;
  void add_points(std::span<const std::uint32_t> points);
  void add_boxes();
  void add_large_boxes();
  // Compute the squared distances of eight points or boxes. `at` has one value for each axis.
  void measure_points(const Lanes* points, const Coordinates& at, Lanes& out) const noexcept;
  void measure_boxes(const Bounds* boxes, const Coordinates& at, Lanes& out) const noexcept;
  [[nodiscard]] bool has_near_point(const Coordinates& at) const noexcept;

  const ApplicabilityDomain* domain_;
  float most_ = 0;                  // squared distance
  std::vector<std::size_t> axes_;   // positions of the sizes that differ among the points
  std::vector<std::size_t> fixed_;  // of the others, and their coordinates
  std::vector<float> fixed_at_;
  // Eight points and axis by axis their coordinates; the boxes around eight points, eight of them
  // at a time; the boxes around these.
  std::vector<Lanes> points_;
  std::vector<Bounds> boxes_;
  std::vector<Bounds> large_boxes_;
};

}  // namespace foretune
