// Convolutions that leave out weights of 0.
//
// A kernel multiplies one weight by vectors of points, so that each kept weight costs the same
// wherever it lies. For that, the input of some rows and columns of the output, a band, is
// transposed into planes: one for each channel, each column of the filter and each row of the input
// modulo the stride. In these the points that a weight meets follow each other as those of the
// output do, and begin where vectors begin. The sums are transposed back into points.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/run/internal/steps.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/packing.h"
#include "foretune/kernels/pruned_kernel.h"
#include "foretune/kernels/shared_cpu.h"

namespace foretune::graph {

namespace {

constexpr std::ptrdiff_t kMaxLanes = 16;
// Points whose sums are written at once: few, so that lines of the cache are written whole.
constexpr std::ptrdiff_t kPointsAtOnce = 16;
// Distances in floats that 32 bits of a weight's offset hold.
constexpr std::ptrdiff_t kMaxOffset = std::numeric_limits<std::int32_t>::max();

std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t to) {
  return (value + to - 1) / to * to;
}
std::ptrdiff_t parts_of(std::ptrdiff_t whole, std::ptrdiff_t part) {
  return (whole + part - 1) / part;
}

// The sizes of a layer. Its output is lines of `rows` rows of `columns` points: a line is an image
// or, with filters of one row, one row of an image. The columns of all lines follow each other, so
// that vectors are full across the ends of images.
struct PrunedSizes {
  explicit PrunedSizes(const ConvProblem& problem)
      : s(problem.sizes()),
        image_rows(problem.ho()),
        columns(problem.wo()),
        rows(s.y == 1 ? 1 : image_rows),
        lines(s.y == 1 ? s.n * image_rows : s.n),
        phases(std::min(s.y, s.stride_h / std::gcd(s.stride_h, s.dilation_h))),
        more_rows((s.y - 1) * s.dilation_h / s.stride_h) {}

  // Returns the place of a filter's row among the phases.
  [[nodiscard]] std::ptrdiff_t phase_of(std::ptrdiff_t y) const { return y % phases; }
  [[nodiscard]] std::ptrdiff_t first_row_of(std::ptrdiff_t phase) const {
    return phase * s.dilation_h % s.stride_h;
  }
  [[nodiscard]] std::ptrdiff_t all_columns() const { return lines * columns; }

  ConvSizes s;
  std::ptrdiff_t image_rows;
  std::ptrdiff_t columns;
  std::ptrdiff_t rows;
  std::ptrdiff_t lines;
  // The rows of the input that a row of the filter meets lie a stride apart. These are the
  // different remainders of the stride among them.
  std::ptrdiff_t phases;
  std::ptrdiff_t more_rows;  // of a plane than of the output
};

// How a layer is cut: a band is some rows of some columns; strips of it are computed at once, from
// one block of channels after the other.
struct PrunedCut {
  std::ptrdiff_t vectors = 1;  // of a row of a band
  std::ptrdiff_t rows = 1;
  std::ptrdiff_t strip = 1;     // vectors
  std::ptrdiff_t channels = 1;  // of a block
};

// Estimates cycles of ways to cut a layer, for a core with two multiply-adds a cycle and caches of
// 32 and 512 KiB. Others have the same order of costs.
class PrunedCost {
 public:
  PrunedCost(const PrunedSizes& sizes, const PrunedKernels& kernels, double kept)
      : sizes_(sizes),
        lanes_(kernels.lanes),
        most_(kernels.vectors),
        line_(kMaxLanes / kernels.lanes),
        kept_(kept) {}

  [[nodiscard]] PrunedCut best() const {
    PrunedCut best;
    double least = std::numeric_limits<double>::infinity();
    const std::ptrdiff_t vectors = parts_of(sizes_.all_columns(), lanes_);
    for (std::ptrdiff_t wide = 1; wide <= std::min(most_, vectors); ++wide) {
      for (std::ptrdiff_t rows = 1; rows <= std::min(sizes_.rows, kMaxRows); ++rows) {
        PrunedCut cut{.vectors = wide, .rows = rows};
        // Strips of equal size.
        cut.strip = round_up(parts_of(wide * rows, parts_of(wide * rows, most_)), line_);
        cut.channels = std::clamp<std::ptrdiff_t>(kCacheBytes / strip_bytes(cut), 1, sizes_.s.c);
        cut.channels = parts_of(sizes_.s.c, parts_of(sizes_.s.c, cut.channels));
        const double cycles = cost(cut);
        if (cycles < least) {
          least = cycles;
          best = cut;
        }
      }
    }
    return best;
  }

