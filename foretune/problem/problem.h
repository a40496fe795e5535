// A problem says what to compute: a type, the type's fields, and for large payloads (a sparse
// matrix, a network) the digest under which a store finds them. Problems are plain values:
// comparable, hashable, with a canonical text form that parses back to the same value:
//
//   gemm op=mm m=128 n=1536 k=7168 batch=1 dtype=f32 layout=rcr
//
// The field lists live in one table (problem_schemas), from which text form, files, options and
// documentation follow. Thread safety: plain values. Cost: no allocation for up to 8 fields.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/base/small_vector.h"

namespace foretune {

// Stored in files: never renumber.
enum class ProblemType : std::uint16_t {
  kGemm = 1,
  kConv = 2,
  kSparse = 3,
  kLoopNest = 4,
  kNetwork = 5,
};

struct ProblemField {
  std::string_view name;
  // Labels of an enumerated field, in stored order; empty for an integer.
  std::span<const std::string_view> labels;
  // How many of them the schema's id covers: a label appended since changes nothing in what was
  // stored before, so files from then stay readable.
  std::size_t labels_in_id = 0;
  std::int64_t minimum = 0;
  std::int64_t maximum = 0;
  // Taken when the text form leaves the field out; nothing means that it must be given.
  std::optional<std::int64_t> default_value;
  // Whether the field belongs to the group: what must not be split between training and test.
  bool in_group = true;
};

struct ProblemSchema {
  ProblemType type;
  std::string_view name;
  std::uint32_t version;
  std::span<const ProblemField> fields;
  bool has_payload = false;
  // What the fields must obey beyond their ranges; nothing when that is all.
  Status (*check)(std::span<const std::int64_t> fields) = nullptr;

  [[nodiscard]] std::optional<std::size_t> find(std::string_view field) const;
  // Identifies the field list in files: changes when a field, label or the version does.
  [[nodiscard]] std::uint64_t id() const;
};

// All problem types known to this build.
std::span<const ProblemSchema> problem_schemas();
const ProblemSchema* find_problem_schema(ProblemType type);
const ProblemSchema* find_problem_schema(std::string_view name);

class Problem {
 public:
  using Fields = SmallVector<std::int64_t, 8>;

  // Checks the number of fields, every range and the type's own rules.
  static Result<Problem> create(ProblemType type, Fields fields, Digest payload = {});
  // Parses the text form. Fields may come in any order; those with a default may be absent.
  static Result<Problem> parse(std::string_view text);

  [[nodiscard]] ProblemType type() const { return type_; }
  [[nodiscard]] const ProblemSchema& schema() const;
  [[nodiscard]] std::span<const std::int64_t> fields() const { return fields_.view(); }
  [[nodiscard]] std::int64_t field(std::size_t index) const { return fields_[index]; }
  [[nodiscard]] const Digest& payload() const { return payload_; }

  // The text of one field: its label, or its number.
  [[nodiscard]] std::string field_text(std::size_t index) const;
  [[nodiscard]] std::string text() const;

  // Equal for problems that must stay on the same side of a split between training and test.
  [[nodiscard]] std::uint64_t group() const;
  [[nodiscard]] std::uint64_t hash() const;

  bool operator==(const Problem&) const = default;
  auto operator<=>(const Problem&) const = default;

 private:
  Problem(ProblemType type, Fields fields, Digest payload)
      : type_(type), fields_(std::move(fields)), payload_(payload) {}

  ProblemType type_;
  Fields fields_;
  Digest payload_;
};

}  // namespace foretune

template <>
struct std::hash<foretune::Problem> {
  std::size_t operator()(const foretune::Problem& problem) const noexcept {
    return static_cast<std::size_t>(problem.hash());
  }
};
