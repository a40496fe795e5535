#include <algorithm>
#include <memory>

#include "foretune/base/hash.h"
#include "foretune/base/registry.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

#define FORETUNE_PROBLEM_TYPE(name) const ProblemTypeInfo& name##_problem_type();
#include "foretune/problem/types.inc"
#undef FORETUNE_PROBLEM_TYPE

namespace {

Registry<ProblemTypeInfo>& table() {
#define FORETUNE_PROBLEM_TYPE(name) &name##_problem_type(),
  static Registry<ProblemTypeInfo> types({
#include "foretune/problem/types.inc"
  });
#undef FORETUNE_PROBLEM_TYPE
  return types;
}

// A name is a word of the text form and of files.
bool is_word(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 40 && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), is_plain);
}

}  // namespace

std::span<const ProblemTypeInfo* const> problem_types() { return table().rows(); }

ProblemType added_problem_type(std::string_view name) {
  constexpr std::uint16_t kFirstAdded = 0x8000;
  return static_cast<ProblemType>(kFirstAdded | (hash64(name) & (kFirstAdded - 1)));
}

Status register_problem_type(ProblemTypeInfo info) {
  const ProblemSchema& schema = info.schema;
  if (!is_word(schema.name)) {
    return fail(ErrorCode::kInvalidArgument, "the problem type ", quoted(schema.name, 40),
                " has a name that is no word of a-z, 0-9 and _");
  }
  for (const ProblemField& field : schema.fields) {
    if (!is_word(field.name) || field.minimum > field.maximum ||
        (field.default_value &&
         (*field.default_value < field.minimum || *field.default_value > field.maximum))) {
      return fail(ErrorCode::kInvalidArgument, "the field ", quoted(field.name, 40),
                  " of the problem type ", schema.name,
                  " needs a name of a-z, 0-9 and _, and a default within its bounds");
    }
  }
  if (schema.type != added_problem_type(schema.name)) {
    return fail(ErrorCode::kInvalidArgument, "the problem type ", schema.name,
                " has a number that does not follow from its name");
  }
  const ProblemType number = schema.type;
  const std::string_view name = schema.name;
  return table().add(std::make_unique<ProblemTypeInfo>(info),
                     [&](const ProblemTypeInfo& known) {
                       return known.schema.name == name || known.schema.type == number;
                     })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a problem type ", name,
                    ", or one with its number, already");
}

const ProblemTypeInfo* find_problem_type(ProblemType type) {
  for (const ProblemTypeInfo* info : problem_types()) {
    if (info->schema.type == type) {
      return info;
    }
  }
  return nullptr;
}

const ProblemTypeInfo* find_problem_type(std::string_view name) {
  for (const ProblemTypeInfo* info : problem_types()) {
    if (info->schema.name == name) {
      return info;
    }
  }
  return nullptr;
}

const ProblemSchema* find_problem_schema(ProblemType type) {
  const ProblemTypeInfo* info = find_problem_type(type);
  return info == nullptr ? nullptr : &info->schema;
}

const ProblemSchema* find_problem_schema(std::string_view name) {
  const ProblemTypeInfo* info = find_problem_type(name);
  return info == nullptr ? nullptr : &info->schema;
}

std::optional<ProblemWork> problem_work(const Problem& problem) {
  const ProblemTypeInfo* info = find_problem_type(problem.type());
  return info == nullptr || info->work == nullptr ? std::nullopt : info->work(problem);
}

SliceValue slice_by_size(std::int64_t size, std::span<const std::int64_t> limits) {
  const auto above = std::lower_bound(limits.begin(), limits.end(), size);
  const auto index = static_cast<std::size_t>(above - limits.begin());
  const auto order = static_cast<std::int64_t>(index);
  if (index == limits.size()) {
    return {order, concat("above ", limits.back())};
  }
  if (index == 0) {
    return {order, limits[0] == 1 ? std::string("1") : concat("up to ", limits[0])};
  }
  return {order, concat(limits[index - 1] + 1, " to ", limits[index])};
}

SliceValue slice_by_field(const Problem& problem, std::size_t field) {
  return {problem.field(field), problem.field_text(field)};
}

ProblemField label_field(std::string_view name, std::span<const std::string_view> labels,
                         std::int64_t default_value, std::size_t labels_in_id) {
  return {.name = name,
          .labels = labels,
          .labels_in_id = labels_in_id,
          .minimum = 0,
          .maximum = static_cast<std::int64_t>(labels.size()) - 1,
          .default_value = default_value,
          .groups = {}};
}

ProblemField size_field(std::string_view name, std::optional<std::int64_t> default_value) {
  constexpr std::int64_t kMaxSize = 0x7fffffff;
  return {.name = name,
          .minimum = 1,
          .maximum = kMaxSize,
          .default_value = default_value,
          .groups = {.problem = true}};
}

}  // namespace foretune
