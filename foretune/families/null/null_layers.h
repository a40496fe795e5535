// Networks by formula: what the family `null` measures with sequence=yes. A config is a sequence,
// one word for each layer of the problem's network, the knob that the layer is computed with. Knob
// 0 is exact; the others are faster or slower by the kind of layer, and cost accuracy. Two
// neighbouring layers with unlike knobs convert between them, so the order matters and the best
// config is a compromise of several knobs.
//
//   const NullLayersSpace space(problem);
//   FORETUNE_TRY(const Config config, space.sample(rng));
//   const double time_ns = null_layers_time_ns(problem, config);
//
// Thread safety: free functions without state; spaces are immutable. Cost: linear in the layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune {

inline constexpr std::int32_t kNullKnobs = 6;

// "null-layers", version 1: of kind sequence.
const ConfigSchema& null_layers_schema();
// From 5 to 300: five and the largest size of the problem modulo 296. Labels are no sizes.
[[nodiscard]] std::size_t null_layers(const Problem& problem);

// The time of a legal config without noise, in ns. Each layer takes the same share of a base that
// grows with the problem, times its weight, what its knob takes on a layer of its kind, and a
// factor above 1 where the knob is another than that of the layer before.
[[nodiscard]] double null_layers_time_ns(const Problem& problem, const Config& config);
// Percent: 99, less for each layer what its knob loses times how sensitive the layer is.
[[nodiscard]] double null_layers_accuracy(const Problem& problem, const Config& config);
// ns of all conversions, and bytes of the layers' weights.
[[nodiscard]] double null_layers_pack_ns(const Config& config);
[[nodiscard]] double null_layers_bytes(const Config& config);
// The parts of the formulas, of layer `layer` of the problem.
[[nodiscard]] double null_layer_weight(const Problem& problem, std::size_t layer);
[[nodiscard]] double null_layer_sensitivity(const Problem& problem, std::size_t layer);
[[nodiscard]] double null_layer_cost(std::size_t layer, std::int32_t knob);
[[nodiscard]] double null_knob_loss(std::int32_t knob);
inline constexpr double kNullConversion = 1.12;

// All sequences of the problem's length. Up to four million are listed, more are not.
class NullLayersSpace final : public Space, public SequentialSpace, public EnumerableSpace {
 public:
  explicit NullLayersSpace(const Problem& problem);
  [[nodiscard]] std::size_t layers() const { return layers_; }

  const ConfigSchema& schema() const override { return null_layers_schema(); }
  Support why_not(const Config& config) const override;
  // All are equally likely.
  Result<Config> sample(Rng& rng) const override;
  // Another knob for one layer, in order of layers and knobs; none of a config that is not legal.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override { return config; }
  const EnumerableSpace* enumerable() const override { return count_ > 0 ? this : nullptr; }
  const SequentialSpace* sequential() const override { return this; }

  // Both abort unless enumerable().
  std::uint64_t count() const override;
  Config unrank(std::uint64_t index) const override;

  // Knob 0 everywhere. Action layer * kNullKnobs + knob gives a layer another knob; each state is a
  // config, and as many actions as there are layers reach any of them.
  Config start() const override;
  std::size_t action_count() const override { return layers_ * kNullKnobs; }
  std::vector<bool> legal_actions(const Config& state) const override;
  Result<Config> apply(const Config& state, std::size_t action) const override;
  std::string action_text(std::size_t action) const override;
  bool prefers_walks() const override { return false; }
  std::size_t usual_steps() const override { return layers_; }

 private:
  std::size_t layers_;
  std::uint64_t count_ = 0;  // 0: too many to list
};

}  // namespace foretune
