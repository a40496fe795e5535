#include "foretune/families/cpu_gemm/gemm_data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "foretune/families/cpu_gemm/gemm_reference.h"
#include "foretune/problem/gemm/gemm_weights.h"

namespace foretune {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
// A quiet NaN with a payload of its own.
constexpr std::uint32_t kPoison = 0x7fc0f0e7U;
constexpr double kMaxBytes = 0x1p40;
// The bounds of products with weights hold up to here.
constexpr std::int64_t kMaxWeightRows = std::int64_t{1} << 20U;
constexpr double kMaxWeightSum = 0x1p126;
// Deviations that a sum of random signs is allowed.
constexpr double kDeviations = 10;
// Twice what rounding to a subnormal number may lose.
constexpr double kUnderflow = 0x1p-149;

constexpr std::uint64_t kInputStream = 1;
constexpr std::uint64_t kCheckStream = 2;

std::size_t index(std::ptrdiff_t value) { return static_cast<std::size_t>(value); }

// Two values from 64 random bits, each of 24 bits: all multiples of 2^-23 in [-1, 1).
void fill_uniform(std::span<float> values, Rng& rng) {
  const auto value = [](std::uint64_t bits) {
    return static_cast<float>(static_cast<std::int32_t>(bits & 0xffffffU) - (1 << 23)) * 0x1p-23F;
  };
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    const std::uint64_t bits = rng.next();
    values[i] = value(bits >> 40U);
    values[i + 1] = value(bits >> 8U);
  }
  if (i < values.size()) {
    values[i] = value(rng.next() >> 40U);
  }
}

