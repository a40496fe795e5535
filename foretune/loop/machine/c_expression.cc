#include "foretune/loop/machine/c_expression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::loop::c_text {
namespace {

// Names that a tensor or a function cannot have in C, or not in the text below.
constexpr std::string_view kTaken =
    " auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while abort free malloc inputs output value acc main asm typeof "
    "unix linux i386 NULL EOF NAN INFINITY foretune_shorter foretune_max foretune_min ";

// A name may contain anything, even the end of a comment.
std::string for_comment(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool harmless = c >= ' ' && c < 0x7f && c != '\\' && !(c == '/' && out.ends_with('*')) &&
                          !(c == '*' && out.ends_with('/'));
    out += harmless ? c : ' ';
  }
  return out;
}

// Returns the operator; empty where C has none.
std::string_view sign_of(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSubtract:
      return "-";
    case Op::kMultiply:
      return "*";
    case Op::kDivide:
      return "/";
    case Op::kMax:
    case Op::kMin:
      break;
  }
  return {};
}

std::string dimension_index(const Dimension& dimension, const Values& values) {
  Sum index(dimension.offset);
  for (std::size_t v = 0; v < values.size(); ++v) {
    index.add(dimension.coefficients[v], values[v]);
  }
  return index.text();
}

// Text about a computation, for the comment above its function.
class Description {
 public:
  explicit Description(const Computation& computation) : c_(computation) {
    for (const Var& var : c_.vars) {
      names_.push_back(var.name);
    }
  }

  [[nodiscard]] std::string text() const {
    std::string out = concat("/* ", for_comment(c_.name), "\n *\n * ", meaning(), "\n *\n");
    bool is_padded = false;
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) {
      out += concat(" * inputs[", i, "]: ", shape(c_.inputs[i]), "\n");
      is_padded = is_padded || !guard(c_.vars, c_.inputs[i], names_).empty();
    }
    out += concat(" * output: ", shape(c_.output), "\n");
    out +=
        is_padded ? " * Where an index of an input is not below its size, the value is 0.\n" : "";
    return out + " * The output must not overlap an input.\n */\n";
  }

 private:
  // "a[m][k], size 8 x 16, strides 16, 1"
  [[nodiscard]] std::string shape(const Tensor& tensor) const {
    std::vector<std::string> sizes;
    std::vector<std::string> strides;
    for (const Dimension& dimension : tensor.dimensions) {
      sizes.push_back(concat(dimension.size));
      strides.push_back(concat(dimension.stride));
    }
    if (sizes.empty()) {
      return concat(tensor.name, ", one element");
    }
    return concat(access(tensor), ", size ", join(sizes, " x "), ", strides ", join(strides, ", "));
  }

  [[nodiscard]] std::string access(const Tensor& tensor) const {
    std::string out = tensor.name;
    for (const Dimension& dimension : tensor.dimensions) {
      out += concat("[", dimension_index(dimension, names_), "]");
    }
    return out;
  }

  [[nodiscard]] std::string meaning() const {
    std::string out = concat(access(c_.output), " = ");
    if (c_.has_reduction()) {
      std::vector<std::string> over;
      for (const Var& var : c_.vars) {
        if (var.is_reduction) {
          over.push_back(var.name);
        }
      }
      out += concat(c_.reduce == Op::kAdd ? "sum" : to_string(c_.reduce), " over ",
                    join(over, ", "), " of ");
    }
    out += access(c_.inputs[0]);
    if (c_.combined == 2) {
      out += concat(" ", word(c_.combine), " ", access(c_.inputs[1]));
    }
    for (const Step& step : c_.steps) {
      const std::string operand = step.input < 0
                                      ? concat(static_cast<double>(step.constant))
                                      : access(c_.inputs[static_cast<std::size_t>(step.input)]);
      out += concat(",\n *   then ", word(step.op), " ", operand);
    }
    return out;
  }

  static std::string_view word(Op op) {
    const std::string_view sign = sign_of(op);
    return sign.empty() ? to_string(op) : sign;
  }

  const Computation& c_;
  Values names_;
};

}  // namespace

bool is_taken(std::string_view name) {
  return kTaken.find(concat(" ", name, " ")) != std::string_view::npos;
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && !is_taken(name) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string literal(float value) {
  if (std::isnan(value)) {
    return "NAN";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-INFINITY" : "INFINITY";
  }
  const std::string digits = concat(static_cast<double>(value));
  return concat(digits, digits.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

std::string binary(Op op, std::string_view left, std::string_view right) {
  if (const std::string_view sign = sign_of(op); !sign.empty()) {
    return concat(left, " ", sign, " ", right);
  }
  return concat(op == Op::kMax ? "foretune_max(" : "foretune_min(", left, ", ", right, ")");
}

std::string update(Op op, std::string_view target, std::string_view operand) {
  if (const std::string_view sign = sign_of(op); !sign.empty()) {
    return concat(target, " ", sign, "= ", operand, ";");
  }
  return concat(target, " = ", binary(op, target, operand), ";");
}

Sum& Sum::add(std::int64_t coefficient, std::string_view term) {
  if (coefficient == 0) {
    return *this;
  }
  const std::int64_t size = coefficient < 0 ? -coefficient : coefficient;
  sign(coefficient < 0);
  const bool is_sum = term.find(" + ") != std::string_view::npos;
  const std::string whole = is_sum && coefficient != 1 ? concat("(", term, ")") : concat(term);
  text_ += size == 1 ? whole : concat(size, " * ", whole);
  return *this;
}

std::string Sum::text() {
  if (constant_ != 0 || text_.empty()) {
    sign(constant_ < 0);
    text_ += concat(constant_ < 0 ? -constant_ : constant_);
  }
  return std::move(text_);
}

void Sum::sign(bool negative) {
  if (text_.empty()) {
    text_ += negative ? "-" : "";
  } else {
    text_ += negative ? " - " : " + ";
  }
}

std::string element(const Tensor& tensor, const std::string& name, const Values& values) {
  std::vector<std::pair<std::int64_t, std::size_t>> strides;
  for (std::size_t v = 0; v < values.size(); ++v) {
    strides.emplace_back(tensor.stride_of(v), v);
  }
  std::stable_sort(strides.begin(), strides.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Sum index(tensor.origin());
  for (const auto& [stride, v] : strides) {
    index.add(stride, values[v]);
  }
  return concat(name, "[", index.text(), "]");
}

std::string guard(const std::vector<Var>& vars, const Tensor& tensor, const Values& values) {
  std::vector<std::string> conditions;
  for (const Dimension& dimension : tensor.dimensions) {
    std::int64_t lowest = dimension.offset;
    std::int64_t highest = dimension.offset;
    for (std::size_t v = 0; v < vars.size(); ++v) {
      const std::int64_t reach = dimension.coefficients[v] * (vars[v].extent - 1);
      (reach < 0 ? lowest : highest) += reach;
    }
    if (lowest < 0) {
      conditions.push_back(concat(dimension_index(dimension, values), " >= 0"));
    }
    if (highest >= dimension.size) {
      conditions.push_back(concat(dimension_index(dimension, values), " < ", dimension.size));
    }
  }
  return join(conditions, " && ");
}

std::string describe(const Computation& computation) { return Description(computation).text(); }

}  // namespace foretune::loop::c_text
