// The names of axes and loops in AutoSparse's and WACO's texts, and reading their words one by one.
// Thread safety: a reader belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/text.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune::interop_internal {

// One letter for each axis, in the order of SparseAxis; a blank for an axis that the operation
// lacks.
struct AxisNames {
  std::string_view letters;
  [[nodiscard]] char of(SparseAxis axis) const { return letters[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::optional<SparseAxis> find(char letter) const {
    const std::size_t place = letter == ' ' ? std::string_view::npos : letters.find(letter);
    return place < letters.size() ? std::optional(static_cast<SparseAxis>(place)) : std::nullopt;
  }
  // Returns the name of a loop: the letter of its axis, and the digit of inner or outer parts.
  [[nodiscard]] std::string loop(SparseLoop loop, char inner, char outer) const {
    return {of(axis_of(loop)), is_inner(loop) ? inner : outer};
  }
};

// Reads the words of a text. The first word that makes no sense is an error that names its place.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : words_(split_words(text)) {}

  [[nodiscard]] bool at_end() const { return next_ == words_.size(); }
  Result<std::string_view> word(std::string_view wanted) {
    if (at_end()) {
      return fail(ErrorCode::kCorrupt, "the text ends where ", wanted, " should follow");
    }
    return words_[next_++];
  }
  Result<std::int32_t> number(std::string_view wanted) {
    FORETUNE_TRY(const std::string_view text, word(wanted));
    const auto value = parse_int(text);
    if (!value || *value < 0 || *value > INT32_MAX) {
      return refuse(text, wanted);
    }
    return static_cast<std::int32_t>(*value);
  }
  Status exactly(std::string_view expected) {
    FORETUNE_TRY(const std::string_view text, word(quoted(expected)));
    return text == expected ? Status() : Status(refuse(text, quoted(expected)));
  }
  // Returns the error for the word that was read last.
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view word, std::string_view wanted) const {
    return fail(ErrorCode::kCorrupt, "word ", next_, " is ", quoted(word, 40), ", not ", wanted);
  }

 private:
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

}  // namespace foretune::interop_internal
