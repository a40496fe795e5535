// A neural cost model ready for inference, free of the framework that trained it: batch
// normalisation is folded into the layers, dropout is gone, and the inputs say how they are
// computed from a feature table.
//
//   chain       inputs -> layers -> one number per candidate
//   two towers  p = layers(inputs of the problem), c = config_layers(inputs of the config), and
//               score = p[0, d) . c[0, d)  +  sum over h of interaction[h] * max(0, p[d + h] + c[d
//               + h])
//               + c[d + h...], so that the config's side is computed once per pool and a query
//               costs a dot product and a small network over sums
//
// Every sum is one chain of fused multiply-adds per output, in the order of the inputs, with every
// instruction set. So all CPUs give the same bits. Layers with weights of 8 bits sum exactly
// (network_int8.h).
//
// Thread safety: plain data. Cost: predict_reference() makes one scalar pass; network_scorer.h has
// the fast evaluation.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/distilled/distilled_model.h"
#include "foretune/problem/problem.h"

namespace foretune {

// Stored in files: never renumber.
enum class InputTransform : std::uint8_t {
  kIdentity = 0,
  kLog = 1,        // ln(max(x, 1e-30))
  kSignedLog = 2,  // sign(x) ln(1 + |x|)
  kEquals = 3,     // 1 where x is `value`, else 0
};
double transformed(InputTransform transform, double parameter, double x);

// The network sees float((transformed(x) - mean) * inverse_std), computed in double precision. It
// sees a missing number (NaN) as 0, like the mean.
struct NetworkInput {
  std::uint16_t column = 0;  // of the feature table
  InputTransform transform = InputTransform::kIdentity;
  double value = 0;  // of kEquals
  double mean = 0;
  double inverse_std = 1;
  [[nodiscard]] float of(double x) const {
    const auto seen = static_cast<float>((transformed(transform, value, x) - mean) * inverse_std);
    return std::isnan(x) ? 0 : seen;
  }
  bool operator==(const NetworkInput&) const = default;
};

// distilled_feature_value() / 4096.
double distilled_feature_units(const DistilledFeature& feature,
                               std::span<const std::int64_t> fields);
// The network sees float((distilled_feature_units() - mean) * inverse_std).
struct FieldInput {
  DistilledFeature feature;  // without its own mean and scale
  double mean = 0;
  double inverse_std = 1;
  [[nodiscard]] float of(std::span<const std::int64_t> fields) const {
    return static_cast<float>((distilled_feature_units(feature, fields) - mean) * inverse_std);
  }
  bool operator==(const FieldInput&) const = default;
};

// y = x W + bias, then the skip connection is added (the values that entered the layer before this
// one), then max(0, y) if rectified, then y * scale + shift where there is a scale. W is `weights`,
// or `int8_weights` times the input's scale and the output's step.
struct DenseLayer {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  bool is_rectified = false;
  bool adds_skip = false;
  std::vector<float> weights;             // `outputs` for each input, input by input
  std::vector<std::int8_t> int8_weights;  // in the same order, instead of `weights`
  std::vector<float> input_scales;        // of int8_weights: one for each input
  std::vector<float> steps;               // of int8_weights: one for each output
  std::vector<float> bias;
  std::vector<float> scale;  // empty: none
  std::vector<float> shift;
  [[nodiscard]] bool is_int8() const { return !int8_weights.empty(); }
  bool operator==(const DenseLayer&) const = default;
};

struct Network {
  static constexpr std::size_t kMaxInputs = 4096;
  static constexpr std::size_t kMaxWidth = 4096;
  static constexpr std::size_t kMaxLayers = 256;

  std::string architecture;  // "standard", "deep", "two-tower", ...: for people
  // Ordered by the kinds of their columns: first `problem_inputs` of the problem, then
  // `config_inputs` of the config, then those of both. Two towers have none of both.
  std::vector<NetworkInput> inputs;
  std::uint32_t problem_inputs = 0;
  std::uint32_t config_inputs = 0;
  // Further inputs from the problem's fields alone. In the first layer they follow those of the
  // problem's columns.
  std::vector<FieldInput> field_inputs;
  std::vector<DenseLayer> layers;         // of the chain, or of the problem's tower
  std::vector<DenseLayer> config_layers;  // of the config's tower; empty for a chain
  std::vector<float> interaction;         // one weight for each hidden unit between the towers
  bool has_least = false;                 // then the score is ln(exp(score) + exp(least))
  float least = 0;

  [[nodiscard]] bool has_towers() const { return !config_layers.empty(); }
  // Number of inputs of the first layer that depend on the problem alone.
  [[nodiscard]] std::size_t problem_width() const { return problem_inputs + field_inputs.size(); }
  // Length of the towers' dot product. In the config's tower one more number follows the dot
  // product and the interaction: the config's own term.
  [[nodiscard]] std::size_t dot_length() const;

  // Both fail unless the parts fit each other; the second also checks that they fit the table.
  // get_network() returns networks that pass the first. `fields` is the number of fields of a
  // problem.
  [[nodiscard]] Status validate() const;
  [[nodiscard]] Status validate(const FeatureTable& table, std::size_t fields) const;
  bool operator==(const Network&) const = default;
};

// Returns the score for an output of the last layer.
double above_least(const Network& network, float value);

// The slow, obviously right evaluation. It gives the same bits as the fast one. `row` is a full row
// of the feature table, `fields` are the problem's.
double predict_reference(const Network& network, std::span<const double> row,
                         std::span<const std::int64_t> fields);

void put_network(ByteWriter& writer, const Network& network);
Result<Network> get_network(ByteReader& reader);

}  // namespace foretune
