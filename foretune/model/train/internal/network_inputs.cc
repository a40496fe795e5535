#include "foretune/model/train/internal/network_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>

#include "foretune/problem/problem_type.h"

namespace foretune::train_internal {
namespace {

// Heights and widths of the register blocks and tiles of many kernels.
constexpr std::array<std::int32_t, 8> kBlocks{6, 8, 14, 16, 32, 64, 128, 256};
constexpr std::array<std::int32_t, 5> kTileSides{16, 32, 64, 128, 256};
// Columns with at most this many values also get an input for each value.
constexpr std::size_t kMaxValues = 12;
// Numbers that span more than this factor become logarithms.
constexpr double kWideRange = 20;

// The values of the examples in one column.
struct ColumnFacts {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool is_missing = false;  // in some example
  std::set<double> values;  // at most kMaxValues + 1 of them
};

// Returns by problem whether its rows may influence the inputs.
std::vector<bool> seen_problems(std::size_t problems, const InputOptions& options) {
  std::vector<bool> out(problems, true);
  for (std::size_t i = 0; options.held_out_fold && i < problems; ++i) {
    out[i] = options.fold_of_problem[i] != *options.held_out_fold;
  }
  return out;
}

std::vector<ColumnFacts> column_facts(const TrainingSet& set, const std::vector<bool>& is_seen) {
  std::vector<ColumnFacts> out(set.matrix.columns);
  for (std::size_t i = 0; i < set.matrix.values.size(); ++i) {
    if (!is_seen[set.problem[i / set.matrix.columns]]) {
      continue;
    }
    ColumnFacts& facts = out[i % set.matrix.columns];
    const double value = set.matrix.values[i];
    if (std::isnan(value)) {
      facts.is_missing = true;
      continue;
    }
    facts.low = std::min(facts.low, value);
    facts.high = std::max(facts.high, value);
    if (facts.values.size() <= kMaxValues) {
      facts.values.insert(value);
    }
  }
  return out;
}

InputTransform transform_of(const ColumnFacts& facts) {
  if (facts.low > 0) {
    return facts.high > kWideRange * facts.low ? InputTransform::kLog : InputTransform::kIdentity;
  }
  return std::max(std::fabs(facts.low), std::fabs(facts.high)) > kWideRange
             ? InputTransform::kSignedLog
             : InputTransform::kIdentity;
}

void add_inputs(const FeatureInfo& info, std::size_t column, const ColumnFacts& facts,
                bool transforms, std::vector<NetworkInput>& out) {
  const auto position = static_cast<std::uint16_t>(column);
  const bool has_few = facts.values.size() <= kMaxValues;
  if (!info.is_categorical || !has_few) {
    out.push_back({.column = position,
                   .transform = transforms ? transform_of(facts) : InputTransform::kIdentity});
  }
  if (has_few && (info.is_categorical || info.kind == FeatureKind::kConfig) &&
      facts.values.size() > 2) {
    for (const double value : facts.values) {
      out.push_back({.column = position, .transform = InputTransform::kEquals, .value = value});
    }
  } else if (has_few && info.is_categorical) {
    out.push_back(
        {.column = position, .transform = InputTransform::kEquals, .value = *facts.values.begin()});
  }
}

bool varies(const DistilledFeature& feature, const Dataset& dataset,
            const std::vector<bool>& is_seen) {
  std::optional<std::int64_t> first;
  for (std::size_t i = 0; i < is_seen.size(); ++i) {
    if (is_seen[i]) {
      const std::int64_t value = distilled_feature_value(feature, dataset.problems()[i].fields());
      if (value != first.value_or(value)) {
        return true;
      }
      first = value;
    }
  }
  return false;
}

// Multiplies the network's output by `scale` and adds `offset`.
void scale_output(Network& network, double scale, double offset) {
  const auto scaled = [scale](float value) {
    return static_cast<float>(static_cast<double>(value) * scale);
  };
  DenseLayer& last = network.has_towers() ? network.config_layers.back() : network.layers.back();
  const std::size_t hidden = network.interaction.size();
  const std::size_t dot = network.has_towers() ? last.outputs - 1 - hidden : 0;
  for (std::size_t o = 0; o < last.outputs; ++o) {
    // The inputs of the interaction between the towers keep their scale.
    if (o >= dot && o + 1 < last.outputs) {
      continue;
    }
    for (std::size_t k = 0; k < last.inputs; ++k) {
      float& weight = last.weights[k * last.outputs + o];
      weight = scaled(weight);
    }
    last.bias[o] = scaled(last.bias[o]);
  }
  last.bias.back() = static_cast<float>(static_cast<double>(last.bias.back()) + offset);
  for (float& weight : network.interaction) {
    weight = scaled(weight);
  }
}

}  // namespace

std::vector<DistilledFeature> field_features(ProblemType type, const Hardware& hardware,
                                             std::span<const std::int32_t> tiles) {
  const ProblemSchema& schema = *find_problem_schema(type);
  std::vector<DistilledFeature> out;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const auto field = static_cast<std::uint8_t>(i);
    const auto add = [&](DistilledFeatureKind kind, std::int32_t block) {
      out.push_back({.kind = kind, .field = field, .block = block});
    };
    for (std::size_t label = 0; label < schema.fields[i].labels.size(); ++label) {
      add(DistilledFeatureKind::kLabel, static_cast<std::int32_t>(label));
    }
    if (schema.fields[i].labels.empty()) {
      add(DistilledFeatureKind::kLog2, 1);
      for (const std::int32_t block : kBlocks) {
        add(DistilledFeatureKind::kUse, block);
      }
    }
  }
  const double cores = hardware.get(HardwareValue::kCores);
  const std::optional<ResultGrid>& grid = find_problem_type(type)->result_grid;
  if (grid && cores >= 1) {
    for (const std::int32_t rows : tiles) {
      for (const std::int32_t columns : tiles) {
        for (const DistilledFeatureKind kind :
             {DistilledFeatureKind::kWaveUse, DistilledFeatureKind::kWaves}) {
          out.push_back({.kind = kind,
                         .field = static_cast<std::uint8_t>(grid->rows),
                         .block = rows,
                         .other = static_cast<std::uint8_t>(grid->columns),
                         .other_block = columns,
                         .repeat = static_cast<std::uint8_t>(grid->repeat),
                         .places = static_cast<std::int32_t>(cores)});
        }
      }
    }
  }
  return out;
}

