#include "foretune/graph/run/weight_transform.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/graph/run/knob.h"

namespace foretune::graph {

namespace {

constexpr std::int64_t kMostNumber = 63;
constexpr std::size_t kMostLetters = 40;

Registry<WeightTransform>& table() {
  static Registry<WeightTransform> all({});
  return all;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostLetters && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

template <class Same>
const WeightTransform* find(const Same& is_same) {
  const auto rows = table().rows();
  const auto found = std::find_if(rows.begin(), rows.end(), is_same);
  return found == rows.end() ? nullptr : *found;
}

}  // namespace

Support WeightTransform::can_apply(const Network& /*network*/, const Node& /*node*/) const {
  return Support::yes();
}

const WeightTransform* find_weight_transform(std::int64_t number) {
  return find([&](const WeightTransform* each) { return each->number() == number; });
}

const WeightTransform* find_weight_transform(std::string_view name) {
  return find([&](const WeightTransform* each) { return each->name() == name; });
}

Status register_weight_transform(std::unique_ptr<const WeightTransform> transform) {
  const std::string name(transform->name());
  const std::int64_t number = transform->number();
  if (!is_name(name) || parse_knob(concat("f32+", name))) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(name, 40),
                " is no name for a transform: letters, digits and underscores that no other part "
                "of a knob has");
  }
  if (number < 0 || number > kMostNumber) {
    return fail(ErrorCode::kInvalidArgument, "a transform has a number from 0 to ", kMostNumber,
                ", not ", number);
  }
  const bool is_new = table().add(std::move(transform), [&](const WeightTransform& known) {
    return known.name() == name || known.number() == number;
  });
  return is_new ? Status()
                : fail(ErrorCode::kInvalidArgument, "there is a transform ",
                       foretune::quoted(name, 40), " or one of number ", number, " already");
}

}  // namespace foretune::graph
