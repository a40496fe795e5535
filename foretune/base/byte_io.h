// Little-endian writing and bounds-checked reading of binary formats. A reader that meets the end
// or a bad number turns bad and returns zeros from then on, so parsers check once, at the end of a
// unit. Thread safety: values of one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace foretune {

class ByteWriter {
 public:
  // Writes the numbers one after another, each in the bytes of its type. A number that depends on
  // the bytes before it needs a call of its own.
  template <class... T>
    requires(std::is_arithmetic_v<T> && ...)
  void put(T... values) {
    static_assert(std::endian::native == std::endian::little);
    (put_bytes(std::as_bytes(std::span(&values, 1))), ...);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // Writes the length as 32 bits, then the bytes.
  void put_string(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Writes LEB128: small numbers take few bytes.
  void put_varint(std::uint64_t value) {
    while (value >= 0x80) {
      put(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7U;
    }
    put(static_cast<std::uint8_t>(value));
  }
  // Writes a signed number; small magnitudes take few bytes.
  void put_zigzag(std::int64_t value) {
    put_varint((static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void align(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T get() {
    T value{};
    const std::span<const std::byte> raw = get_bytes(sizeof(T));
    if (raw.size() == sizeof(T)) {
      std::memcpy(&value, raw.data(), sizeof(T));
    }
    return value;
  }
  std::span<const std::byte> get_bytes(std::size_t count) {
    if (bad_ || count > remaining()) {
      bad_ = true;
      return {};
    }
    const std::span<const std::byte> out = bytes_.subspan(position_, count);
    position_ += count;
    return out;
  }
  std::string get_string(std::size_t max_size = std::size_t{1} << 24U) {
    const auto size = get<std::uint32_t>();
    if (size > max_size) {
      bad_ = true;
    }
    const std::span<const std::byte> raw = get_bytes(bad_ ? 0 : size);
    return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  std::uint64_t get_varint() {
    // Nearly all numbers have one byte.
    if (!bad_ && position_ < bytes_.size() && bytes_[position_] < std::byte{0x80}) [[likely]] {
      return static_cast<std::uint64_t>(bytes_[position_++]);
    }
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = get<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) {
        if (shift == 63 && byte > 1) {
          break;
        }
        return value;
      }
    }
    bad_ = true;
    return 0;
  }
  std::int64_t get_zigzag() {
    const std::uint64_t value = get_varint();
    return static_cast<std::int64_t>((value >> 1U) ^ (0 - (value & 1U)));
  }
  // Reads a count that is about to be allocated; refuses one whose items cannot fit in the rest.
  std::uint64_t get_count(std::size_t min_bytes_per_item) {
    const std::uint64_t count = get_varint();
    if (min_bytes_per_item > 0 && count > remaining() / min_bytes_per_item) {
      bad_ = true;
      return 0;
    }
    return count;
  }
  void fail() { bad_ = true; }
  [[nodiscard]] bool ok() const { return !bad_; }
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool bad_ = false;
};

// Writes the count, then the numbers as they stand in memory.
template <class Values>
void put_array(ByteWriter& writer, const Values& values) {
  const std::span all(values);
  static_assert(std::is_arithmetic_v<typename decltype(all)::value_type>);
  writer.put_varint(all.size());
  writer.put_bytes(std::as_bytes(all));
}

// Reads `count` numbers as they stand in memory. When the rest does not hold that many, the reader
// turns bad and the result is empty; nothing is allocated then.
template <class T>
  requires std::is_arithmetic_v<T>
std::vector<T> get_array(ByteReader& reader, std::size_t count) {
  if (count > reader.remaining() / sizeof(T)) {
    reader.fail();
  }
  const std::span<const std::byte> bytes = reader.get_bytes(reader.ok() ? count * sizeof(T) : 0);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

// Reads an array that put_array() wrote.
template <class T>
  requires std::is_arithmetic_v<T>
std::vector<T> get_array(ByteReader& reader) {
  return get_array<T>(reader, reader.get_count(sizeof(T)));
}

}  // namespace foretune
