// The distilled model: a small network that ranks a portfolio of at most 64 candidates from nothing
// but the fields of a problem, distilled from the exact model (model/train/distilled_model.h). All
// arithmetic is on integers, so that every compiler and every instruction set gives the same
// ranking, and so that the exported C++ header (export_cpp/) can be evaluated at compile time.
//
//   fast.inputs(problem.fields(), inputs);
//   fast.scores(inputs, scores);  // one per member of the portfolio; lower is better
//   if (fast.bound(inputs) <= 0.05F) ...
//
// A small tree over the same inputs bounds how far the ranking can be off. Its leaves hold the 95th
// percentile of the regret (in ln time) of the distilled model's pick against the exact model's, on
// problems that the network was not trained on.
//
// Thread safety: plain data; const members may be called from any thread. Cost: 0.3 to 1 us, no
// allocation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

// Stored in files: never renumber.
enum class DistilledFeatureKind : std::uint8_t {
  kLog2 = 0,     // log2 of a field
  kUse = 1,      // the share that a field fills of the next multiple of `block`
  kLabel = 2,    // 1 where a field equals `block`
  kWaveUse = 3,  // tiles of field x other per place in all waves of `places`
  kWaves = 4,    // log2 of those waves
};

// One input of the network: an integer in units of 1/4096, computed from the fields.
struct DistilledFeature {
  DistilledFeatureKind kind = DistilledFeatureKind::kLog2;
  std::uint8_t field = 0;
  std::int32_t block = 1;
  // Used by the kinds with waves only: the second side of a tile, how many times the tiles are
  // repeated, and how many tiles run at once.
  std::uint8_t other = 0;
  std::int32_t other_block = 1;
  std::uint8_t repeat = 0;
  std::int32_t places = 1;
  // The network sees clamp((value - mean) * scale / 4096, -4096, 4096).
  std::int32_t mean = 0;
  std::int32_t scale = 0;
  bool operator==(const DistilledFeature&) const = default;
};

// outputs = inputs * weights + bias; hidden layers then become clamp(outputs >> shift, 0, 8191).
struct DistilledLayer {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::uint32_t shift = 0;
  std::vector<std::int16_t> weights;  // `inputs` for each output, one output after another
  std::vector<std::int32_t> bias;
  bool operator==(const DistilledLayer&) const = default;
};

// A node of the tree of bounds. A leaf has feature kLeaf.
struct DistilledRegion {
  static constexpr std::uint16_t kLeaf = 0xffff;
  std::uint16_t feature = kLeaf;
  std::int16_t threshold = 0;  // left when the network's input is at most this
  std::uint32_t left = 0;      // right follows left
  float bound = 0;             // of a leaf: ln time
  bool operator==(const DistilledRegion&) const = default;
};

struct DistilledModel {
  static constexpr std::size_t kMaxPortfolio = 64;
  static constexpr std::size_t kMaxInputs = 256;
  static constexpr std::size_t kMaxHidden = 128;
  static constexpr std::size_t kMaxLayers = 4;
  static constexpr std::int32_t kUnit = 4096;
  static constexpr std::int32_t kMaxHiddenValue = 8191;

  std::vector<std::uint32_t> portfolio;  // positions in the model's pool
  std::vector<DistilledFeature> features;
  std::vector<DistilledLayer> layers;
  double score_unit = 0;  // ln time of one step of a score
  std::vector<DistilledRegion> regions;
  // Regret of the distilled model's pick against the exact model's, in ln time by the exact model's
  // scores, on problems that the network did not learn from.
  double mean_regret = 0;
  double p90_regret = 0;

  // Computes the network's inputs, one per feature. `fields` are those of a problem of the model's
  // type.
  void inputs(std::span<const std::int64_t> fields, std::span<std::int16_t> out) const noexcept;
  // Computes one score per member of the portfolio, in units of score_unit.
  void scores(std::span<const std::int16_t> inputs, std::span<std::int32_t> out) const noexcept;
  // Returns the bound of the region that the inputs lie in.
  [[nodiscard]] float bound(std::span<const std::int16_t> inputs) const noexcept;

  // Fails unless the parts fit each other and no sum can overflow; get_distilled_model() does not
  // check that. `fields` is the number of fields of a problem, `pool` that of candidates.
  [[nodiscard]] Status validate(std::size_t fields, std::size_t pool) const;
  bool operator==(const DistilledModel&) const = default;
};

// Returns the value of one input before it is standardised. Sizes below 1 count as 1.
std::int64_t distilled_feature_value(const DistilledFeature& feature,
                                     std::span<const std::int64_t> fields);

// Fails unless the input can be computed for problems with that many fields.
Status check_distilled_feature(const DistilledFeature& feature, std::size_t index,
                               std::size_t fields);
void put_distilled_feature(ByteWriter& writer, const DistilledFeature& feature);
DistilledFeature get_distilled_feature(ByteReader& reader);

void put_distilled_model(ByteWriter& writer, const DistilledModel& model);
Result<DistilledModel> get_distilled_model(ByteReader& reader);

}  // namespace foretune