// 0, the last, and both sides of each multiple of `block` below `size`.
std::vector<std::ptrdiff_t> edges(std::ptrdiff_t size, std::ptrdiff_t block) {
  std::vector<std::ptrdiff_t> out{0};
  for (std::ptrdiff_t i = block; i < size; i += block) {
    if (out.back() != i - 1) {
      out.push_back(i - 1);
    }
    out.push_back(i);
  }
  if (out.back() != size - 1) {
    out.push_back(size - 1);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<GemmData>> GemmData::create(const GemmProblem& problem, std::uint64_t seed,
                                                   const Limits& limits,
                                                   std::span<const std::byte> weights) {
  if (!BlockedGemm::multiplies(problem.dtype())) {
    return fail(ErrorCode::kUnsupported, "there are no data of ", to_string(problem.dtype()),
                " here, only of f32, bf16 and i8");
  }
  // Also keeps the products of sizes below within 64 bits.
  if (problem.bytes() > kMaxBytes) {
    return fail(ErrorCode::kUnsupported, "the operands take more than 1 TiB");
  }
  std::unique_ptr<GemmData> data(new GemmData(problem, limits));
  const std::int64_t batch = problem.batch();
  FORETUNE_TRY(data->a_, AlignedBuffer::create(index(batch * problem.m() * problem.k())));
  FORETUNE_TRY(data->b_, AlignedBuffer::create(index(batch * problem.k() * problem.n())));
  FORETUNE_TRY(data->c_, AlignedBuffer::create(index(batch * problem.m() * problem.n())));
  if (has_bias(problem.operation())) {
    data->bias_.resize(index(problem.n()));
  }
  data->fill(seed);
  if (data->has_weights()) {
    FORETUNE_TRY_STATUS(data->take_weights(weights));
  }
  if (problem.dtype() != DataType::kF32) {
    const std::size_t element_bytes = data->is_integer() ? 1 : 2;
    const auto words = [&](const AlignedBuffer& values) {
      return (values.size() * element_bytes + sizeof(float) - 1) / sizeof(float);
    };
    FORETUNE_TRY(data->encoded_a_, AlignedBuffer::create(words(data->a_)));
    FORETUNE_TRY(data->encoded_b_, AlignedBuffer::create(words(data->b_)));
    data->encode();
  }
  data->poison();
  return data;
}

// In place of the random B, so that A and bias are the same with weights and without.
Status GemmData::take_weights(std::span<const std::byte> weights) {
  if (std::max(problem_.k(), problem_.n()) > kMaxWeightRows) {
    return fail(ErrorCode::kUnsupported, "products with more than ", kMaxWeightRows,
                " rows or columns of weights cannot be checked");
  }
  FORETUNE_TRY_STATUS(read_gemm_weights(problem_, weights, b_.view()));
  float largest = 0;
  for (const float value : b_.view()) {
    largest = std::max(largest, std::fabs(value));
  }
  if (static_cast<double>(largest) * static_cast<double>(problem_.k()) >= kMaxWeightSum) {
    return fail(ErrorCode::kUnsupported, "the weights reach ", static_cast<double>(largest),
                ", and sums of ", problem_.k(), " products with them might overflow");
  }
  return {};
}

void GemmData::fill(std::uint64_t seed) {
  const Rng root(seed);
  Rng inputs = root.split(kInputStream);
  rng_ = root.split(kCheckStream);
  fill_uniform(a_.view(), inputs);
  fill_uniform(b_.view(), inputs);
  fill_uniform(bias_, inputs);
  if (problem_.dtype() == DataType::kF32) {
    return;
  }
  // 256 values: integers, or odd multiples of 2^-8, which bf16 holds.
  const bool integer = is_integer();
  const auto coarse = [integer](float value) {
    const float whole = std::floor(128 * value);
    return integer ? whole : (2 * whole + 1) / 256;
  };
  for (const std::span<float> values : {a_.view(), b_.view()}) {
    std::transform(values.begin(), values.end(), values.begin(), coarse);
  }
  if (integer) {
    std::transform(bias_.begin(), bias_.end(), bias_.begin(),
                   [](float value) { return std::floor(1e6F * value); });
    integer_bias_.assign(bias_.begin(), bias_.end());
  }
}

void GemmData::encode() {
  const auto convert = [this](std::span<const float> values, AlignedBuffer& encoded) {
    auto* const bytes = reinterpret_cast<std::byte*>(encoded.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (is_integer()) {
        const auto element = static_cast<std::int8_t>(values[i]);
        std::memcpy(bytes + i, &element, sizeof element);
      } else {
        const auto element =
            static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16U);
        std::memcpy(bytes + i * sizeof element, &element, sizeof element);
      }
    }
  };
  convert(a_.view(), encoded_a_);
  convert(b_.view(), encoded_b_);
}

double GemmData::value_at(std::ptrdiff_t position) const {
  const float value = c_.data()[position];
  return is_integer() ? static_cast<double>(std::bit_cast<std::int32_t>(value))
                      : static_cast<double>(value);
}

void GemmData::poison() { std::fill_n(c_.data(), c_.size(), std::bit_cast<float>(kPoison)); }

std::int64_t GemmData::bytes() const {
  return static_cast<std::int64_t>(
      (a_.size() + b_.size() + c_.size() + bias_.size() + encoded_a_.size() + encoded_b_.size()) *
      sizeof(float));
}

template <class Element, class Sum>
BasicGemmOperands<Element, Sum> GemmData::operands_as(const AlignedBuffer& a,
                                                      const AlignedBuffer& b,
                                                      const std::vector<Sum>& bias) {
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  const std::ptrdiff_t k = problem_.k();
  return {.a = reinterpret_cast<const Element*>(a.data()),
          .a_stride = a_by_columns(problem_.layout()) ? m : k,
          .a_batch_stride = m * k,
          .b = reinterpret_cast<const Element*>(b.data()),
          .b_stride = b_by_columns(problem_.layout()) ? k : n,
          .b_batch_stride = k * n,
          .c_in = bias.empty() ? nullptr : bias.data(),
          .c = reinterpret_cast<Sum*>(c_.data()),
          .c_stride = n,
          .c_batch_stride = m * n,
          .beta = bias.empty() ? 0.0F : 1.0F,
          .floor = has_relu() ? 0 : -std::numeric_limits<float>::infinity()};
}

GemmOperands GemmData::operands() { return operands_as<float>(a_, b_, bias_); }

Bf16GemmOperands GemmData::bf16_operands() {
  return operands_as<Bf16>(encoded_a_, encoded_b_, bias_);
}

I8GemmOperands GemmData::i8_operands() {
  return operands_as<std::int8_t>(encoded_a_, encoded_b_, integer_bias_);
}

void GemmData::set_register_block(int rows, int columns) {
  block_rows_ = std::max(1, rows);
  block_columns_ = std::max(1, columns);
}

void GemmData::make_row_major() {
  // From `columns` x `rows` to `rows` x `columns`, in squares that stay in the cache.
  const auto transpose = [](const float* from, std::ptrdiff_t rows, std::ptrdiff_t columns,
                            float* to) {
    constexpr std::ptrdiff_t kSide = 16;
    for (std::ptrdiff_t i = 0; i < rows; i += kSide) {
      for (std::ptrdiff_t j = 0; j < columns; j += kSide) {
        for (std::ptrdiff_t r = i; r < std::min(i + kSide, rows); ++r) {
          for (std::ptrdiff_t c = j; c < std::min(j + kSide, columns); ++c) {
            to[r * columns + c] = from[c * rows + r];
          }
        }
      }
    }
  };
  const auto row_major = [&](const AlignedBuffer& values, bool by_columns, std::ptrdiff_t rows,
                             std::ptrdiff_t columns, std::vector<float>& copy) {
    if (!by_columns) {
      return values.data();
    }
    if (copy.empty()) {
      copy.resize(values.size());
      for (std::ptrdiff_t batch = 0; batch < problem_.batch(); ++batch) {
        const std::ptrdiff_t first = batch * rows * columns;
        transpose(values.data() + first, rows, columns, copy.data() + first);
      }
    }
    return static_cast<const float*>(copy.data());
  };
  a_rows_ = row_major(a_, a_by_columns(problem_.layout()), problem_.m(), problem_.k(), a_copy_);
  b_rows_ = row_major(b_, b_by_columns(problem_.layout()), problem_.k(), problem_.n(), b_copy_);
}

void GemmData::compute_norms() {
  if (!a_norms_.empty()) {
    return;
  }
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  const std::ptrdiff_t k = problem_.k();
  const std::ptrdiff_t batches = problem_.batch();
  a_norms_.resize(index(batches * m));
  b_norms_.resize(index(batches * n));
  for (std::ptrdiff_t i = 0; i < batches * m; ++i) {
    double sum = 0;
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      const auto value = static_cast<double>(a_rows_[i * k + p]);
      sum += value * value;
    }
    a_norms_[index(i)] = std::sqrt(sum);
  }
  for (std::ptrdiff_t batch = 0; batch < batches; ++batch) {
    const std::span<double> norms = std::span(b_norms_).subspan(index(batch * n), index(n));
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      const float* row = b_rows_ + (batch * k + p) * n;
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        const auto value = static_cast<double>(row[j]);
        norms[index(j)] += value * value;
      }
    }
    for (double& norm : norms) {
      norm = std::sqrt(norm);
    }
  }
  if (has_weights()) {
    b_sums_.assign(index(n), 0.0);
    b_counts_.assign(index(n), 0.0);
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        const auto value = static_cast<double>(b_rows_[p * n + j]);
        b_sums_[index(j)] += std::fabs(value);
        b_counts_[index(j)] += value == 0 ? 0 : 1;
      }
    }
  }
  bias_abs_.assign(index(n), 0.0);
  for (std::size_t j = 0; j < bias_.size(); ++j) {
    bias_abs_[j] = std::fabs(static_cast<double>(bias_[j]));
  }
}

