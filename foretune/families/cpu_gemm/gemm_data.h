// Inputs, output and reference of one GEMM problem in f32, bf16 or i8, and the check of an output.
//
// Inputs are independent and uniform: f32 in [-1, 1), bf16 odd multiples of 2^-8 there, i8 from
// -128 to 127. Products of integers must be exact. For the other types, a computed element may
// differ from the exact one by
//
//   u * (min(k, 16) + 2) * (|a_i| * |b_j| + |bias_j|)      u = 2^-24, |x|: Euclidean norm
//
// For k <= 16 that is the bound gamma_k of Higham (Accuracy and Stability of Numerical Algorithms,
// 2002, section 3.1), true for every order of summation, with sum |a||b| <= |a_i||b_j| (Cauchy and
// Schwarz) and two more roundings for alpha and C_in. For larger k it rests on the inputs having
// mean zero: the error of a sum of k such products then grows like the norms, without a factor of k
// (Higham and Mary, Sharper probabilistic backward error analysis for basic linear algebra kernels
// with random data, 2020). Its standard deviation is about 0.41 u |a_i||b_j| here (partial sums of
// p products have the variance p/9, each rounding adds u^2/3 times that, the norms are sqrt(k/3)),
// so 16 is 39 standard deviations, while a single missing product, 1/4 on average, is beyond the
// bound up to k of ten thousand nearly always.
//
// Up to 10^9 operations all elements are compared. Above, at least 4,096 are, every row and column
// at the edge of a register block among them, and all elements take part in a check by Freivalds
// (1977) with four random sign vectors x: C x against A (B x) + bias x, row by row. Rounding errors
// e_j with independent signs x_j add up to less than the Euclidean norm of their bounds unless 39
// standard deviations are exceeded (Hoeffding 1963), which is the bound used: for f32 and bf16
//
//   u * (min(k, 16) + 2) * (|a_i| * |B| + |bias|)          |B|: Frobenius norm
//
// An error in one element changes all four products by the size of the error. So no single wrong
// element of integers escapes, and for the other types no element that is wrong by more than twice
// this bound, 3.6e-7 * k * sqrt(n) for our inputs: 0.012 at 1024 cubed, 0.15 at k 4096 and n 11008,
// where one missing product in one element stays below it in 44 % of the places that are not
// compared. Errors in several elements of a row that cancel in one vector escape all four with
// probability 1/16. A ReLU is not a linear map, so only the sample of its outputs is checked, and
// the sample is four times as large.
//
// A problem with a payload has those weights as B; A and bias are those of the problem without a
// payload. Weights have no known mean or distribution, so none of the above holds for them. Their
// bound is the smaller of two that hold for any values of B. With t = z_j + 2, where z_j counts the
// nonzero elements of column j (multiplying by zero and adding zero are exact), the first is
// Higham's,
//
//   t u / (1 - t u) * (min(|b_j|_1, |a_i||b_j|) + |bias_j|)
//
// true for every order of summation, since no |a| is above 1 and by Cauchy and Schwarz. The second
// uses that A alone is random: a sum of any of the products a_ip b_pj stays within 10 |b_j| except
// once in 10^21 (Hoeffding 1963), for any values of b. Each of up to t additions rounds such a sum,
// each product may be rounded once, and every error grows by less than a factor of 1.1 on its way:
//
//   1.1 u * (t (10 |b_j| + |bias_j|) + |b_j|_1)
//
// The first is the smaller one up to k of about 300. A missing product of average size is beyond
// the bound up to k of about 7,000, and a column or row of wrong values at any k. Both bounds get
// t 2^-149 more for the loss in subnormal numbers. In the check by sign vectors, errors within
// their bounds, whose signs are independent of those vectors, add up to less than 10 times the
// Euclidean norm of the bounds except once in 10^21 (Hoeffding again), and never to more than their
// sum: the smaller of both is allowed. All this holds up to 2^20 rows and columns of weights, for
// which double precision is exact enough as well. Larger weights are refused, and so are sums that
// might reach 2^126, since an overflow would not be a kernel's error.
//
// Thread safety: belongs to one thread. Cost: the reference is computed at the first verify(),
// which also keeps row-major copies of operands that are stored by columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/family/family.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

class GemmData final : public ProblemData {
 public:
  // Limits that tests may change; all other code uses the defaults.
  struct Limits {
    double full_check_flops = 1e9;
    // Above this size, each verify() recomputes the reference instead of keeping it.
    std::size_t kept_reference_elements = std::size_t{1} << 25U;
    std::size_t sampled_outputs = 4096;
  };

