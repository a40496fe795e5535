// Where the problems of a training set lie: their sizes as points in log2 space, each dimension in
// units of its standard deviation, and the labels that occurred. A problem is inside when a point
// lies within a distance that all but one in a hundred training problems keep to their own nearest
// neighbour. Unlike a box of ranges this sees the holes and corners where nothing was measured.
//
//   const TrainingHull hull = TrainingHull::fit(problems);
//   if (!hull.is_inside(problem.fields())) ... hull.explain(problem.fields())
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

// How far a problem is from the training problems, and in what.
struct HullDistance {
  bool inside = true;
  bool is_label = false;     // the field's label never occurred in training; no distance then
  double distance = 0;       // to the nearest training problem, in standard deviations
  std::size_t field = 0;     // that contributes most
  double nearest_value = 0;  // of that field in the nearest training problem
};

struct TrainingHull {
  static constexpr std::size_t kMaxPoints = 1024;
  static constexpr std::size_t kMaxSizes = 32;
  static constexpr std::size_t kMaxLabels = 64;

  struct Size {
    std::uint8_t field = 0;
    float per_log2 = 1;  // what one step of log2 counts
    bool operator==(const Size&) const = default;
  };
  struct Label {
    std::uint8_t field = 0;
    std::uint64_t seen = 0;  // bit i: label i occurred
    bool operator==(const Label&) const = default;
  };
  std::vector<Size> sizes;
  std::vector<Label> labels;
  std::vector<float> points;  // one value per size, point after point: log2(size) * per_log2
  float limit = 0;            // a problem farther than this from every point is outside

  // Of at most kMaxPoints of the problems, which are of one type; at least one.
  static TrainingHull fit(std::span<const Problem> problems);

  [[nodiscard]] bool is_inside(std::span<const std::int64_t> fields) const noexcept;
  [[nodiscard]] HullDistance distance(std::span<const std::int64_t> fields) const noexcept;
  // A sentence: "k=1000000 is far from every training problem: the nearest has k=4096, 3.1 standard
  // deviations away, at most 0.9 are inside." Empty for a problem inside. For a problem of
  // `schema`.
  [[nodiscard]] std::string explain(const ProblemSchema& schema,
                                    std::span<const std::int64_t> fields) const;

  [[nodiscard]] Status validate(std::size_t fields) const;
  bool operator==(const TrainingHull&) const = default;
};

void put_training_hull(ByteWriter& writer, const TrainingHull& hull);
Result<TrainingHull> get_training_hull(ByteReader& reader);

}  // namespace foretune
