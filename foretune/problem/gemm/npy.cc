#include "foretune/problem/gemm/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/text.h"

namespace foretune::problem_internal {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::int64_t kMaxElements = std::int64_t{1} << 50U;

tl::unexpected<Error> no_npy(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the header of NumPy's file ", what);
}

// Parses the literal of a Python dictionary in a header, such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : rest_(text) {}

  Status parse() {
    if (!take('{')) {
      return no_npy("is no dictionary");
    }
    while (!take('}')) {
      const std::optional<std::string_view> key = take_string();
      if (!key || !take(':') || !take_value(*key)) {
        return no_npy("cannot be understood");
      }
      if (!take(',')) {
        if (!take('}')) {
          return no_npy("cannot be understood");
        }
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty() || !descr_ || !by_columns_ || !shape_) {
      return no_npy("cannot be understood");
    }
    return {};
  }

  [[nodiscard]] std::string_view descr() const { return *descr_; }
  [[nodiscard]] bool by_columns() const { return *by_columns_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return *shape_; }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  bool take(char expected) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != expected) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  bool take_name(std::string_view name) {
    skip_blanks();
    if (!rest_.starts_with(name)) {
      return false;
    }
    rest_.remove_prefix(name.size());
    return true;
  }
  std::optional<std::string_view> take_string() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) {
      return std::nullopt;
    }
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::int64_t> take_number() {
    skip_blanks();
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const std::optional<std::int64_t> number = parse_int(rest_.substr(0, end));
    rest_.remove_prefix(end);
    static_cast<void>(take_name("L"));  // of Python 2
    return number;
  }
  std::optional<std::vector<std::int64_t>> take_tuple() {
    std::vector<std::int64_t> out;
    if (!take('(')) {
      return std::nullopt;
    }
    while (!take(')')) {
      const std::optional<std::int64_t> number = take_number();
      if (!number) {
        return std::nullopt;
      }
      out.push_back(*number);
      if (!take(',')) {
        if (!take(')')) {
          return std::nullopt;
        }
        break;
      }
    }
    return out;
  }
  // Returns false also for a key that is unknown or repeated.
  bool take_value(std::string_view key) {
    if (key == "descr" && !descr_) {
      descr_ = take_string();
      // Records have a list here, which is not supported either.
      return descr_.has_value();
    }
    if (key == "fortran_order" && !by_columns_) {
      const bool is_true = take_name("True");
      by_columns_ = is_true;
      return is_true || take_name("False");
    }
    if (key == "shape" && !shape_) {
      shape_ = take_tuple();
      return shape_.has_value();
    }
    return false;
  }

  std::string_view rest_;
  std::optional<std::string_view> descr_;
  std::optional<bool> by_columns_;
  std::optional<std::vector<std::int64_t>> shape_;
};

std::string npy_shape_text(const std::vector<std::int64_t>& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out += concat(i == 0 ? "" : ", ", shape[i]);
  }
  return out + ")";
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kNpyMagic.size() &&
         std::memcmp(bytes.data(), kNpyMagic.data(), kNpyMagic.size()) == 0;
}

Result<NpyMatrix> parse_npy(std::span<const std::byte> bytes) {
  if (!is_npy(bytes)) {
    return fail(ErrorCode::kCorrupt, "this is no file of NumPy's");
  }
  ByteReader reader(bytes.subspan(kNpyMagic.size()));
  const auto major = reader.get<std::uint8_t>();
  const auto minor = reader.get<std::uint8_t>();
  if (reader.ok() && (major < 1 || major > 2 || minor != 0)) {
    return fail(ErrorCode::kUnsupported, "NumPy's files of version ", major, ".", minor,
                " are not read, only those of 1.0 and 2.0");
  }
  const std::size_t length = major == 1 ? reader.get<std::uint16_t>() : reader.get<std::uint32_t>();
  const std::span<const std::byte> raw = reader.get_bytes(length);
  if (!reader.ok()) {
    return no_npy("is cut off");
  }
  NpyHeader header(std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size()));
  FORETUNE_TRY_STATUS(header.parse());
  if (header.descr() != "<f4") {
    return fail(ErrorCode::kUnsupported, "the array holds values of NumPy's type ",
                quoted(header.descr(), 20), ", not little-endian floats of 32 bits ('<f4')");
  }
  const std::vector<std::int64_t>& shape = header.shape();
  if (shape.size() != 2) {
    return fail(ErrorCode::kUnsupported, "the array has the shape ", npy_shape_text(shape),
                ", which is no matrix");
  }
  NpyMatrix out{.rows = shape[0], .columns = shape[1], .by_columns = header.by_columns()};
  out.values = bytes.subspan(bytes.size() - reader.remaining());
  if (out.rows < 1 || out.columns < 1 || out.rows > kMaxElements / out.columns) {
    return fail(ErrorCode::kUnsupported, "the array has the shape ", npy_shape_text(shape),
                ", which no weights have");
  }
  const auto expected = 4 * static_cast<std::uint64_t>(out.rows * out.columns);
  if (out.values.size() != expected) {
    return fail(ErrorCode::kCorrupt, "the array of shape ", npy_shape_text(shape), " takes ",
                expected, " bytes, the file has ", out.values.size());
  }
  return out;
}

}  // namespace foretune::problem_internal
