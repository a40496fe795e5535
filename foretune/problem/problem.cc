#include "foretune/problem/problem.h"

#include <array>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/problem/conv.h"
#include "foretune/problem/gemm.h"

namespace foretune {
namespace {

constexpr std::int64_t kMaxSize = 0x7fffffff;
constexpr std::int64_t kMaxStep = 0xffff;

ProblemField label_field(std::string_view name, std::span<const std::string_view> labels,
                         std::int64_t default_value, std::size_t labels_in_id) {
  return {.name = name,
          .labels = labels,
          .labels_in_id = labels_in_id,
          .minimum = 0,
          .maximum = static_cast<std::int64_t>(labels.size()) - 1,
          .default_value = default_value,
          .in_group = false};
}

ProblemField size_field(std::string_view name, std::optional<std::int64_t> default_value = {}) {
  return {.name = name,
          .labels = {},
          .labels_in_id = 0,
          .minimum = 1,
          .maximum = kMaxSize,
          .default_value = default_value,
          .in_group = true};
}

// A stride, pad or dilation, which is its smallest value unless said otherwise.
ProblemField step_field(std::string_view name, std::int64_t minimum) {
  return {.name = name,
          .labels = {},
          .labels_in_id = 0,
          .minimum = minimum,
          .maximum = kMaxStep,
          .default_value = minimum,
          .in_group = true};
}

// The lists are function-local, because the label tables live in other translation units.
std::span<const ProblemField> gemm_fields() {
  static const std::array fields{label_field("op", gemm_operation_labels(), 0, 3),
                                 size_field("m"),
                                 size_field("n"),
                                 size_field("k"),
                                 size_field("batch", 1),
                                 label_field("dtype", data_type_labels(), 0, 8),
                                 label_field("layout", gemm_layout_labels(), 1, 4)};
  return fields;
}

std::span<const ProblemField> conv_fields() {
  static const std::array fields{label_field("op", conv_operation_labels(), 0, 3),
                                 size_field("n"),
                                 size_field("c"),
                                 size_field("k"),
                                 size_field("g", 1),
                                 size_field("di", 1),
                                 size_field("hi"),
                                 size_field("wi"),
                                 size_field("z", 1),
                                 size_field("y"),
                                 size_field("x"),
                                 step_field("stride_d", 1),
                                 step_field("stride_h", 1),
                                 step_field("stride_w", 1),
                                 step_field("pad_d", 0),
                                 step_field("pad_h", 0),
                                 step_field("pad_w", 0),
                                 step_field("dilation_d", 1),
                                 step_field("dilation_h", 1),
                                 step_field("dilation_w", 1),
                                 label_field("dtype", data_type_labels(), 0, 8),
                                 label_field("layout", conv_layout_labels(), 0, 2)};
  return fields;
}

std::optional<std::int64_t> parse_field(const ProblemField& field, std::string_view text) {
  if (field.labels.empty()) {
    return parse_int(text);
  }
  for (std::size_t i = 0; i < field.labels.size(); ++i) {
    if (field.labels[i] == text) {
      return static_cast<std::int64_t>(i);
    }
  }
  return std::nullopt;
}

std::string expectation(const ProblemField& field) {
  if (field.labels.empty()) {
    return concat("an integer from ", field.minimum, " to ", field.maximum);
  }
  std::string out = "one of";
  for (const std::string_view label : field.labels) {
    out += concat(" ", label);
  }
  return out;
}

}  // namespace

std::span<const ProblemSchema> problem_schemas() {
  static const std::array schemas{ProblemSchema{.type = ProblemType::kGemm,
                                                .name = "gemm",
                                                .version = 1,
                                                .fields = gemm_fields(),
                                                .has_payload = false,
                                                .check = check_gemm},
                                  ProblemSchema{.type = ProblemType::kConv,
                                                .name = "conv",
                                                .version = 1,
                                                .fields = conv_fields(),
                                                .has_payload = false,
                                                .check = check_conv}};
  return schemas;
}

const ProblemSchema* find_problem_schema(ProblemType type) {
  for (const ProblemSchema& schema : problem_schemas()) {
    if (schema.type == type) {
      return &schema;
    }
  }
  return nullptr;
}

const ProblemSchema* find_problem_schema(std::string_view name) {
  for (const ProblemSchema& schema : problem_schemas()) {
    if (schema.name == name) {
      return &schema;
    }
  }
  return nullptr;
}

std::optional<std::size_t> ProblemSchema::find(std::string_view field) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == field) {
      return i;
    }
  }
  return std::nullopt;
}