 private:
  static constexpr std::ptrdiff_t kMaxRows = 64;
  static constexpr std::ptrdiff_t kCacheBytes = 24 << 10;  // of the first cache, for planes
  static constexpr double kSecondCacheBytes = 256 << 10;   // likewise
  static constexpr double kCyclesOfProduct = 0.55;         // of a vector
  static constexpr double kCyclesOfProductAcross = 0.65;   // where it begins within a cache line
  static constexpr double kCyclesOfWeight = 0.75;          // beside the products
  static constexpr double kCyclesOfFilter = 25;            // in each block, beside its weights
  static constexpr double kCyclesOfElement = 0.4;          // transposed
  static constexpr double kCyclesOfPoint = 4;              // found in the input
  static constexpr double kBytesOfCycle = 24;              // from the second cache
  static constexpr double kBytesOfCycleFar = 8;

  // Returns the bytes of one channel that a strip reads.
  [[nodiscard]] std::ptrdiff_t strip_bytes(const PrunedCut& cut) const {
    const std::ptrdiff_t rows =
        std::min(cut.rows, parts_of(cut.strip, cut.vectors)) + sizes_.more_rows;
    return rows * cut.vectors * lanes_ * sizes_.s.x * sizes_.phases *
           static_cast<std::ptrdiff_t>(sizeof(float));
  }

  [[nodiscard]] double cost(const PrunedCut& cut) const {
    const auto real = [](std::ptrdiff_t value) { return static_cast<double>(value); };
    const double bands = real(parts_of(sizes_.rows, cut.rows)) *
                         real(parts_of(sizes_.all_columns(), cut.vectors * lanes_));
    const double vectors = real(cut.rows * cut.vectors);
    const double strips = real(parts_of(cut.rows * cut.vectors, most_));
    const double blocks = real(parts_of(sizes_.s.c, cut.channels));
    const double points =
        real((cut.rows + sizes_.more_rows) * sizes_.phases * sizes_.s.x * cut.vectors * lanes_);
    const double bytes = points * real(sizes_.s.c) * sizeof(float);
    const double read = strips * real(sizes_.s.c * strip_bytes(cut)) /
                        (bytes > kSecondCacheBytes ? kBytesOfCycleFar : kBytesOfCycle);
    const bool is_aligned = cut.vectors % line_ == 0 && cut.strip % line_ == 0;
    const double of_product = is_aligned ? kCyclesOfProduct : kCyclesOfProductAcross;
    return bands * (kept_ * (of_product * vectors + kCyclesOfWeight * strips) +
                    strips * blocks * real(sizes_.s.k) * (kCyclesOfFilter + real(cut.strip)) +
                    points * (kCyclesOfPoint + kCyclesOfElement * real(sizes_.s.c)) + read);
  }

  const PrunedSizes& sizes_;
  std::ptrdiff_t lanes_;
  std::ptrdiff_t most_;
  std::ptrdiff_t line_;  // vectors of a cache line
  double kept_;
};

class PrunedStep final : public Step {
 public:
  PrunedStep(CpuIsa isa, const PrunedKernels& kernels, const ConvProblem& problem,
             std::span<const float> weights, std::vector<float> bias)
      : text_(problem.to_problem().text()),
        sizes_(problem),
        kernels_(kernels),
        transpose_lines_(transpose_lines_of(isa)),
        transpose_panel_(transpose_panel_of(isa)),
        bias_(std::move(bias)),
        zeros_(static_cast<std::size_t>(sizes_.s.c)) {
    const auto kept = static_cast<std::ptrdiff_t>(
        std::count_if(weights.begin(), weights.end(), [](float value) { return value != 0; }));
    share_ = static_cast<double>(kept) / static_cast<double>(weights.size());
    cut_ = PrunedCost(sizes_, kernels, static_cast<double>(kept)).best();
    if (sizes_.s.epilogue == ConvEpilogue::kBiasRelu) {
      floor_ = 0;
    }
    plane_ = (cut_.rows + sizes_.more_rows) * pitch();
    // Planes of neighbouring channels lie an odd number of cache lines apart: they go to different
    // places of the cache.
    channel_step_ = round_up(sizes_.s.x * sizes_.phases * plane_, 2 * kMaxLanes) + kMaxLanes;
    strip_step_ = cut_.strip * kernels.lanes;
    weights_.reserve(static_cast<std::size_t>(kept));
  }

