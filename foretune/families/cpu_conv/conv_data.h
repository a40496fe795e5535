// Random operands of a convolution, and the judgement of a result. Operands of f32 are multiples of
// 2^-23 in [-1, 1), those of bf16 odd multiples of 2^-8 there, those of i8 all integers. Integers
// must be exact (conv_values.h). An element of f32 is right when it differs from the exact one
// (conv_reference.h) by at most
//
//   u (min(t, 16) + 4) |a| |b| + u (|bias| + |addend|)      u = 2^-24, t products, |.| Euclidean
//
// with a and b the two vectors whose inner product it is; families/cpu_gemm/gemm_data.h explains
// why. One of bf16 may differ by 2^-8 of its size more. Up to 2 * 10^9 operations of a problem all
// elements are compared. Above, 4,096 drawn ones are, and all elements take part in a check by four
// random sign vectors over the channels that an element's operand does not share (Freivalds 1977):
// the sum of a point's channels, each with its sign, is itself a convolution with one channel for
// each group. Winograd's algorithm has wider bounds (expect_tiles()).
//
// Thread safety: belongs to one thread. Cost: the reference is computed at the first verify() and
// kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/families/cpu_conv/conv_reference.h"
#include "foretune/families/cpu_conv/conv_values.h"
#include "foretune/families/cpu_conv/quantization.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/family/family.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/output_stage.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cpu_conv {

class ConvData final : public ProblemData {
 public:
  // Limits that tests may change; all other code uses the defaults.
  struct Limits {
    double full_check_flops = 2e9;
    std::size_t sampled_outputs = 4096;
    // Integers that other libraries take as well: inputs from 0 to 127 and zeros that are 0.
    bool has_plain_integers = false;
  };
  // Errors: kUnsupported for types other than f32, bf16 and i8, and where memory is short.
  static Result<std::unique_ptr<ConvData>> create(const ConvProblem& problem, std::uint64_t seed,
                                                  const Limits& limits);

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

  [[nodiscard]] const ConvProblem& problem() const { return problem_; }
  // The operands of a forward pass or a gradient of the input.
  [[nodiscard]] ConvOperands operands();
  // Return the three tensors of the forward pass, in the shapes of the problem. Elements of other
  // types are passed as if they were floats.
  [[nodiscard]] float* input() { return stored(input_); }
  [[nodiscard]] float* weights() { return stored(weights_); }
  [[nodiscard]] float* output() { return stored(output_); }
  // Returns the zeros and scales of integers.
  [[nodiscard]] const ConvQuantization& quantization() const { return quantization_; }
  [[nodiscard]] WeightGradientOperands gradient_operands();
  // Returns the tensor that is computed, as words: the last one may be of fewer elements.
  [[nodiscard]] std::span<float> result();
  // Says that the result is computed by Winograd's algorithm with tiles of `points` x `points`
  // outputs, or with 0 that it is not. Its bounds are those of the tile: the input's norm is that
  // of all points that the tile reads, and they are larger by a factor that measurements justify
  // (docs/guides/convolutions.md).
  void expect_tiles(int points);
  // Returns the largest error of the last verify() relative to its bound.
  [[nodiscard]] double worst_relative_error() const { return worst_; }

 private:
  static constexpr std::size_t kSignVectors = 4;
  // Elements of the result by row (a point of a group; of a gradient of weights, a value of its
  // filters) and channel within the group.
  struct Shape {
    std::size_t rows = 0;
    std::size_t channels = 0;
    std::size_t points = 1;  // with channels first: points of an output, or of a computed input
  };
  // The exact result in part or as a whole, and what its bounds need.
  struct Reference {
    std::vector<double> exact;    // without an epilogue; of all elements or, above the limit, empty
    std::vector<double> shared;   // [row]: squared norm of the operand that its channels share
    std::vector<double> by_tile;  // as `shared`, of whole tiles; empty without them
    std::vector<double> own;      // [group * channels]: squared norm of a channel's operand
    std::vector<double> signs[kSignVectors];  // NOLINT(*-avoid-c-arrays) [group * channels]
    std::vector<double> sums[kSignVectors];   // NOLINT(*-avoid-c-arrays) [row]
  };