double GemmData::rounding() const {
  return is_integer()
             ? 0
             : kUnitRoundoff * static_cast<double>(std::min<std::int64_t>(problem_.k(), 16) + 2);
}

double GemmData::bound_with_weights(std::ptrdiff_t row, std::ptrdiff_t column) const {
  const double terms = b_counts_[index(column)] + 2;
  const double sum = b_sums_[index(column)];
  const double norm = b_norms_[index(column)];
  const double bias = bias_abs_[index(column)];
  const double roundings = terms * kUnitRoundoff;
  const double always =
      roundings / (1 - roundings) * (std::min(sum, a_norms_[index(row)] * norm) + bias);
  const double nearly = 1.1 * (roundings * (kDeviations * norm + bias) + kUnitRoundoff * sum);
  return std::min(always, nearly) + terms * kUnderflow;
}

double GemmData::bound_of_signs_with_weights(std::ptrdiff_t row) const {
  double sum = 0;
  double squares = 0;
  for (std::ptrdiff_t j = 0; j < problem_.n(); ++j) {
    const double bound = bound_with_weights(row, j);
    sum += bound;
    squares += bound * bound;
  }
  return std::min(sum, kDeviations * std::sqrt(squares));
}

double GemmData::bound(std::ptrdiff_t batch, std::ptrdiff_t row, std::ptrdiff_t column) const {
  if (has_weights()) {
    return bound_with_weights(row, column);
  }
  return rounding() * (a_norms_[index(batch * problem_.m() + row)] *
                           b_norms_[index(batch * problem_.n() + column)] +
                       bias_abs_[index(column)]);
}