  // Errors: kUnsupported when the planes are too large.
  Status keep(std::span<const float> weights) {
    if (channel_step_ > kMaxOffset / sizes_.s.c) {
      return fail(ErrorCode::kUnsupported, "planes of ", sizes_.s.c, " channels are too large");
    }
    const ConvSizes& s = sizes_.s;
    for (std::ptrdiff_t first = 0; first < s.c; first += cut_.channels) {
      const std::ptrdiff_t last = std::min<std::ptrdiff_t>(first + cut_.channels, s.c);
      ends_.push_back(static_cast<std::ptrdiff_t>(weights_.size()));
      for (std::ptrdiff_t filter = 0; filter < s.k; ++filter) {
        keep_filter(weights.subspan(static_cast<std::size_t>(filter * s.y * s.x * s.c)), first,
                    last);
        ends_.push_back(static_cast<std::ptrdiff_t>(weights_.size()));
      }
    }
    return {};
  }

  Status run(const Frame& frame) const override {
    const std::ptrdiff_t planes_size = channel_step_ * sizes_.s.c;
    const std::ptrdiff_t size = planes_size + sizes_.s.k * strip_step_;
    FORETUNE_TRY(AlignedBuffer workspace, workspaces_.borrow(static_cast<std::size_t>(size)));
    float* const planes = workspace.data();
    float* const sums = planes + planes_size;
    for (std::ptrdiff_t column = 0; column < sizes_.all_columns(); column += pitch()) {
      const Columns columns = columns_from(column, frame.in(reads[0]));
      for (std::ptrdiff_t row = 0; row < sizes_.rows; row += cut_.rows) {
        const std::ptrdiff_t rows = std::min(cut_.rows, sizes_.rows - row);
        fill_planes(columns, row, rows, planes);
        compute({.row = row, .rows = rows, .column = column}, planes, sums, frame.out(write));
      }
    }
    workspaces_.give_back(std::move(workspace));
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat(text_, " with ", std::lround(100 * share_), " % of its weights");
  }

 private:
  // The inputs of the columns of a band. A column that does not exist lies above its image.
  struct Columns {
    static constexpr std::size_t kMost = std::size_t{kMaxPrunedVectors} * std::size_t{kMaxLanes};
    std::array<const float*, kMost> images;
    std::array<std::ptrdiff_t, kMost> rows;  // of the input, for row 0 of output and filter
    std::array<std::ptrdiff_t, kMost> columns;
  };
  struct Band {
    std::ptrdiff_t row = 0;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t column = 0;
  };

  [[nodiscard]] std::ptrdiff_t pitch() const { return cut_.vectors * kernels_.lanes; }

  // Keeps the weights of some channels.
  void keep_filter(std::span<const float> weights, std::ptrdiff_t first, std::ptrdiff_t last) {
    const ConvSizes& s = sizes_.s;
    for (std::ptrdiff_t channel = first; channel < last; ++channel) {
      for (std::ptrdiff_t x = 0; x < s.x; ++x) {
        for (std::ptrdiff_t y = 0; y < s.y; ++y) {
          const float value = weights[static_cast<std::size_t>((y * s.x + x) * s.c + channel)];
          if (value != 0) {
            const std::ptrdiff_t plane = x * sizes_.phases + sizes_.phase_of(y);
            const std::ptrdiff_t offset =
                channel * channel_step_ + plane * plane_ + y * s.dilation_h / s.stride_h * pitch();
            weights_.push_back({static_cast<std::int32_t>(offset), value});
          }
        }
      }
    }
  }

