#include "tests/fake_gpu/fake_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/fake_gpu/float_formats.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::ComputeType;
using cublaslt::CudaType;

// Where the elements of a product lie for the host; null for what it does not read.
struct Operands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* c = nullptr;
  const std::byte* bias = nullptr;
};

template <class T>
T element(const std::byte* from, std::int64_t i) {
  T value{};
  std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class Real>
Real load(const std::byte* from, CudaType type, std::int64_t i) {
  switch (type) {
    case CudaType::kF64:
      return static_cast<Real>(element<double>(from, i));
    case CudaType::kF16:
      return static_cast<Real>(f16_to_float(element<std::uint16_t>(from, i)));
    case CudaType::kBf16:
      return static_cast<Real>(bf16_to_float(element<std::uint16_t>(from, i)));
    case CudaType::kF8e4m3:
      return static_cast<Real>(f8e4m3_to_float(element<std::uint8_t>(from, i)));
    default:
      return static_cast<Real>(element<float>(from, i));
  }
}

template <class T>
void set_element(std::byte* to, std::int64_t i, T value) {
  std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

template <class Real>
void store(std::byte* to, CudaType type, std::int64_t i, Real value) {
  switch (type) {
    case CudaType::kF64:
      return set_element(to, i, static_cast<double>(value));
    case CudaType::kF16:
      return set_element(to, i, float_to_f16(static_cast<float>(value)));
    case CudaType::kBf16:
      return set_element(to, i, float_to_bf16(static_cast<float>(value)));
    case CudaType::kF8e4m3:
      return set_element(to, i, float_to_f8e4m3(static_cast<float>(value)));
    default:
      return set_element(to, i, static_cast<float>(value));
  }
}

// One batch of a matrix, or of its transpose, without gaps between its columns.
template <class Real>
std::vector<Real> expand(const Matrix& matrix, const std::byte* data, std::int64_t batch,
                         bool transposed, bool tf32) {
  std::vector<Real> values(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::int64_t column = 0; column < matrix.columns; ++column) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      Real value =
          load<Real>(data, matrix.type, batch * matrix.stride + column * matrix.leading + row);
      if (tf32) {
        value = static_cast<Real>(round_to_tf32(static_cast<float>(value)));
      }
      const std::int64_t to =
          transposed ? row * matrix.columns + column : column * matrix.rows + row;
      values[static_cast<std::size_t>(to)] = value;
    }
  }
  return values;
}

// Sums of a[m x k] * b[k x n], both stored by columns. Blocks of 128 x 4 sums stay in the first
// cache, and the compiler makes the loop over rows one of vectors.
template <class Real>
std::vector<Real> multiply(const std::vector<Real>& a, const std::vector<Real>& b, std::size_t m,
                           std::size_t n, std::size_t k) {
  constexpr std::size_t kRows = 128;
  constexpr std::size_t kColumns = 4;
  std::vector<Real> result(m * n);
  std::array<std::array<Real, kRows>, kColumns> sums;
  for (std::size_t row = 0; row < m; row += kRows) {
    const std::size_t rows = std::min(kRows, m - row);
    for (std::size_t column = 0; column < n; column += kColumns) {
      const std::size_t columns = std::min(kColumns, n - column);
      sums = {};
      for (std::size_t i = 0; i < k; ++i) {
        const Real* const from = a.data() + i * m + row;
        for (std::size_t j = 0; j < columns; ++j) {
          const Real factor = b[(column + j) * k + i];
          Real* const to = sums[j].data();
          for (std::size_t r = 0; r < rows; ++r) {
            to[r] += from[r] * factor;
          }
        }
      }
      for (std::size_t j = 0; j < columns; ++j) {
        std::copy_n(sums[j].begin(), rows,
                    result.begin() + static_cast<std::ptrdiff_t>((column + j) * m + row));
      }
    }
  }
  return result;
}