Network make_inputs(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                    const InputOptions& options) {
  const std::vector<bool> is_seen = seen_problems(dataset.problems().size(), options);
  const std::vector<ColumnFacts> facts = column_facts(set, is_seen);
  Network out;
  for (std::size_t column = 0; column < facts.size(); ++column) {
    const FeatureInfo& info = table.columns()[column];
    const bool is_left_out = std::find(set.matrix.left_out.begin(), set.matrix.left_out.end(),
                                       column) != set.matrix.left_out.end();
    const bool is_of_both = info.kind == FeatureKind::kInteraction;
    if (!is_left_out && facts[column].low < facts[column].high && !facts[column].is_missing &&
        !(is_of_both && options.has_towers)) {
      add_inputs(info, column, facts[column], options.transforms, out.inputs);
    }
    if (info.kind == FeatureKind::kProblem) {
      out.problem_inputs = static_cast<std::uint32_t>(out.inputs.size());
    }
    if (!is_of_both) {
      out.config_inputs = static_cast<std::uint32_t>(out.inputs.size()) - out.problem_inputs;
    }
  }
  if (options.has_towers) {
    const DatasetHeader& header = dataset.header();
    const std::vector<DistilledFeature> features =
        field_features(header.problem_type, header.fingerprint.hardware, kTileSides);
    for (const DistilledFeature& feature : features) {
      if (varies(feature, dataset, is_seen)) {
        out.field_inputs.push_back({.feature = feature});
      }
    }
    // With a single problem nothing varies, but its tower needs an input.
    if (out.problem_width() == 0) {
      out.field_inputs.push_back({.feature = features.front()});
    }
  }
  return out;
}