  [[nodiscard]] Columns columns_from(std::ptrdiff_t first, const float* input) const {
    const ConvSizes& s = sizes_.s;
    const bool has_line_of_row = sizes_.rows < sizes_.image_rows;
    Columns made;  // NOLINT(*-member-init): all that is read is written
    std::ptrdiff_t line = first / sizes_.columns;
    std::ptrdiff_t column = first % sizes_.columns;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pitch()); ++i) {
      const std::ptrdiff_t image = has_line_of_row ? line / sizes_.image_rows : line;
      const std::ptrdiff_t row = has_line_of_row ? line % sizes_.image_rows : 0;
      const bool exists = line < sizes_.lines;
      made.images[i] = exists ? input + image * s.hi * s.wi * s.c : input;
      made.rows[i] = exists ? row * s.stride_h - s.pad_h : std::numeric_limits<int>::min();
      made.columns[i] = column * s.stride_w - s.pad_w;
      if (++column == sizes_.columns) {
        column = 0;
        ++line;
      }
    }
    return made;
  }

  void fill_planes(const Columns& columns, std::ptrdiff_t first, std::ptrdiff_t rows,
                   float* planes) const {
    const ConvSizes& s = sizes_.s;
    std::array<const float*, Columns::kMost> lines;  // NOLINT(*-member-init): written below
    for (std::ptrdiff_t phase = 0; phase < sizes_.phases; ++phase) {
      for (std::ptrdiff_t row = 0; row < rows + sizes_.more_rows; ++row) {
        const std::ptrdiff_t down = (first + row) * s.stride_h + sizes_.first_row_of(phase);
        for (std::ptrdiff_t x = 0; x < s.x; ++x) {
          const std::ptrdiff_t right = x * s.dilation_w;
          for (std::size_t i = 0; i < static_cast<std::size_t>(pitch()); ++i) {
            const std::ptrdiff_t here = columns.rows[i] + down;
            const std::ptrdiff_t column = columns.columns[i] + right;
            const bool is_inside = here >= 0 && here < s.hi && column >= 0 && column < s.wi;
            lines[i] = is_inside ? columns.images[i] + (here * s.wi + column) * s.c : zeros_.data();
          }
          transpose_lines_(lines.data(), pitch(), s.c, channel_step_,
                           planes + (x * sizes_.phases + phase) * plane_ + row * pitch());
        }
      }
    }
  }

  void compute(const Band& band, const float* planes, float* sums, float* output) const {
    const std::ptrdiff_t vectors = band.rows * cut_.vectors;
    const std::ptrdiff_t ends_of_block = sizes_.s.k + 1;
    const std::ptrdiff_t blocks = static_cast<std::ptrdiff_t>(ends_.size()) / ends_of_block;
    for (std::ptrdiff_t first = 0; first < vectors; first += cut_.strip) {
      const std::ptrdiff_t here = std::min(cut_.strip, vectors - first);
      PrunedStrip strip{.planes = planes + first * kernels_.lanes,
                        .weights = weights_.data(),
                        .ends = ends_.data(),
                        .filters = sizes_.s.k,
                        .bias = bias_.empty() ? nullptr : bias_.data(),
                        .sums = sums,
                        .filter_step = strip_step_};
      for (std::ptrdiff_t block = 0; block < blocks; ++block) {
        strip.continues = block > 0;
        if (block + 1 == blocks) {
          strip.floor = floor_;
        }
        kernels_.runs[here - 1](strip);
        strip.ends += ends_of_block;
      }
      write_points(band, first * kernels_.lanes, here * kernels_.lanes, sums, output);
    }
  }

  // Writes `count` points of the band from `first` on.
  void write_points(const Band& band, std::ptrdiff_t first, std::ptrdiff_t count, const float* sums,
                    float* output) const {
    const std::ptrdiff_t existing = std::min(pitch(), sizes_.all_columns() - band.column);
    std::ptrdiff_t row = first / pitch();
    std::ptrdiff_t column = first % pitch();
    for (std::ptrdiff_t done = 0; done < count;) {
      const std::ptrdiff_t here = std::min(count - done, pitch() - column);
      write_row(band.row + row, band.column + column, std::min(here, existing - column),
                sums + done, output);
      done += here;
      column = 0;
      ++row;
    }
  }

  // Writes `count` points of a row, if any; the columns of all lines follow each other.
  void write_row(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t count, const float* sums,
                 float* output) const {
    const std::ptrdiff_t length = sizes_.rows == 1 ? sizes_.all_columns() : sizes_.columns;
    while (count > 0) {
      const std::ptrdiff_t line = column / length;
      const std::ptrdiff_t place = column % length;
      const std::ptrdiff_t here = std::min({count, length - place, kPointsAtOnce});
      const std::ptrdiff_t point = (line * sizes_.rows + row) * length + place;
      transpose_panel_(sums, strip_step_, sizes_.s.k, here, sizes_.s.k,
                       output + point * sizes_.s.k);
      sums += here;
      column += here;
      count -= here;
    }
  }

  std::string text_;
  PrunedSizes sizes_;
  const PrunedKernels& kernels_;
  TransposeLines transpose_lines_;
  TransposePanel transpose_panel_;
  PrunedCut cut_;
  std::ptrdiff_t plane_ = 0;
  std::ptrdiff_t channel_step_ = 0;
  std::ptrdiff_t strip_step_ = 0;  // between filters
  std::vector<PrunedWeight> weights_;
  std::vector<std::ptrdiff_t> ends_;  // as in PrunedStrip, by block
  std::vector<float> bias_;
  std::vector<float> zeros_;
  float floor_ = -std::numeric_limits<float>::infinity();
  double share_ = 0;
  mutable Workspaces workspaces_;
};