Support GemmData::compare(const Position& position, double expected) {
  const auto [batch, row, column] = position;
  const double value = value_at((batch * problem_.m() + row) * problem_.n() + column);
  if (!bias_.empty()) {
    expected += static_cast<double>(bias_[index(column)]);
  }
  if (has_relu()) {
    expected = std::max(expected, 0.0);
  }
  const double allowed = bound(batch, row, column);
  const double error = std::fabs(value - expected);
  // A NaN is not below anything, so the condition must ask for what is right.
  if (error <= allowed) {
    if (error > worst_ * allowed) {
      worst_ = error / allowed;
    }
    return Support::yes();
  }
  worst_ = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / allowed;
  return Support::no("element (", row, ", ", column, ")",
                     problem_.batch() > 1 ? concat(" of batch ", batch) : std::string(), " is ",
                     value, ", expected ", expected, " within ", allowed);
}

Support GemmData::verify() {
  make_row_major();
  compute_norms();
  worst_ = 0;
  if (problem_.flops() <= limits_.full_check_flops) {
    return verify_all();
  }
  if (Support sampled = verify_sampled(); !sampled || has_relu()) {
    return sampled;
  }
  return verify_by_signs();
}

void GemmData::reference_rows(std::ptrdiff_t batch, std::ptrdiff_t first, std::ptrdiff_t rows,
                              double* out) const {
  const std::ptrdiff_t n = problem_.n();
  const std::ptrdiff_t k = problem_.k();
  reference_product(a_rows_ + (batch * problem_.m() + first) * k, k, b_rows_ + batch * k * n, n,
                    rows, n, k, out);
}

Support GemmData::verify_all() {
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  const bool keeps = c_.size() <= limits_.kept_reference_elements;
  if (keeps && reference_.empty()) {
    reference_.resize(c_.size());
    for (std::ptrdiff_t batch = 0; batch < problem_.batch(); ++batch) {
      reference_rows(batch, 0, m, reference_.data() + batch * m * n);
    }
  }
  constexpr std::ptrdiff_t kRows = 16;
  std::vector<double> rows_here(keeps ? 0 : index(kRows * n));
  for (std::ptrdiff_t batch = 0; batch < problem_.batch(); ++batch) {
    for (std::ptrdiff_t first = 0; first < m; first += kRows) {
      const std::ptrdiff_t rows = std::min(kRows, m - first);
      if (!keeps) {
        reference_rows(batch, first, rows, rows_here.data());
      }
      const double* expected =
          keeps ? reference_.data() + (batch * m + first) * n : rows_here.data();
      for (std::ptrdiff_t i = 0; i < rows; ++i) {
        for (std::ptrdiff_t column = 0; column < n; ++column) {
          if (Support same = compare({batch, first + i, column}, expected[i * n + column]); !same) {
            return same;
          }
        }
      }
    }
  }
  return Support::yes();
}

std::vector<GemmData::Position> GemmData::sampled_positions() {
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  const std::vector<std::ptrdiff_t> rows = edges(m, block_rows_);
  const std::vector<std::ptrdiff_t> columns = edges(n, block_columns_);
  // Columns of B are gathered with a stride, so the random positions share a few of them.
  std::array<std::ptrdiff_t, 64> random_columns{};
  for (std::ptrdiff_t& column : random_columns) {
    column = static_cast<std::ptrdiff_t>(rng_.below(static_cast<std::uint64_t>(n)));
  }
  const std::size_t sampled = limits_.sampled_outputs * (has_relu() ? 4 : 1);
  const std::size_t count = std::max({sampled, rows.size(), columns.size()});
  std::vector<Position> positions;
  positions.reserve(count);
  for (std::size_t t = 0; t < count; ++t) {
    const bool is_edge = t < std::max(rows.size(), columns.size());
    Position position;
    position.batch =
        static_cast<std::ptrdiff_t>(rng_.below(static_cast<std::uint64_t>(problem_.batch())));
    position.row = is_edge ? rows[t % rows.size()]
                           : static_cast<std::ptrdiff_t>(rng_.below(static_cast<std::uint64_t>(m)));
    position.column =
        is_edge ? columns[t % columns.size()] : random_columns[t % random_columns.size()];
    positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end(), [](const Position& x, const Position& y) {
    return std::tie(x.batch, x.column, x.row) < std::tie(y.batch, y.column, y.row);
  });
  return positions;
}

double GemmData::exact(const Position& position, std::span<const double> column) const {
  const std::ptrdiff_t k = problem_.k();
  const float* row = a_rows_ + (position.batch * problem_.m() + position.row) * k;
  double sum = 0;
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    sum += static_cast<double>(row[p]) * column[index(p)];
  }
  return sum;
}

