#include "foretune/space/schemas/cudnn.h"

#include <algorithm>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, 4> kCudnnHeuristics{"none", "a", "b", "fallback"};
constexpr std::size_t kCudnnFirstKnob = 3;
constexpr std::size_t kCudnnFirstOther = kCudnnFirstKnob + kCudnnKnobs.size();
constexpr std::size_t kCudnnWords = kCudnnFirstOther + 2 * kCudnnOtherKnobs;

std::uint64_t cudnn_schema_id() {
  static const std::uint64_t kId = cudnn_schema().id();
  return kId;
}

const CudnnKnob* find_cudnn_knob(std::int32_t type) {
  const auto* const found = std::find_if(kCudnnKnobs.begin(), kCudnnKnobs.end(),
                                         [&](const CudnnKnob& knob) { return knob.type == type; });
  return found == kCudnnKnobs.end() ? nullptr : found;
}

// Checks what a rank leaves to the library.
Status check_cudnn_rank(const CudnnConfig& config) {
  CudnnConfig bare;
  bare.heuristic = config.heuristic;
  bare.rank = config.rank;
  if (config.rank < 1 || config.rank > kCudnnMaxRank) {
    return fail(ErrorCode::kInvalidArgument, "a rank of a heuristic is from 1 to ", kCudnnMaxRank,
                ", not ", config.rank);
  }
  return config == bare ? Status()
                        : fail(ErrorCode::kInvalidArgument,
                               "a rank of a heuristic leaves everything else to the library (-1)");
}

Status check_cudnn_engine(const CudnnConfig& config) {
  if (config.rank != 0) {
    return fail(ErrorCode::kInvalidArgument, "a rank needs a heuristic");
  }
  if (config.engine < 0) {
    return fail(ErrorCode::kInvalidArgument, "neither a heuristic nor an engine is named");
  }
  std::int32_t last = CudnnConfig::kDefault;
  bool is_over = false;
  for (const CudnnConfig::Other& other : config.others) {
    if (other.type == CudnnConfig::kDefault && other.value == CudnnConfig::kDefault) {
      is_over = true;
      continue;
    }
    if (is_over || other.type <= last || other.value < 0 ||
        find_cudnn_knob(other.type) != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "other knobs are given by ascending types without a position of their own, each "
                  "with a value from 0");
    }
    last = other.type;
  }
  return {};
}

}  // namespace

std::string_view to_string(CudnnHeuristic heuristic) {
  return kCudnnHeuristics.at(static_cast<std::size_t>(heuristic));
}

const ConfigSchema& cudnn_schema() {
  static const ConfigSchema kSchema = [] {
    ConfigSchema schema{.name = "cudnn", .version = 1, .kind = SchemaKind::kParametric};
    schema.parameters.push_back({"heuristic", {kCudnnHeuristics.begin(), kCudnnHeuristics.end()}});
    schema.parameters.push_back({"rank", {}});
    schema.parameters.push_back({"engine", {}});
    for (const CudnnKnob& knob : kCudnnKnobs) {
      schema.parameters.push_back({std::string(knob.name), {}});
    }
    for (std::size_t i = 1; i <= kCudnnOtherKnobs; ++i) {
      schema.parameters.push_back({concat("other", i), {}});
      schema.parameters.push_back({concat("other", i, "_value"), {}});
    }
    return schema;
  }();
  return kSchema;
}

CudnnConfig CudnnConfig::ranked(CudnnHeuristic heuristic, std::int32_t rank) {
  CudnnConfig config;
  config.heuristic = heuristic;
  config.rank = rank;
  return config;
}

CudnnConfig CudnnConfig::of_engine(std::int32_t engine) {
  CudnnConfig config;
  config.engine = engine;
  return config;
}

std::int32_t CudnnConfig::knob(std::int32_t type) const {
  std::int32_t found = kDefault;
  for_each_knob([&](std::int32_t each, std::int32_t value) {
    if (each == type) {
      found = value;
    }
  });
  return found;
}

bool CudnnConfig::set_knob(std::int32_t type, std::int32_t value) {
  if (const CudnnKnob* const known = find_cudnn_knob(type)) {
    knobs.at(static_cast<std::size_t>(known - kCudnnKnobs.data())) = value;
    return true;
  }
  auto* place = std::find_if(others.begin(), others.end(),
                             [&](const Other& other) { return other.type == type; });
  if (place == others.end()) {
    place = std::find_if(others.begin(), others.end(),
                         [](const Other& other) { return other.type == kDefault; });
  }
  if (place == others.end()) {
    return false;
  }
  *place = value == kDefault ? Other{} : Other{type, value};
  // Free pairs stand at the end.
  std::sort(others.begin(), others.end(), [](const Other& a, const Other& b) {
    return static_cast<std::uint32_t>(a.type) < static_cast<std::uint32_t>(b.type);
  });
  return true;
}

Result<CudnnConfig> CudnnConfig::from(const Config& config) {
  if (config.schema != cudnn_schema_id() || config.words.size() != kCudnnWords) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema cudnn");
  }
  for (std::size_t i = 0; i < kCudnnWords; ++i) {
    const std::int32_t least = i < 2 ? 0 : kDefault;
    if (config.words[i] < least) {
      return fail(ErrorCode::kInvalidArgument, cudnn_schema().parameters[i].name, " is below ",
                  least, ": ", config.words[i]);
    }
  }
  if (config.words[0] >= static_cast<std::int32_t>(kCudnnHeuristics.size())) {
    return fail(ErrorCode::kInvalidArgument, "there is no heuristic ", config.words[0]);
  }
  CudnnConfig out;
  out.heuristic = static_cast<CudnnHeuristic>(config.words[0]);
  out.rank = config.words[1];
  out.engine = config.words[2];
  for (std::size_t i = 0; i < out.knobs.size(); ++i) {
    out.knobs.at(i) = config.words[kCudnnFirstKnob + i];
  }
  for (std::size_t i = 0; i < kCudnnOtherKnobs; ++i) {
    out.others.at(i) = {config.words[kCudnnFirstOther + 2 * i],
                        config.words[kCudnnFirstOther + 2 * i + 1]};
  }
  FORETUNE_TRY_STATUS(out.heuristic == CudnnHeuristic::kNone ? check_cudnn_engine(out)
                                                             : check_cudnn_rank(out));
  return out;
}

Config CudnnConfig::to_config() const {
  Config config{.schema = cudnn_schema_id(), .words = {}};
  config.words.push_back(static_cast<std::int32_t>(heuristic));
  config.words.push_back(rank);
  config.words.push_back(engine);
  for (const std::int32_t value : knobs) {
    config.words.push_back(value);
  }
  for (const Other& other : others) {
    config.words.push_back(other.type);
    config.words.push_back(other.value);
  }
  return config;
}

}  // namespace foretune
