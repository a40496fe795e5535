// A config of the family cudnn: a rank in the answer of one of the library's heuristics, or an
// engine with values of its knobs.
//
//   heuristic=a rank=1 engine=-1 split_k=-1 ... other4=-1 other4_value=-1
//   heuristic=none rank=0 engine=62 split_k=-1 tile_size=12 ... tilek=1 ...
//
// Numbers are the library's; an engine's number means the same only within one version of the
// library and one direction. -1 stands for a knob that the engine does not have or whose value is
// left to the library. The knobs that convolutions of cuDNN 9.19 have on Hopper have positions of
// their own. Other types of knobs, also those of later versions, are kept as pairs of type and
// value, in ascending order of types, so that nothing is lost.
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/space/config.h"

namespace foretune {

// The heuristic of a rank. Stored in files: never renumber.
enum class CudnnHeuristic : std::uint8_t { kNone = 0, kA = 1, kB = 2, kFallback = 3 };
std::string_view to_string(CudnnHeuristic heuristic);

struct CudnnKnob {
  std::int32_t type = 0;  // cudnnBackendKnobType_t
  std::string_view name;
};
// The knobs with positions of their own, in the order of the positions.
inline constexpr std::array<CudnnKnob, 19> kCudnnKnobs{{{0, "split_k"},
                                                        {2, "tile_size"},
                                                        {3, "use_tex"},
                                                        {5, "kblock"},
                                                        {6, "ldga"},
                                                        {7, "ldgb"},
                                                        {11, "multiply"},
                                                        {12, "split_k_buf"},
                                                        {13, "tilek"},
                                                        {14, "stages"},
                                                        {15, "reduction_mode"},
                                                        {17, "split_k_slc"},
                                                        {18, "idx_mode"},
                                                        {22, "ldgc"},
                                                        {23, "specfilt"},
                                                        {24, "kernel_cfg"},
                                                        {25, "workspace"},
                                                        {27, "tile_cga_m"},
                                                        {28, "tile_cga_n"}}};
inline constexpr std::size_t kCudnnOtherKnobs = 4;
inline constexpr std::int32_t kCudnnMaxRank = 256;

struct CudnnConfig {
  static constexpr std::int32_t kDefault = -1;
  struct Other {
    std::int32_t type = kDefault;  // none when -1
    std::int32_t value = kDefault;
    auto operator<=>(const Other&) const = default;
  };

  CudnnHeuristic heuristic = CudnnHeuristic::kNone;
  std::int32_t rank = 0;           // from 1, of a heuristic's answer; all below is -1 then
  std::int32_t engine = kDefault;  // from 0
  std::array<std::int32_t, kCudnnKnobs.size()> knobs = filled();  // as kCudnnKnobs
  std::array<Other, kCudnnOtherKnobs> others;

  static CudnnConfig ranked(CudnnHeuristic heuristic, std::int32_t rank);
  static CudnnConfig of_engine(std::int32_t engine);
  // Errors: kMismatch for a config of another schema, kInvalidArgument for values that make no
  // sense or are not in the one form that stands for them.
  static Result<CudnnConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  // Returns the value of a knob of this type; -1 when there is none.
  [[nodiscard]] std::int32_t knob(std::int32_t type) const;
  // Sets the value of a knob of any type. Returns false when the type has no position of its own
  // and there is no room for another pair.
  bool set_knob(std::int32_t type, std::int32_t value);
  // Calls visit(type, value) for every knob that has a value.
  template <class Visit>
  void for_each_knob(const Visit& visit) const {
    for (std::size_t i = 0; i < knobs.size(); ++i) {
      if (knobs[i] != kDefault) {
        visit(kCudnnKnobs[i].type, knobs[i]);
      }
    }
    for (const Other& other : others) {
      if (other.type != kDefault) {
        visit(other.type, other.value);
      }
    }
  }
  bool operator==(const CudnnConfig&) const = default;

 private:
  static constexpr std::array<std::int32_t, kCudnnKnobs.size()> filled() {
    std::array<std::int32_t, kCudnnKnobs.size()> values{};
    values.fill(kDefault);
    return values;
  }
};

const ConfigSchema& cudnn_schema();

}  // namespace foretune