std::uint64_t ProblemSchema::id() const {
  std::uint64_t hash = hash64(name, version);
  for (const ProblemField& field : fields) {
    hash = hash64(field.name, hash);
    for (const std::string_view label : field.labels.first(field.labels_in_id)) {
      hash = hash64(label, hash);
    }
  }
  return hash;
}

Result<Problem> Problem::create(ProblemType type, Fields fields, Digest payload) {
  const ProblemSchema* schema = find_problem_schema(type);
  if (schema == nullptr) {
    return fail(ErrorCode::kUnsupported, "problem type ", static_cast<int>(type),
                " is not known to this version");
  }
  if (fields.size() != schema->fields.size()) {
    return fail(ErrorCode::kInvalidArgument, "a ", schema->name, " problem has ",
                schema->fields.size(), " fields, not ", fields.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const ProblemField& field = schema->fields[i];
    if (fields[i] < field.minimum || fields[i] > field.maximum) {
      return fail(ErrorCode::kInvalidArgument, schema->name, ": ", field.name, " is ", fields[i],
                  "; it must be ", expectation(field));
    }
  }
  if (!schema->has_payload && !payload.is_zero()) {
    return fail(ErrorCode::kInvalidArgument, "a ", schema->name, " problem has no payload");
  }
  if (schema->check != nullptr) {
    FORETUNE_TRY_STATUS(schema->check(fields.view()));
  }
  return Problem(type, std::move(fields), payload);
}

Result<Problem> Problem::parse(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) {
    return fail(ErrorCode::kInvalidArgument, "an empty text is not a problem");
  }
  const ProblemSchema* schema = find_problem_schema(words[0]);
  if (schema == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "'", words[0].substr(0, 40),
                "' is not a problem type");
  }
  std::vector<std::optional<std::int64_t>> values(schema->fields.size());
  Digest payload;
  for (std::size_t w = 1; w < words.size(); ++w) {
    const std::size_t equals = words[w].find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "'", words[w].substr(0, 40),
                  "' should have the form field=value");
    }
    const std::string_view name = words[w].substr(0, equals);
    const std::string_view value = words[w].substr(equals + 1);
    if (name == "payload" && schema->has_payload) {
      const std::optional<Digest> digest = Digest::from_hex(value);
      if (!digest) {
        return fail(ErrorCode::kInvalidArgument, "payload must be 32 hexadecimal digits");
      }
      payload = *digest;
      continue;
    }
    const std::optional<std::size_t> index = schema->find(name);
    if (!index) {
      return fail(ErrorCode::kInvalidArgument, "'", name.substr(0, 40), "' is not a field of ",
                  schema->name);
    }
    if (values[*index]) {
      return fail(ErrorCode::kInvalidArgument, schema->name, ": ", name, " is given twice");
    }
    values[*index] = parse_field(schema->fields[*index], value);
    if (!values[*index]) {
      return fail(ErrorCode::kInvalidArgument, schema->name, ": ", name, "=", value.substr(0, 40),
                  " is not ", expectation(schema->fields[*index]));
    }
  }
  Fields fields;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<std::int64_t> value =
        values[i] ? values[i] : schema->fields[i].default_value;
    if (!value) {
      return fail(ErrorCode::kInvalidArgument, schema->name, ": ", schema->fields[i].name,
                  " is missing");
    }
    fields.push_back(*value);
  }
  return create(schema->type, std::move(fields), payload);
}

const ProblemSchema& Problem::schema() const {
  const ProblemSchema* schema = find_problem_schema(type_);
  FORETUNE_CHECK(schema != nullptr);
  return *schema;
}

std::string Problem::field_text(std::size_t index) const {
  const ProblemField& field = schema().fields[index];
  if (field.labels.empty()) {
    return concat(fields_[index]);
  }
  return std::string(field.labels[static_cast<std::size_t>(fields_[index])]);
}

std::string Problem::text() const {
  std::string out(schema().name);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    out += concat(" ", schema().fields[i].name, "=", field_text(i));
  }
  if (schema().has_payload) {
    out += concat(" payload=", payload_.hex());
  }
  return out;
}

std::uint64_t Problem::group() const {
  const ProblemSchema& described = schema();
  std::uint64_t hash = hash_combine(0x67726f7570U, static_cast<std::uint64_t>(type_));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (described.fields[i].in_group) {
      hash = hash_combine(hash, static_cast<std::uint64_t>(fields_[i]));
    }
  }
  return hash_combine(hash, payload_.high ^ payload_.low);
}

std::uint64_t Problem::hash() const {
  std::uint64_t hash =
      hash_combine(payload_.high ^ payload_.low, static_cast<std::uint64_t>(type_));
  for (const std::int64_t value : fields_.view()) {
    hash = hash_combine(hash, static_cast<std::uint64_t>(value));
  }
  return hash;
}

}  // namespace foretune
