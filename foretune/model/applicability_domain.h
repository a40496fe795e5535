// The applicability domain of a model: the sizes of its training problems as points in log2 space,
// each dimension in units of its standard deviation, and the labels that occurred. A problem is
// inside when a point lies within the distance at which all but one in a hundred training problems
// have their own nearest neighbour. Unlike a box of ranges this excludes the holes and corners
// where nothing was measured.
//
//   const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems);
//   if (!domain.is_inside(problem.fields())) ... domain.explain(problem.fields())
//
// Thread safety: plain data; const members may be called from any thread. Cost: is_inside() stops
// at the first point that is near enough, at most a few microseconds; it does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

// The distance of a problem from the training problems, and the field that contributes most to it.
struct DomainDistance {
  bool inside = true;
  bool is_label = false;     // the label never occurred in training; then there is no distance
  double distance = 0;       // to the nearest training problem, in standard deviations
  std::size_t field = 0;     // that contributes most
  double nearest_value = 0;  // of that field in the nearest training problem
};

struct ApplicabilityDomain {
  static constexpr std::size_t kMaxPoints = 1024;
  static constexpr std::size_t kMaxSizes = 32;
  static constexpr std::size_t kMaxLabels = 64;

  struct Size {
    std::uint8_t field = 0;
    float per_log2 = 1;  // distance of one step of log2
    bool operator==(const Size&) const = default;
  };
  struct Label {
    std::uint8_t field = 0;
    std::uint64_t seen = 0;  // bit i: label i occurred
    [[nodiscard]] bool occurred(std::int64_t value) const {
      return value >= 0 && value < 64 && ((seen >> static_cast<unsigned>(value)) & 1U) != 0;
    }
    bool operator==(const Label&) const = default;
  };
  std::vector<Size> sizes;
  std::vector<Label> labels;
  std::vector<float> points;  // one value per size, point after point: log2(size) * per_log2
  float limit = 0;            // a problem farther than this from every point is outside

  // Fits the domain to at most kMaxPoints of the problems. There is at least one problem, and all
  // are of one type.
  static ApplicabilityDomain fit(std::span<const Problem> problems);

  // Returns the coordinate of a problem along one of the sizes. Sizes below 1 count as 1.
  [[nodiscard]] float coordinate(std::size_t size,
                                 std::span<const std::int64_t> fields) const noexcept;
  // A DomainIndex returns the same sooner.
  [[nodiscard]] bool is_inside(std::span<const std::int64_t> fields) const noexcept;
  [[nodiscard]] DomainDistance distance(std::span<const std::int64_t> fields) const noexcept;
  // Returns a sentence for a problem of `schema`: "k=1000000 is far from every training problem:
  // the nearest has k=4096, 3.1 standard deviations away, at most 0.9 are inside." Returns an empty
  // string for a problem inside.
  [[nodiscard]] std::string explain(const ProblemSchema& schema,
                                    std::span<const std::int64_t> fields) const;

  [[nodiscard]] Status validate(std::size_t fields) const;
  bool operator==(const ApplicabilityDomain&) const = default;
};

void put_applicability_domain(ByteWriter& writer, const ApplicabilityDomain& domain);
Result<ApplicabilityDomain> get_applicability_domain(ByteReader& reader);

}  // namespace foretune
