// Splits the text of a file into lines. Internal to the module.
// Thread safety: one thread at a time. Cost: no copies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace foretune::sparse::internal {

class LineReader {
 public:
  // `bytes` must outlive the reader.
  explicit LineReader(std::span<const std::byte> bytes)
      : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  // Sets `line` to the next line, without its end (LF or CR LF). Returns false at the end of the
  // file.
  bool next(std::string_view& line) {
    if (rest_.empty()) {
      return false;
    }
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    ++number_;
    return true;
  }
  // Returns the number of the last line, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::uint64_t number_ = 0;
};

}  // namespace foretune::sparse::internal