Status check_problem(const ConvProblem& problem) {
  const ConvSizes& s = problem.sizes();
  const char* reason = nullptr;
  if (s.operation != ConvOperation::kForward) {
    reason = "only forward passes leave out weights";
  } else if (s.dtype != DataType::kF32) {
    reason = "only products of f32 leave out weights";
  } else if (s.layout != ConvLayout::kChannelsLast) {
    reason = "the channels are not last";
  } else if (s.g != 1) {
    reason = "there are several groups";
  } else if (problem.is_3d()) {
    reason = "there are three dimensions";
  } else if (problem.skips()) {
    reason = "rows, columns or points of filters are left out";
  } else if (s.epilogue == ConvEpilogue::kBiasAddRelu) {
    reason = "a tensor is added";
  }
  if (reason != nullptr) {
    return fail(ErrorCode::kUnsupported, problem.to_problem().text(), ": ", reason);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Step>> make_pruned_step(CpuIsa isa, const ConvProblem& problem,
                                               ValueId input, ValueId output,
                                               std::span<const float> weights,
                                               std::vector<float> bias) {
  FORETUNE_TRY_STATUS(check_problem(problem));
  const auto wanted = static_cast<std::size_t>(problem.weight_elements());
  if (weights.size() != wanted) {
    return fail(ErrorCode::kInvalidArgument, weights.size(), " weights where there are ", wanted);
  }
  const std::size_t biases =
      problem.epilogue() == ConvEpilogue::kNone ? 0 : static_cast<std::size_t>(problem.sizes().k);
  if (bias.size() != biases) {
    return fail(ErrorCode::kInvalidArgument, "a bias of ", bias.size(), " numbers, not ", biases);
  }
  const PrunedKernels* const kernels = pruned_kernels(isa);
  if (kernels == nullptr) {
    return fail(ErrorCode::kUnsupported, "there are no kernels of ", to_string(isa));
  }
  auto step = std::make_unique<PrunedStep>(isa, *kernels, problem, weights, std::move(bias));
  step->reads = {input};
  step->write = output;
  FORETUNE_TRY_STATUS(step->keep(weights));
  return std::unique_ptr<Step>(std::move(step));
}

}  // namespace foretune::graph
