// A config of the cpu-conv family as a struct. The schema is named "cpu-conv", and its words stand
// in this order:
//
//   isa        generic, avx2, avx512: which micro-kernels
//   algorithm  taps: register blocks of output points times output channels (of a gradient of
//              weights: of output channels times input channels), summed over all taps
//              groups: vectors along the channels of several narrow groups, down to one channel
//              planar: channels first, with register blocks of output channels times output points
//              of a row; a gradient of weights is that of copies with channels last
//              turned: a gradient of weights by register blocks of values of a filter times output
//              channels
//              winograd2, winograd4: Winograd's algorithm with tiles of 2 x 2 or 4 x 4 points;
//              register blocks of tiles times output channels. They round differently
//              tiles: as taps, in the matrix tiles of AMX, for bf16 and i8
//   mr, nr     rows and columns of a register block, in elements; nr is a multiple of the
//              lanes. The algorithm groups has points of a row and one vector
//   rows       output rows of a slab, which is computed whole before the next one; more than the
//              rows of an image mean several images
//   kc         input channels of a chunk, an upper bound: partial sums stay in registers while all
//              taps of a chunk are added. For a gradient of weights: output rows of a chunk. The
//              algorithm groups computes kc output channels before the next row
//   order      filters: for each panel of nr output channels, all points of a slab; points: for
//              each register block of points, all panels; rows: for each row of points, all panels
//   taps       each: a kernel goes from tap to tap; row: the taps of a filter's row are one run of
//              input, which needs no dilation along the width; inner: points at the edges leave out
//              the taps that read zeros, in calls of their own, and nothing is copied. planar: row
//              joins the rows of a slab
//   copy       needed: slabs are copied where taps reach beyond the image; always: so that channels
//              of a group lie together
//   threads    how many share the work
//   split      points: threads share slabs; filters: panels. points when there is one thread
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/space/config.h"

namespace foretune {

// Words of configs: never renumber.
enum class ConvAlgorithm : std::uint8_t {
  kTaps = 0,
  kGroups = 1,
  kPlanar = 2,
  kTurned = 3,
  kWinograd2 = 4,
  kWinograd4 = 5,
  kTiles = 6,
};
enum class ConvOrder : std::uint8_t { kFilters = 0, kPoints = 1, kRows = 2 };
enum class ConvTaps : std::uint8_t { kEach = 0, kRow = 1, kInner = 2 };
enum class ConvCopy : std::uint8_t { kNeeded = 0, kAlways = 1 };
enum class ConvSplit : std::uint8_t { kPoints = 0, kFilters = 1 };

// Positions of the words.
enum class CpuConvField : std::uint8_t {
  kIsa = 0,
  kAlgorithm,
  kMr,
  kNr,
  kRows,
  kKc,
  kOrder,
  kTaps,
  kCopy,
  kThreads,
  kSplit,
  kCount,
};
inline constexpr std::size_t kCpuConvWords = static_cast<std::size_t>(CpuConvField::kCount);

struct CpuConvConfig {
  CpuIsa isa = CpuIsa::kGeneric;
  ConvAlgorithm algorithm = ConvAlgorithm::kTaps;
  int mr = 1;
  int nr = 4;
  int rows = 1;
  int kc = 64;
  ConvOrder order = ConvOrder::kFilters;
  ConvTaps taps = ConvTaps::kEach;
  ConvCopy copy = ConvCopy::kNeeded;
  int threads = 1;
  ConvSplit split = ConvSplit::kPoints;

  // Errors: kMismatch for a config of another schema, kInvalidArgument for words out of range.
  static Result<CpuConvConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const CpuConvConfig&) const = default;
};

const ConfigSchema& cpu_conv_schema();

}  // namespace foretune