  // `weights` are the bytes of the problem's payload, if it has one; they are copied. Errors:
  // kUnsupported when the buffers do not fit into memory, and for weights whose products could not
  // be checked; those of read_gemm_weights().
  static Result<std::unique_ptr<GemmData>> create(const GemmProblem& problem, std::uint64_t seed,
                                                  const Limits& limits,
                                                  std::span<const std::byte> weights = {});
  static Result<std::unique_ptr<GemmData>> create(const GemmProblem& problem, std::uint64_t seed,
                                                  std::span<const std::byte> weights = {}) {
    return create(problem, seed, Limits(), weights);
  }

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

  [[nodiscard]] const GemmProblem& problem() const { return problem_; }
  // Return the operands; only the function for the problem's type may be called.
  [[nodiscard]] GemmOperands operands();
  [[nodiscard]] Bf16GemmOperands bf16_operands();
  [[nodiscard]] I8GemmOperands i8_operands();
  // Sets the register block of the run that fills the output, whose edges are checked.
  void set_register_block(int rows, int columns);
  // Returns the output, batch after batch, row-major and dense: m * n * batch values; for i8 the
  // bits of the i32 values.
  [[nodiscard]] std::span<float> output() { return c_.view(); }
  // Returns the largest error seen by the last verify() relative to its bound: a wrong result is
  // above 1.
  [[nodiscard]] double worst_relative_error() const { return worst_; }

 private:
  static constexpr std::size_t kSignVectors = 4;

  // An element to be compared.
  struct Position {
    std::ptrdiff_t batch = 0;
    std::ptrdiff_t row = 0;
    std::ptrdiff_t column = 0;
  };

  GemmData(const GemmProblem& problem, const Limits& limits) : problem_(problem), limits_(limits) {}
  [[nodiscard]] bool has_relu() const { return problem_.operation() == GemmOperation::kAddmmRelu; }
  [[nodiscard]] bool is_integer() const { return problem_.dtype() == DataType::kI8; }
  [[nodiscard]] bool has_weights() const { return !problem_.payload().is_zero(); }
  [[nodiscard]] double value_at(std::ptrdiff_t position) const;
  template <class Element, class Sum>
  [[nodiscard]] BasicGemmOperands<Element, Sum> operands_as(const AlignedBuffer& a,
                                                            const AlignedBuffer& b,
                                                            const std::vector<Sum>& bias);
  void fill(std::uint64_t seed);
  Status take_weights(std::span<const std::byte> weights);
  void encode();
  void make_row_major();
  void compute_norms();
  // Returns the bound of the rounding errors relative to the norms.
  [[nodiscard]] double rounding() const;
  [[nodiscard]] double bound(std::ptrdiff_t batch, std::ptrdiff_t row, std::ptrdiff_t column) const;
  [[nodiscard]] double bound_with_weights(std::ptrdiff_t row, std::ptrdiff_t column) const;
  // Returns the bound of the sum of a row's rounding errors, with signs.
  [[nodiscard]] double bound_of_signs_with_weights(std::ptrdiff_t row) const;
  [[nodiscard]] Support compare(const Position& position, double expected);
  void reference_rows(std::ptrdiff_t batch, std::ptrdiff_t first, std::ptrdiff_t rows,
                      double* out) const;
  [[nodiscard]] Support verify_all();
  [[nodiscard]] Support verify_sampled();
  [[nodiscard]] Support verify_by_signs();
  void compute_signs();
  [[nodiscard]] std::vector<Position> sampled_positions();
  [[nodiscard]] double exact(const Position& position, std::span<const double> column) const;

  GemmProblem problem_;
  Limits limits_;
  AlignedBuffer a_;  // values of every type as floats, which hold them exactly
  AlignedBuffer b_;
  AlignedBuffer c_;          // 32 bits per element in every type
  AlignedBuffer encoded_a_;  // A and B in their own type when that is not f32
  AlignedBuffer encoded_b_;
  std::vector<float> bias_;                 // n values for addmm, else empty
  std::vector<std::int32_t> integer_bias_;  // the same for i8
  const float* a_rows_ = nullptr;           // A and B row-major: themselves or the copies below
  const float* b_rows_ = nullptr;
  std::vector<float> a_copy_;
  std::vector<float> b_copy_;
  std::vector<double> a_norms_;    // [batch * m]
  std::vector<double> b_norms_;    // [batch * n]
  std::vector<double> bias_abs_;   // [n]
  std::vector<double> b_sums_;     // with weights, [n]: sum of the magnitudes of a column
  std::vector<double> b_counts_;   // with weights, [n]: how many of them are not zero
  std::vector<double> reference_;  // without bias; empty until needed, or never kept
  std::vector<double> signs_;      // [n * kSignVectors], +1 or -1
  std::vector<double> sign_sums_;  // A (B x) + bias x: [batch * m * kSignVectors]
  int block_rows_ = 1;
  int block_columns_ = 1;
  double worst_ = 0;
  Rng rng_{0};
};

}  // namespace foretune
