// The observations of an environment by the names that LoopTune's users know: one table for
// command lines, bindings and documentation.
//
//   FORETUNE_TRY(const Observation observation, observe(environment, "loops_tensor"));
//   std::get<FloatTensor>(observation).shape   {10, 20}
//
// Agents in C++ write tensors into their own memory instead; see observations.h. Callers that have
// only names look these up once, and then also write into their own memory:
//
//   FORETUNE_TRY(const std::size_t index, find_observation("loops_tensor"));
//   const auto shape = observation_shape(index, environment.options(), environment.actions());
//   write_observation(environment, index, values);
//
// Thread safety: free functions. Cost: writing a tensor costs as much as in observations.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/gym/environment.h"

namespace foretune::loop::gym {

// By rows.
struct FloatTensor {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

using Observation = std::variant<double, FloatTensor, std::string>;

// In the order of Observation's alternatives.
enum class ObservationKind : std::uint8_t { kNumber, kFloatTensor, kText };

struct ObservationInfo {
  std::string_view name;
  ObservationKind kind;
  std::string_view unit;  // empty where there is none
  std::string_view what;
};

// Returns all observations. Each has the same kind and, for a tensor, the same shape for all states
// of an environment.
std::span<const ObservationInfo> observations();

// Returns the position in observations(). Errors: kInvalidArgument with an unknown name.
Result<std::size_t> find_observation(std::string_view name);
// Returns the shape of a tensor; empty for other observations.
std::vector<std::size_t> observation_shape(std::size_t index, const EnvironmentOptions& options,
                                           const ActionSet& actions);

Observation observe(const Environment& environment, std::size_t index);
// Errors: those of find_observation().
Result<Observation> observe(const Environment& environment, std::string_view name);
// Writes all values of a tensor.
void write_observation(const Environment& environment, std::size_t index, std::span<float> out);

}  // namespace foretune::loop::gym
