// A problem says what to compute: a type, the type's fields, and for large payloads (weights, a
// sparse matrix, a network) the digest under which a store finds them (payload_store.h). Problems
// are plain values: comparable, hashable, with a canonical text form that parses back to the same
// value:
//
//   gemm op=mm m=128 n=1536 k=7168 batch=1 dtype=f32 layout=rcr
//
// A type's fields are a list (problem_type.h), from which text form, files, options and
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

// The number of a type in files. The folder of a type names its own (`kGemmProblem`): 1 is gemm, 2
// conv, 3 sparse, 4 network, 6 to 9 are loop nests, 5 is kept for a type to come. Never renumber.
enum class ProblemType : std::uint16_t {};

// The keys that a field is part of. Problems that are equal in all fields of a key are kept
// together by it.
struct FieldGroups {
  bool problem = false;  // Problem::group(): never split between training and test
  bool sizes = false;    // GroupKey::kSizes, coarser
  bool weights = false;  // GroupKey::kWeights: the same weights, whatever they are applied to
};

struct ProblemField {
  std::string_view name;
  // Labels of an enumerated field, in stored order; empty for an integer.
  std::span<const std::string_view> labels;
  // How many of the labels the schema's id covers: a label appended since changes nothing in what
  // was stored before, so files from then stay readable.
  std::size_t labels_in_id = 0;
  std::int64_t minimum = 0;
  std::int64_t maximum = 0;
  // Taken when the text form or an older file lacks the field; nothing means that it must be given.
  std::optional<std::int64_t> default_value;
  FieldGroups groups;
  // The version of the type that added the field. A field added after the first version stands
  // behind the others and has a default: a file without the field means the default, and text,
  // group and hash of a problem with the default stay as they were before the field existed.
  std::uint32_t since = 1;
  std::string_view help;  // for options: "rows of A and C"
  // The integer names a kernel and measures nothing. The card of a model lists those of its data.
  bool is_identifier = false;
  // The integer names where a payload comes from, for groups alone: 0 where that is unknown. It is
  // no size that a model's applicability domain would measure distances by.
  bool is_origin = false;
};

// Says whether problems of a type come with a file of data that belongs to the computation.
enum class PayloadUse : std::uint8_t { kNone, kOptional, kRequired };

// The numbers that describe a payload (payload.h).
struct PayloadDescriptor;

struct ProblemSchema {
  ProblemType type;
  std::string_view name;
  std::uint32_t version;
  std::span<const ProblemField> fields;
  PayloadUse payload = PayloadUse::kNone;
  // The rules of the fields beyond their ranges; nothing when there are none.
  Status (*check)(std::span<const std::int64_t> fields) = nullptr;
  // The further rules of a problem with a payload; nothing when there are none.
  Status (*check_with_payload)(std::span<const std::int64_t> fields) = nullptr;
  // Sets fields that a text leaves out and the others imply (a batch implies a bmm).
  void (*imply)(std::span<std::optional<std::int64_t>> values) = nullptr;
  // Problem::shown_text() leaves out the last fields while they have their defaults.
  bool hides_last_defaults = false;

  [[nodiscard]] std::optional<std::size_t> find(std::string_view field) const;
  // Identifies the type in files by its name, version and first fields. A field added later does
  // not change it.
  [[nodiscard]] std::uint64_t id() const;
};

// The schema of a type of this build, or nullptr.
const ProblemSchema* find_problem_schema(ProblemType type);
const ProblemSchema* find_problem_schema(std::string_view name);

class Problem {
 public:
  using Fields = SmallVector<std::int64_t, 8>;

  // Checks every range and the type's own rules. Later fields may be absent and get their defaults.
  // A payload of zeros is none.
  static Result<Problem> create(ProblemType type, Fields fields, Digest payload = {});
  // Parses the text form. Fields may come in any order; those with a default may be absent. A
  // payload is 32 hexadecimal digits; PayloadStore::resolve_names() puts them in place of a name.
  static Result<Problem> parse(std::string_view text);

  [[nodiscard]] ProblemType type() const { return type_; }
  [[nodiscard]] const ProblemSchema& schema() const;
  [[nodiscard]] std::span<const std::int64_t> fields() const { return fields_.view(); }
  [[nodiscard]] std::int64_t field(std::size_t index) const { return fields_[index]; }
  // Returns zeros for a problem without a payload.
  [[nodiscard]] const Digest& payload() const { return payload_; }
  [[nodiscard]] bool has_payload() const { return !payload_.is_zero(); }
  // Returns the numbers that describe the payload, which features read; nullptr for a problem
  // without a payload, and before PayloadStore::describe() was called. They are not part of the
  // value: problems that differ in nothing else are equal, with the same text, hash and group.
  // Descriptors stay until the program ends.
  [[nodiscard]] const PayloadDescriptor* descriptor() const { return descriptor_.pointer; }
  // `descriptor` is that of this problem's payload, or nullptr.
  void set_descriptor(const PayloadDescriptor* descriptor);

  // Returns the digest of a machine (Fingerprint::digest()) in the problems of
  // Dataset::by_machine(), where a problem that two machines measured is two problems; 0 everywhere
  // else. It belongs to the value, but not to text and group. Files never hold it.
  [[nodiscard]] std::uint64_t machine() const { return machine_; }
  [[nodiscard]] Problem on_machine(std::uint64_t machine) const;

  // Returns the text of one field: its label, or its number.
  [[nodiscard]] std::string field_text(std::size_t index) const;
  [[nodiscard]] std::string text() const;
  // Returns the text for people, which may be shorter. It parses back to the same value.
  [[nodiscard]] std::string shown_text() const;

  // Returns the same number for problems that must stay on the same side of a split between
  // training and test: those with equal fields in the group, whatever their payloads. A type whose
  // payloads have a common origin (samples of one matrix) has a field for it.
  [[nodiscard]] std::uint64_t group() const;
  [[nodiscard]] std::uint64_t hash() const;

  bool operator==(const Problem&) const = default;
  auto operator<=>(const Problem&) const = default;

 private:
  Problem(ProblemType type, Fields fields, Digest payload)
      : type_(type), fields_(std::move(fields)), payload_(payload) {}

  // Returns text() with the first `count` fields only.
  [[nodiscard]] std::string text_of_first(std::size_t count) const;

  // Compares equal always, so that comparing problems ignores the descriptor.
  struct Aside {
    const PayloadDescriptor* pointer = nullptr;
    bool operator==(const Aside& /*other*/) const { return true; }
    std::strong_ordering operator<=>(const Aside& /*other*/) const {
      return std::strong_ordering::equal;
    }
  };

  ProblemType type_;
  Fields fields_;
  Digest payload_;
  std::uint64_t machine_ = 0;
  Aside descriptor_;
};

// Returns Problem::shown_text() of the text of a problem, and any other text as it is.
std::string shown_problem(std::string_view text);

}  // namespace foretune

template <>
struct std::hash<foretune::Problem> {
  std::size_t operator()(const foretune::Problem& problem) const noexcept {
    return static_cast<std::size_t>(problem.hash());
  }
};
