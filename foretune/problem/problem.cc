#include "foretune/problem/problem.h"

#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/problem/payload.h"

namespace foretune {
namespace {

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

// Returns true for a default value of a field that was added later: it adds nothing to the problem.
bool is_later_default(const ProblemField& field, std::int64_t value) {
  return field.since > 1 && value == field.default_value;
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

Status check_payload(const ProblemSchema& schema, std::span<const std::int64_t> fields,
                     const Digest& payload) {
  if (payload.is_zero()) {
    return schema.payload == PayloadUse::kRequired
               ? Status(fail(ErrorCode::kInvalidArgument, schema.name, ": payload is missing"))
               : Status();
  }
  if (schema.payload == PayloadUse::kNone) {
    return fail(ErrorCode::kInvalidArgument, "a ", schema.name, " problem has no payload");
  }
  return schema.check_with_payload == nullptr ? Status() : schema.check_with_payload(fields);
}

// Parses the digest in a text.
Result<Digest> parse_payload(std::string_view schema, std::string_view text) {
  if (const std::optional<Digest> digest = Digest::from_hex(text)) {
    return *digest;
  }
  if (text.starts_with('@')) {
    return fail(ErrorCode::kInvalidArgument, schema, ": payload=", text.substr(0, 80),
                " names a file, and there is no folder of payloads to look in");
  }
  return fail(ErrorCode::kInvalidArgument, schema,
              ": payload must be 32 hexadecimal digits or @ and the name of a file");
}

}  // namespace

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
    if (field.since > 1) {
      continue;
    }
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
  while (fields.size() < schema->fields.size() && schema->fields[fields.size()].since > 1) {
    fields.push_back(*schema->fields[fields.size()].default_value);
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
  if (schema->check != nullptr) {
    FORETUNE_TRY_STATUS(schema->check(fields.view()));
  }
  FORETUNE_TRY_STATUS(check_payload(*schema, fields.view(), payload));
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
  std::optional<Digest> payload;
  for (std::size_t w = 1; w < words.size(); ++w) {
    const std::size_t equals = words[w].find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "'", words[w].substr(0, 40),
                  "' should have the form field=value");
    }
    const std::string_view name = words[w].substr(0, equals);
    const std::string_view value = words[w].substr(equals + 1);
    if (name == "payload" && schema->payload != PayloadUse::kNone) {
      if (payload) {
        return fail(ErrorCode::kInvalidArgument, schema->name, ": payload is given twice");
      }
      FORETUNE_TRY(payload, parse_payload(schema->name, value));
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
  if (schema->imply != nullptr) {
    schema->imply(values);
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
  return create(schema->type, std::move(fields), payload.value_or(Digest()));
}

void Problem::set_descriptor(const PayloadDescriptor* descriptor) {
  FORETUNE_CHECK(descriptor == nullptr || descriptor->payload == payload_);
  descriptor_.pointer = descriptor;
}

Problem Problem::on_machine(std::uint64_t machine) const {
  Problem out = *this;
  out.machine_ = machine;
  return out;
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

std::string Problem::text() const { return text_of_first(fields_.size()); }

std::string Problem::shown_text() const {
  const ProblemSchema& described = schema();
  std::size_t count = fields_.size();
  while (described.hides_last_defaults && count > 0 &&
         fields_[count - 1] == described.fields[count - 1].default_value) {
    --count;
  }
  return text_of_first(count);
}

std::string Problem::text_of_first(std::size_t count) const {
  std::string out(schema().name);
  const ProblemSchema& described = schema();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_later_default(described.fields[i], fields_[i])) {
      out += concat(" ", described.fields[i].name, "=", field_text(i));
    }
  }
  if (has_payload()) {
    out += concat(" payload=", payload_.hex());
  }
  return out;
}

std::uint64_t Problem::group() const {
  const ProblemSchema& described = schema();
  std::uint64_t hash = hash_combine(0x67726f7570U, static_cast<std::uint64_t>(type_));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (described.fields[i].groups.problem && !is_later_default(described.fields[i], fields_[i])) {
      hash = hash_combine(hash, static_cast<std::uint64_t>(fields_[i]));
    }
  }
  // Versions without payloads put a zero here, and groups are stored in files.
  return hash_combine(hash, 0);
}

std::uint64_t Problem::hash() const {
  std::uint64_t hash =
      hash_combine(payload_.high ^ payload_.low, static_cast<std::uint64_t>(type_));
  const ProblemSchema& described = schema();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!is_later_default(described.fields[i], fields_[i])) {
      hash = hash_combine(hash, static_cast<std::uint64_t>(fields_[i]));
    }
  }
  return machine_ == 0 ? hash : hash_combine(hash, machine_);
}

std::string shown_problem(std::string_view text) {
  const Result<Problem> problem = Problem::parse(text);
  const bool is_shorter = problem && problem->schema().hides_last_defaults;
  return is_shorter ? problem->shown_text() : std::string(text);
}

}  // namespace foretune