Support GemmData::verify_sampled() {
  const std::ptrdiff_t n = problem_.n();
  const std::ptrdiff_t k = problem_.k();
  std::vector<double> column(index(k));
  Position gathered{-1, -1, -1};
  for (const Position& position : sampled_positions()) {
    if (position.batch != gathered.batch || position.column != gathered.column) {
      const float* from = b_rows_ + position.batch * k * n + position.column;
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        column[index(p)] = static_cast<double>(from[p * n]);
      }
      gathered = position;
    }
    if (Support same = compare(position, exact(position, column)); !same) {
      return same;
    }
  }
  return Support::yes();
}

void GemmData::compute_signs() {
  if (!signs_.empty()) {
    return;
  }
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  const std::ptrdiff_t k = problem_.k();
  signs_.resize(index(n) * kSignVectors);
  for (double& sign : signs_) {
    sign = (rng_.next() >> 63U) != 0 ? 1.0 : -1.0;
  }
  std::array<double, kSignVectors> bias_sum{};
  for (std::size_t j = 0; j < bias_.size(); ++j) {
    for (std::size_t v = 0; v < kSignVectors; ++v) {
      bias_sum[v] += static_cast<double>(bias_[j]) * signs_[j * kSignVectors + v];
    }
  }
  sign_sums_.resize(index(problem_.batch() * m) * kSignVectors);
  std::vector<double> b_times_x(index(k) * kSignVectors);
  for (std::ptrdiff_t batch = 0; batch < problem_.batch(); ++batch) {
    std::fill(b_times_x.begin(), b_times_x.end(), 0.0);
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      const float* row = b_rows_ + (batch * k + p) * n;
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        for (std::size_t v = 0; v < kSignVectors; ++v) {
          b_times_x[index(p) * kSignVectors + v] +=
              static_cast<double>(row[j]) * signs_[index(j) * kSignVectors + v];
        }
      }
    }
    for (std::ptrdiff_t i = batch * m; i < (batch + 1) * m; ++i) {
      std::array<double, kSignVectors> sum = bias_sum;
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        for (std::size_t v = 0; v < kSignVectors; ++v) {
          sum[v] +=
              static_cast<double>(a_rows_[i * k + p]) * b_times_x[index(p) * kSignVectors + v];
        }
      }
      std::copy(sum.begin(), sum.end(), sign_sums_.begin() + i * static_cast<int>(kSignVectors));
    }
  }
}

Support GemmData::verify_by_signs() {
  compute_signs();
  const std::ptrdiff_t m = problem_.m();
  const std::ptrdiff_t n = problem_.n();
  for (std::ptrdiff_t batch = 0; batch < problem_.batch(); ++batch) {
    // |bounds of a row| = rounding * norm over j of (|a_i||b_j| + |bias_j|), which is at most
    // rounding * (|a_i| * |B|_F + |bias|).
    double b_square = 0;
    double bias_square = 0;
    for (std::ptrdiff_t j = 0; j < n; ++j) {
      b_square += b_norms_[index(batch * n + j)] * b_norms_[index(batch * n + j)];
      bias_square += bias_abs_[index(j)] * bias_abs_[index(j)];
    }
    for (std::ptrdiff_t i = 0; i < m; ++i) {
      std::array<double, kSignVectors> sum{};
      const std::ptrdiff_t row = (batch * m + i) * n;
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        const double value = value_at(row + j);
        for (std::size_t v = 0; v < kSignVectors; ++v) {
          sum[v] += value * signs_[index(j) * kSignVectors + v];
        }
      }
      const double allowed =
          has_weights() ? bound_of_signs_with_weights(i)
                        : rounding() * (a_norms_[index(batch * m + i)] * std::sqrt(b_square) +
                                        std::sqrt(bias_square));
      for (std::size_t v = 0; v < kSignVectors; ++v) {
        const double expected = sign_sums_[index(batch * m + i) * kSignVectors + v];
        const double error = std::fabs(sum[v] - expected);
        if (!(error <= allowed)) {
          worst_ = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / allowed;
          return Support::no("row ", i,
                             problem_.batch() > 1 ? concat(" of batch ", batch) : std::string(),
                             " fails the check with a random sign vector: ", sum[v], ", expected ",
                             expected, " within ", allowed);
        }
        worst_ = error > 0 ? std::max(worst_, error / allowed) : worst_;
      }
    }
  }
  return Support::yes();
}

}  // namespace foretune