  // A tensor's values, which floats hold exactly, and its elements where they are not floats.
  struct Tensor {
    AlignedBuffer values;
    AlignedBuffer elements;
    [[nodiscard]] std::span<const float> view() const { return values.view(); }
    [[nodiscard]] std::size_t size() const { return values.size(); }
  };
  static float* stored(Tensor& tensor) {
    return tensor.elements.size() > 0 ? tensor.elements.data() : tensor.values.data();
  }

  ConvData(const ConvProblem& problem, const Limits& limits);
  Status draw(Tensor& tensor, std::int64_t count, OutputType type, Rng& rng);
  void draw_quantization(Rng& rng);
  [[nodiscard]] Tensor& computed();
  [[nodiscard]] double found(std::size_t place);
  // Returns true when an element still holds what poison() wrote.
  [[nodiscard]] bool is_poisoned(std::size_t place);
  // Returns true when the result is no linear function of the operands, so that sums of it with
  // signs say nothing.
  [[nodiscard]] bool is_rounded() const { return has_relu() || result_type_ != sum_type_; }
  [[nodiscard]] bool has_bias() const { return problem_.epilogue() != ConvEpilogue::kNone; }
  [[nodiscard]] bool has_relu() const {
    return problem_.epilogue() == ConvEpilogue::kBiasRelu || has_addend();
  }
  [[nodiscard]] bool has_addend() const {
    return problem_.epilogue() == ConvEpilogue::kBiasAddRelu;
  }
  [[nodiscard]] std::size_t group_of(std::size_t row) const;
  // Returns true when a row's point of the output is not computed.
  [[nodiscard]] bool is_skipped(std::size_t row) const;
  [[nodiscard]] std::size_t element(std::size_t row, std::size_t channel) const;
  // Returns how far the channels of the operand that they do not share lie apart.
  [[nodiscard]] std::size_t own_distance() const;
  // Returns the result of the convolution with one channel for each group, whose operand is the sum
  // of the channels' operands, each times its factor.
  [[nodiscard]] std::vector<double> combined(std::span<const double> shared,
                                             std::span<const double> factors) const;
  void compute_reference();
  [[nodiscard]] std::vector<double> shared_by_tiles() const;
  // Returns the squared norm of the operand that a row's channels share, or a bound of its tile's.
  [[nodiscard]] double shared_norm(std::size_t row) const {
    return tile_points_ == 0 ? reference_->shared[row] : reference_->by_tile[row];
  }
  [[nodiscard]] double bound(double shared, double own) const;
  [[nodiscard]] Support compare(std::size_t row, std::size_t channel, double exact);
  [[nodiscard]] Support compare_signs();
  [[nodiscard]] double exact_element(std::size_t row, std::size_t channel) const;
  [[nodiscard]] std::int64_t input_point(std::int64_t out, std::int64_t filter) const;
  [[nodiscard]] std::int64_t output_point(std::int64_t in, std::int64_t filter) const;

  ConvProblem problem_;
  Limits limits_;
  double terms_;  // roundings of an element, for its bound
  std::uint64_t seed_ = 0;
  Tensor input_;
  Tensor weights_;
  Tensor output_;
  Tensor bias_;
  Tensor addend_;
  ConvQuantization quantization_;
  std::vector<float> scales_;
  OutputType result_type_ = OutputType::kF32;
  OutputType sum_type_ = OutputType::kF32;
  Shape shape_;
  std::unique_ptr<Reference> reference_;
  int tile_points_ = 0;
  double worst_ = 0;
};

}  // namespace foretune::cpu_conv