template <class Real>
Real activated(Activation activation, Real value) {
  switch (activation) {
    case Activation::kNone:
      return value;
    case Activation::kRelu:
      return value < 0 ? Real{0} : value;  // NaN stays
    case Activation::kGelu:
      return static_cast<Real>(gelu_by_tanh(static_cast<double>(value)));
  }
  return value;
}

// D without gaps.
template <class Real>
std::vector<std::byte> compute(const Product& product, const Operands& operands) {
  const Matrix& d = product.d;
  const bool tf32 = product.compute == ComputeType::kTf32;
  const std::int64_t elements = d.rows * d.columns;
  std::vector<std::byte> result(static_cast<std::size_t>(elements * d.batches) *
                                type_bytes(d.type));
  for (std::int64_t batch = 0; batch < d.batches; ++batch) {
    const std::vector<Real> sums =
        multiply(expand<Real>(product.a, operands.a, batch, product.transpose_a, tf32),
                 expand<Real>(product.b, operands.b, batch, product.transpose_b, tf32),
                 static_cast<std::size_t>(d.rows), static_cast<std::size_t>(d.columns),
                 static_cast<std::size_t>(product.k));
    for (std::int64_t column = 0; column < d.columns; ++column) {
      for (std::int64_t row = 0; row < d.rows; ++row) {
        const std::int64_t i = column * d.rows + row;
        Real value = static_cast<Real>(product.alpha) * sums[static_cast<std::size_t>(i)];
        if (operands.c != nullptr) {
          value += static_cast<Real>(product.beta) *
                   load<Real>(operands.c, product.c.type,
                              batch * product.c.stride + column * product.c.leading + row);
        }
        if (operands.bias != nullptr) {
          value += load<Real>(operands.bias, product.bias_type, row);
        }
        store(result.data(), d.type, batch * elements + i, activated(product.activation, value));
      }
    }
  }
  return result;
}

