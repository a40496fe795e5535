#include "foretune/loop/nest_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/loop/loop_features.h"

namespace foretune::loop {
namespace {

constexpr std::size_t kAround = 5;  // number of loops around the block in the features
constexpr std::size_t kInside = 4;
// The compiler may split what a schedule has.
constexpr std::size_t kMaxShown = 16;
constexpr std::size_t kColumns = kLoopFeatureColumns;

constexpr std::array<const char*, kPlanColumns> kSummary = {
    "lanes",         "vectors",           "sums",       "unrolled",   "block_rounds",
    "output_passes", "loads_per_product", "lane_waste", "pack_bytes", "output_extent",
    "reduced_extent"};

double log2_count(std::int64_t value) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(1, value)));
}

class NestRow {
 public:
  NestRow(const Computation& computation, const Lowered& lowered)
      : c_(computation), p_(lowered), block_(static_cast<std::size_t>(lowered.nest.block)) {}

  void write_plan(std::span<double> row) {
    row_ = row;
    write_summary();
  }
  void write(std::span<double> row) {
    write_plan(row);
    std::array<float, kMaxShown * kColumns> loops{};
    write_loops_features(c_, {.nest = p_.nest, .cursor = 0}, loops);
    const std::size_t count = std::min(p_.nest.loops.size(), kMaxShown);
    for (std::size_t i = 1; i <= kAround; ++i) {
      write_loop(loops, i <= block_ ? block_ - i : count);
    }
    for (std::size_t i = 0; i < kInside; ++i) {
      write_loop(loops, block_ + i < count ? block_ + i : count);
    }
    FORETUNE_DCHECK(next_ == row_.size());
  }

 private:
  void put(double value) { row_[next_++] = value; }

  [[nodiscard]] std::int64_t rounds(std::size_t level) const { return p_.nest.rounds(c_, level); }
  [[nodiscard]] bool is_reduction(std::size_t level) const {
    return c_.vars[p_.nest.loops[level].var].is_reduction;
  }
  [[nodiscard]] bool is_lane_loop(std::size_t level) const {
    return p_.lanes > 1 && level == p_.vector_level;
  }
  // Returns the registers along a loop in the block.
  [[nodiscard]] std::int64_t registers_along(std::size_t level) const {
    return is_lane_loop(level) ? (rounds(level) + p_.lanes - 1) / p_.lanes : rounds(level);
  }

  void write_summary() {
    std::int64_t vectors = 1;
    std::int64_t unrolled = 1;
    std::int64_t around = 1;
    std::int64_t passes = 1;
    std::array<std::int64_t, kMaxTensors> loads{};
    loads.fill(1);
    for (std::size_t level = 0; level < p_.nest.loops.size(); ++level) {
      if (level < block_) {
        around *= rounds(level);
        passes *= is_reduction(level) ? rounds(level) : 1;
        continue;
      }
      vectors *= is_reduction(level) ? 1 : registers_along(level);
      unrolled *= registers_along(level);
      for (std::size_t tensor = 0; tensor < p_.strides.size(); ++tensor) {
        loads[tensor] *= p_.strides[tensor][level] != 0 ? registers_along(level) : 1;
      }
    }
    std::int64_t input_loads = 0;
    for (int input = 0; input < c_.combined; ++input) {
      input_loads += loads[static_cast<std::size_t>(input) + 1];
    }
    double waste = 0;
    if (p_.lanes > 1) {
      const std::int64_t covered = p_.nest.covers(c_, p_.vector_level);
      const std::int64_t whole = (covered + p_.lanes - 1) / p_.lanes * p_.lanes;
      waste = 1 - static_cast<double>(covered) / static_cast<double>(whole);
    }
    std::int64_t output = 1;
    std::int64_t reduced = 1;
    for (const Var& var : c_.vars) {
      (var.is_reduction ? reduced : output) *= var.extent;
    }
    put(log2_count(p_.lanes));
    put(static_cast<double>(vectors));
    put(static_cast<double>(vectors * copies_of_sums(p_.unit, vectors)));
    put(log2_count(unrolled));
    put(log2_count(around));
    put(log2_count(passes));
    put(static_cast<double>(input_loads) / static_cast<double>(unrolled));
    put(waste);
    put(log2_count(4 * p_.pack_floats));
    put(log2_count(output));
    put(log2_count(reduced));
  }

  // Writes the row of a loop. A level beyond the last one has a row of 0.
  void write_loop(std::span<const float> loops, std::size_t level) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      if (loops_feature_names()[column] != "cursor") {
        put(level < p_.nest.loops.size() && level < kMaxShown
                ? static_cast<double>(loops[level * kColumns + column])
                : 0);
      }
    }
  }

  const Computation& c_;
  const Lowered& p_;
  std::size_t block_;
  std::span<double> row_;
  std::size_t next_ = 0;
};

std::vector<std::string> make_names() {
  std::vector<std::string> names(kSummary.begin(), kSummary.end());
  for (std::size_t i = 0; i < kAround + kInside; ++i) {
    const std::string loop = i < kAround ? concat("out", i) : concat("in", i - kAround);
    for (const std::string_view column : loops_feature_names()) {
      if (column != "cursor") {
        names.push_back(concat(loop, "_", column));
      }
    }
  }
  return names;
}

}  // namespace

const std::vector<std::string>& nest_feature_names() {
  static const std::vector<std::string> names = make_names();
  return names;
}

void write_plan_features(const Computation& computation, const Lowered& lowered,
                         std::span<double> row) {
  FORETUNE_CHECK(row.size() == kPlanColumns);
  NestRow(computation, lowered).write_plan(row);
}

bool write_nest_features(const Computation& computation, const Nest& nest, const VectorUnit& unit,
                         std::span<double> row) {
  FORETUNE_CHECK(row.size() == nest_feature_names().size());
  const auto lowered = lower(computation, nest, unit);
  if (!lowered) {
    return false;
  }
  NestRow(computation, *lowered).write(row);
  return true;
}

}  // namespace foretune::loop