NetworkRows make_rows(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                      const Network& inputs, std::span<const std::uint32_t> fold_of_problem,
                      GroupKey key) {
  NetworkRows out;
  out.example.resize(set.size());
  std::iota(out.example.begin(), out.example.end(), 0U);
  std::stable_sort(out.example.begin(), out.example.end(), [&](std::uint32_t a, std::uint32_t b) {
    return set.problem[a] < set.problem[b];
  });
  TrainingRows& rows = out.rows;
  rows.problem_columns = static_cast<std::uint32_t>(inputs.problem_width());
  rows.config_columns = inputs.config_inputs;
  rows.interaction_columns = static_cast<std::uint32_t>(inputs.inputs.size()) -
                             inputs.problem_inputs - inputs.config_inputs;
  const auto columns = static_cast<std::size_t>(table.columns().size());
  std::unordered_map<std::uint64_t, std::uint32_t> groups;
  std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t example : out.example) {
    const std::uint32_t problem = set.problem[example];
    if (problem != last) {
      rows.fold.push_back(fold_of_problem[problem]);
      const std::uint64_t group = group_of(dataset.problems()[problem], key);
      rows.group.push_back(
          groups.emplace(group, static_cast<std::uint32_t>(groups.size())).first->second);
      last = problem;
    }
    const double* const values = set.matrix.values.data() + example * columns;
    const auto add = [&](const NetworkInput& input) {
      rows.inputs.push_back(input.of(values[input.column]));
    };
    const std::span<const NetworkInput> all(inputs.inputs);
    std::for_each_n(all.begin(), inputs.problem_inputs, add);
    for (const FieldInput& input : inputs.field_inputs) {
      rows.inputs.push_back(input.of(dataset.problems()[problem].fields()));
    }
    std::for_each(all.begin() + inputs.problem_inputs, all.end(), add);
    rows.problem.push_back(static_cast<std::uint32_t>(rows.fold.size()) - 1);
    rows.log_time.push_back(set.log_time[example]);
    rows.relative.push_back(set.relative[example]);
    rows.weight.push_back(set.weight[example]);
    rows.censored.push_back(set.censored[example] ? 1 : 0);
  }
  return out;
}

Result<Network> with_statistics(const Network& inputs, const TrainedNetwork& trained) {
  Network out = inputs;
  std::size_t column = 0;
  const auto standardise = [&](auto& input) {
    input.mean = trained.mean[column];
    input.inverse_std = trained.inverse_std[column];
    ++column;
  };
  if (trained.mean.size() != inputs.inputs.size() + inputs.field_inputs.size()) {
    return fail(ErrorCode::kMismatch, "the trained network has ", trained.mean.size(),
                " inputs instead of ", inputs.inputs.size() + inputs.field_inputs.size());
  }
  for (std::size_t i = 0; i < inputs.problem_inputs; ++i) {
    standardise(out.inputs[i]);
  }
  for (FieldInput& input : out.field_inputs) {
    standardise(input);
  }
  for (std::size_t i = inputs.problem_inputs; i < out.inputs.size(); ++i) {
    standardise(out.inputs[i]);
  }
  return out;
}

Result<Network> make_network(const Network& inputs, const TrainedNetwork& trained) {
  FORETUNE_TRY(Network out, with_statistics(inputs, trained));
  FORETUNE_TRY(out.layers, fold_layers(trained.layers));
  if (!trained.config_layers.empty()) {
    FORETUNE_TRY(out.config_layers, fold_layers(trained.config_layers));
  }
  out.interaction = trained.interaction;
  FORETUNE_TRY_STATUS(out.validate());
  scale_output(out, trained.scale, trained.offset);
  FORETUNE_TRY_STATUS(out.validate());
  return out;
}

}  // namespace foretune::train_internal