class Digest {
 public:
  void add(std::uint64_t word) { value_ = mix(value_ ^ word); }
  void add(const std::byte* data, std::size_t bytes) {
    // Four chains, since each step waits for the one before.
    std::array<std::uint64_t, 4> chains{value_, value_ + 1, value_ + 2, value_ + 3};
    std::size_t lane = 0;
    for (; bytes >= sizeof(chains); data += sizeof(chains), bytes -= sizeof(chains)) {
      std::array<std::uint64_t, 4> words;
      std::memcpy(words.data(), data, sizeof(words));
      for (std::size_t i = 0; i < words.size(); ++i) {
        chains[i] = step(chains[i], words[i]);
      }
    }
    while (bytes > 0) {
      std::uint64_t word = 0;
      const std::size_t taken = std::min(bytes, sizeof(word));
      std::memcpy(&word, data, taken);
      chains[lane] = step(chains[lane], word);
      ++lane;
      data += taken;
      bytes -= taken;
    }
    for (const std::uint64_t chain : chains) {
      add(chain);
    }
  }
  void add(const Matrix& matrix, const std::byte* data) {
    add(static_cast<std::uint64_t>(matrix.type));
    add(static_cast<std::uint64_t>(matrix.rows));
    add(static_cast<std::uint64_t>(matrix.columns));
    add(static_cast<std::uint64_t>(matrix.batches));
    if (data == nullptr) {
      return;
    }
    const std::size_t size = type_bytes(matrix.type);
    for (std::int64_t batch = 0; batch < matrix.batches; ++batch) {
      for (std::int64_t column = 0; column < matrix.columns; ++column) {
        add(data + static_cast<std::size_t>(batch * matrix.stride + column * matrix.leading) * size,
            static_cast<std::size_t>(matrix.rows) * size);
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  static std::uint64_t step(std::uint64_t value, std::uint64_t word) {
    value = (value ^ word) * 0xbf58476d1ce4e5b9ULL;
    return value ^ (value >> 29);
  }
  std::uint64_t value_ = 0;
};

// Measuring repeats a product many times with every config: the result is the same each time.
class Results {
 public:
  std::shared_ptr<const std::vector<std::byte>> of(const Product& product,
                                                   const Operands& operands) {
    Digest digest;
    digest.add(static_cast<std::uint64_t>(product.compute));
    digest.add(static_cast<std::uint64_t>(product.transpose_a) |
               static_cast<std::uint64_t>(product.transpose_b) << 1 |
               static_cast<std::uint64_t>(operands.c != nullptr) << 2 |
               static_cast<std::uint64_t>(operands.bias != nullptr) << 3 |
               static_cast<std::uint64_t>(product.activation) << 4);
    digest.add(std::bit_cast<std::uint64_t>(product.alpha));
    digest.add(std::bit_cast<std::uint64_t>(product.beta));
    digest.add(product.a, operands.a);
    digest.add(product.b, operands.b);
    digest.add(product.c, operands.c);
    digest.add(product.d, nullptr);
    if (operands.bias != nullptr) {
      digest.add(static_cast<std::uint64_t>(product.bias_type));
      digest.add(operands.bias,
                 static_cast<std::size_t>(product.d.rows) * type_bytes(product.bias_type));
    }
    const auto found = results_.find(digest.value());
    if (found != results_.end()) {
      return found->second;
    }
    auto result = std::make_shared<const std::vector<std::byte>>(
        product.compute == ComputeType::kF64 ? compute<double>(product, operands)
                                             : compute<float>(product, operands));
    if (bytes_ + result->size() > kMaxBytes) {
      results_.clear();
      bytes_ = 0;
    }
    bytes_ += result->size();
    results_.emplace(digest.value(), result);
    return result;
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{128} << 20;
  std::unordered_map<std::uint64_t, std::shared_ptr<const std::vector<std::byte>>> results_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::size_t type_bytes(CudaType type) {
  switch (type) {
    case CudaType::kF64:
      return 8;
    case CudaType::kF32:
      return 4;
    case CudaType::kF16:
    case CudaType::kBf16:
      return 2;
    case CudaType::kF8e4m3:
      return 1;
  }
  return 0;
}

std::size_t Matrix::bytes() const {
  const std::int64_t last = (batches - 1) * stride + (columns - 1) * leading + rows;
  return static_cast<std::size_t>(last) * type_bytes(type);
}

bool run_product(Memory& memory, const Product& product) {
  const Matrix& d = product.d;
  Operands operands;
  operands.a = memory.readable(product.a.pointer, product.a.bytes());
  operands.b = memory.readable(product.b.pointer, product.b.bytes());
  bool inside = operands.a != nullptr && operands.b != nullptr;
  if (product.beta != 0) {
    operands.c = memory.readable(product.c.pointer, product.c.bytes());
    inside = inside && operands.c != nullptr;
  }
  if (product.has_bias) {
    operands.bias = memory.readable(
        product.bias, static_cast<std::size_t>(d.rows) * type_bytes(product.bias_type));
    inside = inside && operands.bias != nullptr;
  }
  std::byte* const to = memory.writable(d.pointer, d.bytes());
  if (!inside || to == nullptr) {
    return false;
  }
  // Used under the lock of the state.
  static Results& results = *new Results;
  const auto result = results.of(product, operands);
  const std::size_t size = type_bytes(d.type);
  const std::size_t column_bytes = static_cast<std::size_t>(d.rows) * size;
  const std::byte* from = result->data();
  for (std::int64_t batch = 0; batch < d.batches; ++batch) {
    for (std::int64_t column = 0; column < d.columns; ++column) {
      const bool last = batch + 1 == d.batches && column + 1 == d.columns;
      const std::int64_t offset = batch * d.stride + column * d.leading;
      std::memcpy(to + static_cast<std::size_t>(offset) * size, from,
                  column_bytes - (last && product.last_not_written ? size : 0));
      from += column_bytes;
    }
  }
  if (product.wrong) {
    const std::int64_t middle =
        (d.batches / 2) * d.stride + (d.columns / 2) * d.leading + d.rows / 2;
    store(to, d.type, middle, load<double>(to, d.type, middle) + 1000);
  }
  return true;
}

}  // namespace foretune::fake_gpu
