// The engines of the fake cuDNN: their knobs and notes, the convolutions that they accept, and
// their times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "foretune/cuda/cudnn_api.h"
#include "tests/fake_gpu/fake_conv.h"

namespace foretune::fake_gpu {

// A graph of operations: a convolution whose tensors are known by their numbers, and what follows.
struct ConvGraph {
  Conv conv;  // without pointers
  std::int64_t input = 0;
  std::int64_t weights = 0;
  std::int64_t output = 0;
  std::int64_t bias = 0;   // 0: none
  std::int64_t added = 0;  // 0: none
};

struct EngineKnob {
  std::int32_t type = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct EngineRow {
  std::int32_t index = 0;
  std::vector<EngineKnob> knobs;
  std::vector<cudnn::NumericalNote> notes;
  bool compiles = false;
};

// Type and value of knobs; others have the engine's own value.
using KnobChoices = std::vector<std::pair<std::int32_t, std::int64_t>>;

struct EngineChoice {
  std::int32_t engine = 0;
  KnobChoices knobs;
};

std::span<const EngineRow> engine_rows();
// Faults name engines by this and their index.
inline constexpr unsigned kEngineFaults = 5000;

// Returns success or the status with which the library refuses the engine for every config.
int judge_engine(const EngineRow& engine, const ConvGraph& graph);
int judge_config(const EngineRow& engine, const ConvGraph& graph, const KnobChoices& knobs);
int judge_plan(const EngineRow& engine, const KnobChoices& knobs);
// Returns true for configs that make objects whenever they are executed.
bool cannot_be_captured(const EngineRow& engine, const KnobChoices& knobs);
std::size_t workspace_of(const EngineRow& engine, const ConvGraph& graph, const KnobChoices& knobs);
double simulated_ns(const EngineRow& engine, const ConvGraph& graph, const KnobChoices& knobs);
// Returns the answers of a heuristic, best first.
std::vector<EngineChoice> engine_heuristic(cudnn::HeuristicMode mode, const ConvGraph& graph);

}  // namespace foretune::fake_gpu
