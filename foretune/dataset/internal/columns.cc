#include "foretune/dataset/internal/columns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "foretune/base/check.h"

namespace foretune::dataset_internal {
namespace {

// The encoding of a plain column is its width in bytes.
constexpr std::uint8_t kConstant = 0;
constexpr std::uint8_t kRuns = 5;

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  while (value >= 0x80) {
    value >>= 7U;
    ++bytes;
  }
  return bytes;
}

std::uint8_t width_of(std::uint32_t range) {
  return range < (1U << 8U) ? 1 : range < (1U << 16U) ? 2 : range < (1U << 24U) ? 3 : 4;
}

template <class Visit>
void for_each_run(std::span<const std::uint32_t> values, const Visit& visit) {
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && values[end] == values[begin]) {
      ++end;
    }
    visit(end - begin, values[begin]);
    begin = end;
  }
}

void put_plain(ByteWriter& out, std::span<const std::uint32_t> values, std::uint32_t base,
               std::uint8_t width) {
  out.put_varint(base);
  std::vector<std::byte> bytes(values.size() * width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t value = values[i] - base;
    for (std::size_t b = 0; b < width; ++b) {
      bytes[i * width + b] = static_cast<std::byte>(value >> (8 * b));
    }
  }
  out.put_bytes(bytes);
}

// Unsigned arithmetic wraps where a hostile base asks for it; ids are checked by who uses them.
template <std::size_t kWidth>
void read_plain(const std::byte* data, std::uint32_t base, std::span<std::uint32_t> out) {
  for (std::uint32_t& value : out) {
    std::uint32_t raw = 0;
    std::memcpy(&raw, data, kWidth);
    data += kWidth;
    value = base + raw;
  }
}

}  // namespace

void put_column(ByteWriter& out, std::span<const std::uint32_t> values) {
  if (values.empty()) {
    out.put(kConstant);
    out.put_varint(0);
    return;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low == *high) {
    out.put(kConstant);
    out.put_varint(*low);
    return;
  }
  const std::uint8_t width = width_of(*high - *low);
  std::size_t runs = 0;
  std::size_t run_bytes = 0;
  for_each_run(values, [&](std::size_t length, std::uint32_t value) {
    ++runs;
    run_bytes += varint_bytes(length) + varint_bytes(value);
  });
  if (run_bytes + varint_bytes(runs) >= values.size() * width + varint_bytes(*low)) {
    out.put(width);
    put_plain(out, values, *low, width);
    return;
  }
  out.put(kRuns);
  out.put_varint(runs);
  for_each_run(values, [&](std::size_t length, std::uint32_t value) {
    out.put_varint(length);
    out.put_varint(value);
  });
}

ColumnReader::ColumnReader(ByteReader& in, std::size_t rows) : encoding_(in.get<std::uint8_t>()) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  if (encoding_ < kRuns) {
    const std::uint64_t base = in.get_varint();
    if (base > kLargest) {
      in.fail();
    }
    base_ = static_cast<std::uint32_t>(base);
    plain_ = in.get_bytes(rows * encoding_);
    return;
  }
  if (encoding_ != kRuns) {
    in.fail();
    return;
  }
  const std::uint64_t runs = in.get_count(2);
  std::uint64_t total = 0;
  runs_.reserve(runs);
  for (std::uint64_t i = 0; i < runs && in.ok(); ++i) {
    const std::uint64_t length = in.get_varint();
    const std::uint64_t value = in.get_varint();
    if (length > rows - total || value > kLargest) {
      in.fail();
      return;
    }
    total += length;
    runs_.emplace_back(static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(value));
  }
  if (total != rows) {
    in.fail();
  }
}

void ColumnReader::next(std::span<std::uint32_t> out) {
  if (encoding_ == kRuns) {
    next_runs(out);
    return;
  }
  if (encoding_ == kConstant) {
    std::fill(out.begin(), out.end(), base_);
    return;
  }
  FORETUNE_CHECK(out.size() * encoding_ <= plain_.size() - position_);
  const std::byte* data = plain_.data() + position_;
  switch (encoding_) {
    case 1:
      read_plain<1>(data, base_, out);
      break;
    case 2:
      read_plain<2>(data, base_, out);
      break;
    case 3:
      read_plain<3>(data, base_, out);
      break;
    default:
      read_plain<4>(data, base_, out);
      break;
  }
  position_ += out.size() * encoding_;
}

void ColumnReader::next_runs(std::span<std::uint32_t> out) {
  while (!out.empty()) {
    FORETUNE_CHECK(position_ < runs_.size());
    auto& [left, value] = runs_[position_];
    const std::size_t count = std::min<std::size_t>(left, out.size());
    std::fill_n(out.begin(), count, value);
    out = out.subspan(count);
    left -= static_cast<std::uint32_t>(count);
    position_ += left == 0 ? 1U : 0U;
  }
}

}  // namespace foretune::dataset_internal
