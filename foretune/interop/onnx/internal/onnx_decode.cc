// Elements of the tensors of files.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/interop/onnx/internal/onnx_array.h"

namespace foretune::onnx_internal {

namespace {

// Numbers of TensorProto.DataType.
constexpr std::int64_t kTypeFloat = 1;
constexpr std::int64_t kTypeInt32 = 6;
constexpr std::int64_t kTypeInt64 = 7;
constexpr std::int64_t kTypeBool = 9;
constexpr std::int64_t kTypeFloat16 = 10;
constexpr std::int64_t kTypeDouble = 11;
constexpr std::int64_t kTypeBfloat16 = 16;

float from_half(std::uint16_t bits) {
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const auto mantissa = static_cast<float>(bits & 0x3FFU);
  float value = 0;
  if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else if (exponent < 0x1FU) {
    value = std::ldexp(mantissa + 1024.0F, static_cast<int>(exponent) - 25);
  } else {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  }
  return (bits & 0x8000U) != 0 ? -value : value;
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// Copies little-endian elements; the machines of the project are little-endian.
template <class T, class U, class Convert>
bool copy_raw(const std::string& raw, std::vector<U>& to, const Convert& convert) {
  if (raw.size() != to.size() * sizeof(T)) {
    return false;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
    to[i] = convert(value);
  }
  return true;
}

template <class T, class U, class Convert>
bool copy_list(const std::vector<T>& list, std::vector<U>& to, const Convert& convert) {
  if (list.size() != to.size()) {
    return false;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = convert(list[i]);
  }
  return true;
}

bool decode_integers(const TensorData& tensor, std::vector<std::int64_t>& to) {
  const auto same = [](auto value) { return static_cast<std::int64_t>(value); };
  if (tensor.raw.empty()) {
    return copy_list(tensor.integers, to, same);
  }
  if (tensor.type == ElementType::kInt64) {
    return copy_raw<std::int64_t>(tensor.raw, to, same);
  }
  return tensor.type == ElementType::kInt32 ? copy_raw<std::int32_t>(tensor.raw, to, same)
                                            : copy_raw<std::uint8_t>(tensor.raw, to, same);
}

bool decode_numbers(const TensorData& tensor, std::vector<float>& to) {
  const auto narrow = [](auto value) { return static_cast<float>(value); };
  const bool is_raw = !tensor.raw.empty();
  if (tensor.type == ElementType::kFloat) {
    return is_raw ? copy_raw<float>(tensor.raw, to, narrow) : copy_list(tensor.floats, to, narrow);
  }
  if (tensor.type == ElementType::kDouble) {
    return is_raw ? copy_raw<double>(tensor.raw, to, narrow)
                  : copy_list(tensor.doubles, to, narrow);
  }
  const auto convert = tensor.type == ElementType::kFloat16 ? &from_half : &from_bfloat;
  return is_raw ? copy_raw<std::uint16_t>(tensor.raw, to, convert)
                : copy_list(tensor.integers, to, [&](std::int64_t bits) {
                    return convert(static_cast<std::uint16_t>(bits));
                  });
}

}  // namespace

ElementType element_type(std::int64_t number) {
  switch (number) {
    case kTypeFloat:
      return ElementType::kFloat;
    case kTypeDouble:
      return ElementType::kDouble;
    case kTypeFloat16:
      return ElementType::kFloat16;
    case kTypeBfloat16:
      return ElementType::kBfloat16;
    case kTypeInt64:
      return ElementType::kInt64;
    case kTypeInt32:
      return ElementType::kInt32;
    case kTypeBool:
      return ElementType::kBool;
    default:
      return ElementType::kOther;
  }
}

Status Allowance::take(std::span<const std::int64_t> shape) {
  if (shape.size() > graph::kMaxRank) {
    return fail(ErrorCode::kUnsupported, "a constant has ", shape.size(), " dimensions");
  }
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return fail(ErrorCode::kInvalidArgument, "a constant has an extent of ", extent);
    }
    // Extents beside one of 0 are limited, too, so that no product of them overflows.
    is_empty = is_empty || extent == 0;
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (count > left_ / factor) {
      return fail(ErrorCode::kInvalidArgument, "the constants of the model have too many elements");
    }
    count *= factor;
  }
  left_ -= is_empty ? 0 : count;
  return {};
}

Result<ArrayPtr> decode(const TensorData& tensor, Allowance& allowance) {
  if (tensor.is_external) {
    return fail(ErrorCode::kUnsupported, "the elements are in another file");
  }
  if (tensor.type == ElementType::kOther) {
    return fail(ErrorCode::kUnsupported, "elements of ONNX's type ", tensor.type_number,
                " are not read");
  }
  FORETUNE_TRY_STATUS(allowance.take(tensor.shape));
  const auto count = static_cast<std::size_t>(graph::element_count(tensor.shape));
  bool is_whole = false;
  ArrayPtr array;
  if (is_floating(tensor.type)) {
    std::vector<float> numbers(count);
    is_whole = decode_numbers(tensor, numbers);
    array = number_array(tensor.shape, std::move(numbers));
  } else {
    std::vector<std::int64_t> integers(count);
    is_whole = decode_integers(tensor, integers);
    array = integer_array(tensor.shape, std::move(integers));
  }
  if (!is_whole) {
    return fail(ErrorCode::kCorrupt, "a tensor of ", graph::to_text(tensor.shape),
                " has another number of elements");
  }
  return array;
}

}  // namespace foretune::onnx_internal
