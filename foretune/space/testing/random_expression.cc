#include "foretune/space/testing/random_expression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

std::int64_t saturate(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, kSmallest, kLargest));
}

// Returns the largest q with q * b <= a for b > 0 (and mirrored for b < 0); 0 for b = 0.
Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) {
    return 0;
  }
  if (b < 0) {
    a = -a;
    b = -b;
  }
  Wide q = a / b;
  while (q * b > a) {
    --q;
  }
  return q;
}

Wide floor_rest(Wide a, Wide b) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; }

Wide ceil_quotient(Wide a, Wide b) {
  return floor_quotient(a, b) + (floor_rest(a, b) == 0 ? 0 : 1);
}

// The meaning of an operator or function of two values, and its precedence (7: a call).
struct Meaning {
  std::string_view token;
  int level;
  Wide (*value)(Wide a, Wide b);
};
constexpr auto kMeanings = std::to_array<Meaning>({
    {"||", 1, [](Wide a, Wide b) { return Wide{a != 0 || b != 0}; }},
    {"&&", 2, [](Wide a, Wide b) { return Wide{a != 0 && b != 0}; }},
    {"==", 3, [](Wide a, Wide b) { return Wide{a == b}; }},
    {"!=", 3, [](Wide a, Wide b) { return Wide{a != b}; }},
    {"<", 3, [](Wide a, Wide b) { return Wide{a < b}; }},
    {"<=", 3, [](Wide a, Wide b) { return Wide{a <= b}; }},
    {">", 3, [](Wide a, Wide b) { return Wide{a > b}; }},
    {">=", 3, [](Wide a, Wide b) { return Wide{a >= b}; }},
    {"+", 4, [](Wide a, Wide b) { return a + b; }},
    {"-", 4, [](Wide a, Wide b) { return a - b; }},
    {"*", 5, [](Wide a, Wide b) { return a * b; }},
    {"/", 5, floor_quotient},
    {"%", 5, floor_rest},
    {"min", 7, [](Wide a, Wide b) { return std::min(a, b); }},
    {"max", 7, [](Wide a, Wide b) { return std::max(a, b); }},
    {"ceil_div", 7, ceil_quotient},
    {"round_up", 7, [](Wide a, Wide b) { return Wide{saturate(ceil_quotient(a, b))} * b; }},
});
constexpr std::size_t kOperators = 13;

const Meaning& meaning_of(std::string_view token) {
  return *std::find_if(kMeanings.begin(), kMeanings.end(),
                       [&](const Meaning& meaning) { return meaning.token == token; });
}

std::int64_t random_number(Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return static_cast<std::int64_t>(rng.below(4));
    case 1:
      return static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63)));
    case 2:
      return kLargest;
    default:
      return static_cast<std::int64_t>(rng.below(200));
  }
}

}  // namespace

RandomExpression RandomExpression::draw(const ConfigSchema& config, const ProblemSchema& problem,
                                        std::size_t parameters, int depth, Rng& rng) {
  RandomExpression out;
  const std::uint64_t form = depth == 0 ? rng.below(8) : rng.below(24);
  const auto child = [&] { return draw(config, problem, parameters, depth - 1, rng); };
  if (form < 3 && parameters > 0) {
    out.kind_ = Kind::kWord;
    out.index_ = rng.below(parameters);
    out.token_ = config.parameters[out.index_].name;
  } else if (form < 4) {
    out.kind_ = Kind::kField;
    out.index_ = rng.below(problem.fields.size());
    const std::string_view name = problem.fields[out.index_].name;
    const bool hidden = config.find(name).has_value();
    out.token_ = concat(hidden || rng.below(3) == 0 ? "problem." : "", name);
  } else if (form < 5) {
    out.kind_ = Kind::kFact;
    out.index_ = rng.below(kHardwareValueCount);
    out.token_ = concat("hw.", to_string(static_cast<HardwareValue>(out.index_)));
  } else if (form < 6) {
    const ProblemField& field = problem.fields[0];
    out.kind_ = Kind::kLabel;
    out.number_ = static_cast<std::int64_t>(rng.below(field.labels.size()));
    out.token_ = concat(field.name, ".", field.labels[static_cast<std::size_t>(out.number_)]);
  } else if (form < 8) {
    out.number_ = random_number(rng);
    out.token_ = concat(out.number_);
  } else if (form < 10) {
    out.kind_ = Kind::kUnary;
    out.token_ = rng.below(2) == 0 ? "-" : "!";
    out.children_.push_back(child());
  } else if (form < 20) {
    out.kind_ = Kind::kBinary;
    out.token_ = kMeanings[rng.below(kOperators)].token;
    out.children_.push_back(child());
    out.children_.push_back(child());
  } else {
    out.kind_ = Kind::kCall;
    const bool chooses = rng.below(2) == 0;
    out.token_ =
        chooses ? "select" : kMeanings[kOperators + rng.below(kMeanings.size() - kOperators)].token;
    for (int i = 0; i < (chooses ? 3 : 2); ++i) {
      out.children_.push_back(child());
    }
  }
  return out;
}

std::string RandomExpression::text(Rng& rng) const { return text_at(1, rng); }

// Returns a text that binds at least as tightly as `level`, with parentheses where they are needed.
std::string RandomExpression::text_at(int level, Rng& rng) const {
  const auto blanks = [&] { return std::string(rng.below(2), rng.below(8) == 0 ? '\t' : ' '); };
  const bool needless = rng.below(12) == 0;
  std::string out;
  int own_level = 7;
  switch (kind_) {
    case Kind::kUnary:
      own_level = 6;
      out = concat(token_, blanks(), children_[0].text_at(6, rng));
      break;
    case Kind::kBinary:
      own_level = meaning_of(token_).level;
      out = concat(children_[0].text_at(own_level, rng), blanks(), token_, blanks(),
                   children_[1].text_at(own_level + 1, rng));
      break;
    case Kind::kCall:
      out = concat(token_, blanks(), "(");
      for (std::size_t i = 0; i < children_.size(); ++i) {
        out += concat(i == 0 ? "" : ",", blanks(), children_[i].text_at(1, rng), blanks());
      }
      out += ")";
      break;
    default:
      out = token_;
  }
  return needless || own_level < level ? concat("(", blanks(), out, blanks(), ")") : out;
}

std::int64_t RandomExpression::evaluate(const Inputs& inputs) const {
  switch (kind_) {
    case Kind::kNumber:
    case Kind::kLabel:
      return number_;
    case Kind::kWord:
      return inputs.words[index_];
    case Kind::kField:
      return inputs.fields[index_];
    case Kind::kFact:
      return saturate(
          static_cast<Wide>(std::floor(inputs.hardware.get(static_cast<HardwareValue>(index_)))));
    case Kind::kUnary: {
      const std::int64_t value = children_[0].evaluate(inputs);
      return token_ == "-" ? saturate(-static_cast<Wide>(value)) : (value == 0 ? 1 : 0);
    }
    case Kind::kBinary:
    case Kind::kCall:
      if (token_ == "select") {
        return children_[0].evaluate(inputs) != 0 ? children_[1].evaluate(inputs)
                                                  : children_[2].evaluate(inputs);
      }
      return saturate(
          meaning_of(token_).value(children_[0].evaluate(inputs), children_[1].evaluate(inputs)));
  }
  return 0;
}

}  // namespace foretune
