#include "tests/fake_gpu/fake_engines.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretune::fake_gpu {
namespace {

using cudnn::HeuristicMode;
using cudnn::kCompilationFailed;
using cudnn::kNotSupported;
using cudnn::kSuccess;
using cudnn::NumericalNote;

constexpr std::int32_t kTileSize = 2;
constexpr std::int32_t kStages = 14;
constexpr std::int32_t kSplit = 17;
constexpr std::int32_t kKernel = 24;
constexpr std::int32_t kOfLaterVersions = 60;
constexpr std::int64_t kBrokenKernel = 5;
constexpr std::array<double, 4> kTileRates{1.5e5, 3e5, 4e5, 2.2e5};  // flops per ns
constexpr std::array<double, 4> kTileBlocks{64.0 * 64, 128.0 * 64, 128.0 * 128, 256.0 * 128};

std::int64_t value_of(const EngineRow& engine, const KnobChoices& knobs, std::int32_t type) {
  for (const auto& [chosen, value] : knobs) {
    if (chosen == type) {
      return value;
    }
  }
  for (const EngineKnob& knob : engine.knobs) {
    if (knob.type == type) {
      return knob.low;
    }
  }
  return 1;
}

bool is_wide(DataType type) { return type == DataType::kF32; }

bool has_tensor_cores(const EngineRow& engine) {
  return std::find(engine.notes.begin(), engine.notes.end(), NumericalNote::kTensorCore) !=
         engine.notes.end();
}

}  // namespace

std::span<const EngineRow> engine_rows() {
  static const std::vector<EngineRow> rows{
      {.index = 0},
      {.index = 1,
       .knobs = {{kTileSize, 0, 3}, {kStages, 0, 2}},
       .notes = {NumericalNote::kTensorCore}},
      {.index = 2,
       .knobs = {{kTileSize, 0, 3}, {kSplit, 1, 64}},
       .notes = {NumericalNote::kTensorCore, NumericalNote::kNondeterministic}},
      {.index = 3, .knobs = {{kKernel, 0, kBrokenKernel}}, .compiles = true},
      {.index = 4, .knobs = {{kOfLaterVersions, 0, 1}}},
      {.index = 5, .notes = {NumericalNote::kWinograd}},
      {.index = 6},
  };
  return rows;
}

int judge_engine(const EngineRow& engine, const ConvGraph& graph) {
  const cuda::ConvShape& shape = graph.conv.shape;
  if (engine.index == 6) {
    return kNotSupported;  // of another device
  }
  if (engine.index == 5) {
    const bool is_three = shape.filter[0] == 1 && shape.filter[1] == 3 && shape.filter[2] == 3;
    const bool is_plain = shape.stride[1] == 1 && shape.stride[2] == 1 && shape.dilation[1] == 1 &&
                          shape.dilation[2] == 1;
    return shape.operation == 0 && is_three && is_plain ? kSuccess : kNotSupported;
  }
  return kSuccess;
}

int judge_config(const EngineRow& engine, const ConvGraph& graph, const KnobChoices& knobs) {
  const cuda::ConvShape& shape = graph.conv.shape;
  for (const auto& [type, value] : knobs) {
    const bool is_known =
        std::any_of(engine.knobs.begin(), engine.knobs.end(), [&](const EngineKnob& knob) {
          return knob.type == type && knob.low <= value && value <= knob.high;
        });
    if (!is_known) {
      return cudnn::kBadParameter;
    }
  }
  if (has_tensor_cores(engine)) {
    const std::int32_t multiple = is_wide(graph.conv.weights.type) ? 4 : 8;
    if (shape.channels_last == 0 || shape.c % multiple != 0 || shape.k % multiple != 0) {
      return kNotSupported;
    }
  }
  if (engine.index == 1 && value_of(engine, knobs, kTileSize) == 3 &&
      value_of(engine, knobs, kStages) == 2) {
    return kNotSupported;  // too much shared memory
  }
  return kSuccess;
}

int judge_plan(const EngineRow& engine, const KnobChoices& knobs) {
  if (faults().refuse.contains(kEngineFaults + static_cast<unsigned>(engine.index))) {
    return kNotSupported;
  }
  return engine.index == 3 && value_of(engine, knobs, kKernel) == kBrokenKernel ? kCompilationFailed
                                                                                : kSuccess;
}

bool cannot_be_captured(const EngineRow& engine, const KnobChoices& knobs) {
  return engine.index == 4 && value_of(engine, knobs, kOfLaterVersions) == 1;
}

std::size_t workspace_of(const EngineRow& engine, const ConvGraph& graph,
                         const KnobChoices& knobs) {
  const std::uint64_t elements = conv_result_elements(graph.conv.shape);
  if (engine.index == 5) {
    return 16 * elements;
  }
  return engine.index == 2
             ? 4 * elements * static_cast<std::size_t>(value_of(engine, knobs, kSplit))
             : 0;
}

double simulated_ns(const EngineRow& engine, const ConvGraph& graph, const KnobChoices& knobs) {
  const double flops = conv_flops(graph.conv.shape);
  switch (engine.index) {
    case 1:
    case 2: {
      const auto tile = static_cast<std::size_t>(value_of(engine, knobs, kTileSize));
      const double split =
          engine.index == 2 ? static_cast<double>(value_of(engine, knobs, kSplit)) : 1;
      const double elements = static_cast<double>(conv_result_elements(graph.conv.shape));
      const double blocks = std::ceil(elements / kTileBlocks.at(tile)) * split;
      const double waves = std::ceil(blocks / 132);
      const double of_wave = flops / blocks * 132 / kTileRates.at(tile);
      const double stages = 1.1 - 0.05 * static_cast<double>(value_of(engine, knobs, kStages));
      return 2200 + waves * of_wave * stages + (split > 1 ? 900 + split * 40 : 0);
    }
    case 3:
      return 2600 + flops / (1e5 + 2e4 * static_cast<double>(value_of(engine, knobs, kKernel)));
    case 4:
      return 2500 + flops / 4e4;
    case 5:
      return 4000 + flops / 6e4;
    default:
      return 2500 + flops / 2e4;
  }
}

std::vector<EngineChoice> engine_heuristic(HeuristicMode mode, const ConvGraph& graph) {
  std::vector<EngineChoice> answers;
  switch (mode) {
    case HeuristicMode::kA:
      answers = {{1, {{kTileSize, 2}, {kStages, 1}}},
                 {2, {{kTileSize, 1}, {kSplit, 4}}},
                 {1, {{kTileSize, 0}, {kStages, 2}}},
                 {3, {{kKernel, 2}}},
                 {0, {}}};
      break;
    case HeuristicMode::kB:
      answers = {{2, {{kTileSize, 2}, {kSplit, 2}}},
                 {1, {{kTileSize, 1}, {kStages, 2}}},
                 {5, {}},
                 {0, {}}};
      break;
    case HeuristicMode::kFallback:
      answers = {{0, {}}};
      break;
  }
  std::erase_if(answers, [&](const EngineChoice& choice) {
    const EngineRow& engine = engine_rows()[static_cast<std::size_t>(choice.engine)];
    return judge_engine(engine, graph) != kSuccess ||
           judge_config(engine, graph, choice.knobs) != kSuccess;
  });
  return answers;
}

}  // namespace foretune::fake_gpu
