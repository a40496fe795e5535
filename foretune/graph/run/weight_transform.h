// Knobs of one's own: functions that change the weights of a layer before it is packed.
//
//   class PowersOfTwo final : public WeightTransform { ... };
//   FORETUNE_TRY_STATUS(register_weight_transform(std::make_unique<PowersOfTwo>()));
//
// A registered transform is part of names of knobs, as in "f32+powers_of_two": `foretune approx`,
// the family network-cpu and plans of the same program then take it like any other knob
// (examples/extending/weight_transform.cc).
//
// Thread safety: transforms are constant; the table takes rows while others read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

class WeightTransform {
 public:
  WeightTransform() = default;
  WeightTransform(const WeightTransform&) = delete;
  WeightTransform& operator=(const WeightTransform&) = delete;
  virtual ~WeightTransform() = default;

  // Letters, digits and underscores, at most 40, the first a letter; stays as long as the
  // transform.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // From 0 to 63. Data sets store it in place of the name, so it must never change.
  [[nodiscard]] virtual std::int64_t number() const = 0;
  // Says why a layer cannot have it.
  [[nodiscard]] virtual Support can_apply(const Network& network, const Node& node) const;
  // Returns true where most weights become 0, so that a layer of f32 and one group should skip
  // them.
  [[nodiscard]] virtual bool prunes() const { return false; }
  // Changes the weights: filters x channels of a group x rows x columns, or outputs x inputs. Equal
  // weights must become equal ones. An error ends the making of a plan.
  virtual Status apply(std::span<float> weights, const Shape& shape) const = 0;
};

// Returns the transform with this number or name, or null.
[[nodiscard]] const WeightTransform* find_weight_transform(std::int64_t number);
[[nodiscard]] const WeightTransform* find_weight_transform(std::string_view name);
// Adds a transform for the rest of the process. Errors: kInvalidArgument for a name or a number
// that is taken or out of range.
Status register_weight_transform(std::unique_ptr<const WeightTransform> transform);

}  // namespace foretune::graph
