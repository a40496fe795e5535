#include "foretune/loop/machine/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune::loop {
namespace {

using Point = std::vector<std::int64_t>;  // one value per variable

double read(const Tensor& tensor, std::span<const float> values, const Point& point) {
  std::int64_t place = 0;
  if (!inside(tensor, point, &place)) {
    return 0;
  }
  return static_cast<double>(values[static_cast<std::size_t>(place)]);
}

double combined_value(const Computation& computation, const Inputs& inputs, const Point& point) {
  const double left = read(computation.inputs[0], inputs[0], point);
  if (computation.combined == 1) {
    return left;
  }
  return apply(computation.combine, left, read(computation.inputs[1], inputs[1], point));
}

double after_steps(const Computation& computation, const Inputs& inputs, const Point& point,
                   double value) {
  for (const Step& step : computation.steps) {
    auto operand = static_cast<double>(step.constant);
    if (step.input >= 0) {
      const auto input = static_cast<std::size_t>(step.input);
      operand = read(computation.inputs[input], inputs[input], point);
    }
    value = apply(step.op, value, operand);
  }
  return value;
}

void check_sizes(const Computation& computation, const Inputs& inputs) {
  FORETUNE_CHECK(inputs.size() == computation.inputs.size());
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    FORETUNE_CHECK(inputs[input].size() >=
                   static_cast<std::size_t>(computation.inputs[input].elements()));
  }
}

std::size_t output_place(const Computation& computation, const Point& point) {
  std::int64_t place = 0;
  FORETUNE_CHECK(inside(computation.output, point, &place));
  return static_cast<std::size_t>(place);
}

std::vector<double> nothing_written(const Computation& computation) {
  return std::vector<double>(static_cast<std::size_t>(computation.output.elements()),
                             std::numeric_limits<double>::quiet_NaN());
}

// Calls visit() with all values of the variables from `first` on that are, or are not, reduction
// variables.
template <class Visit>
void for_each(const Computation& computation, bool is_reduction, std::size_t first, Point& point,
              const Visit& visit) {
  if (first == computation.vars.size()) {
    visit();
    return;
  }
  const Var& var = computation.vars[first];
  if (var.is_reduction != is_reduction) {
    for_each(computation, is_reduction, first + 1, point, visit);
    return;
  }
  for (std::int64_t value = 0; value < var.extent; ++value) {
    point[first] = value;
    for_each(computation, is_reduction, first + 1, point, visit);
  }
  point[first] = 0;
}

// Returns the value of one output. The point's reduction variables are 0.
double output_value(const Computation& computation, const Inputs& inputs, Point& point) {
  if (!computation.has_reduction()) {
    return after_steps(computation, inputs, point, combined_value(computation, inputs, point));
  }
  auto value = static_cast<double>(computation.neutral());
  for_each(computation, true, 0, point, [&] {
    value = apply(computation.reduce, value, combined_value(computation, inputs, point));
  });
  return after_steps(computation, inputs, point, value);
}

// Walks a nest, and remembers the points that it visited.
class Walk {
 public:
  Walk(const Computation& computation, const Nest& nest, const Inputs& inputs)
      : computation_(computation),
        nest_(nest),
        inputs_(inputs),
        point_(computation.vars.size(), 0),
        values_(nothing_written(computation)),
        visited_(static_cast<std::size_t>(computation.points()), false) {
    for (const Var& var : computation.vars) {
      covered_.push_back(var.extent);
    }
  }

  Result<std::vector<double>> values() {
    for (const Loop& loop : nest_.loops) {
      if (loop.var >= computation_.vars.size() || loop.step < 1) {
        return fail(ErrorCode::kInternal, "a loop moves in steps of ", loop.step, " over variable ",
                    loop.var, " of ", computation_.vars.size());
      }
    }
    Point point(computation_.vars.size(), 0);
    if (computation_.has_reduction()) {
      for_each(computation_, false, 0, point, [&] {
        values_[output_place(computation_, point)] = static_cast<double>(computation_.neutral());
      });
    }
    FORETUNE_TRY_STATUS(start(0));
    const auto missed = std::count(visited_.begin(), visited_.end(), false);
    if (missed != 0) {
      return fail(ErrorCode::kInternal, "the nest does not visit ", missed, " of ", visited_.size(),
                  " points");
    }
    return computation_.has_reduction() ? with_steps(computation_, inputs_, std::move(values_))
                                        : std::move(values_);
  }

 private:
  // Runs the loop at `level` and all inside of it. There, covered_ of its variable is the range
  // left for the loops inside.
  Status start(std::size_t level) {
    if (level == nest_.loops.size()) {
      return visit();
    }
    const Loop& loop = nest_.loops[level];
    const std::int64_t begin = point_[loop.var];
    const std::int64_t covered = covered_[loop.var];
    for (std::int64_t moved = 0; moved < covered; moved += loop.step) {
      point_[loop.var] = begin + moved;
      covered_[loop.var] = std::min(loop.step, covered - moved);
      FORETUNE_TRY_STATUS(start(level + 1));
    }
    point_[loop.var] = begin;
    covered_[loop.var] = covered;
    return {};
  }

  Status visit() {
    std::size_t index = 0;
    for (std::size_t var = 0; var < point_.size(); ++var) {
      const std::int64_t extent = computation_.vars[var].extent;
      index = index * static_cast<std::size_t>(extent) + static_cast<std::size_t>(point_[var]);
    }
    if (visited_[index]) {
      return fail(ErrorCode::kInternal, "the nest visits the point ", point_text(), " twice");
    }
    visited_[index] = true;
    const double value = combined_value(computation_, inputs_, point_);
    double& out = values_[output_place(computation_, point_)];
    if (computation_.has_reduction()) {
      out = apply(computation_.reduce, out, value);
    } else {
      out = after_steps(computation_, inputs_, point_, value);
    }
    return {};
  }

  [[nodiscard]] std::string point_text() const {
    std::vector<std::string> parts;
    for (std::size_t var = 0; var < point_.size(); ++var) {
      parts.push_back(concat(computation_.vars[var].name, "=", point_[var]));
    }
    return join(parts, " ");
  }

  const Computation& computation_;
  const Nest& nest_;
  const Inputs& inputs_;
  Point point_;
  std::vector<std::int64_t> covered_;  // per variable, from point_ on, by the loops inside
  std::vector<double> values_;
  std::vector<bool> visited_;
};

bool divides(const Computation& computation) {
  return (computation.combined == 2 && computation.combine == Op::kDivide) ||
         std::any_of(computation.steps.begin(), computation.steps.end(),
                     [](const Step& step) { return step.op == Op::kDivide; });
}

bool is_divisor(const Computation& computation, std::size_t input) {
  return (input == 1 && computation.combined == 2 && computation.combine == Op::kDivide) ||
         std::any_of(computation.steps.begin(), computation.steps.end(), [&](const Step& step) {
           return step.op == Op::kDivide && step.input == static_cast<int>(input);
         });
}

}  // namespace

std::vector<double> reference(const Computation& computation, const Inputs& inputs) {
  check_sizes(computation, inputs);
  std::vector<double> out = nothing_written(computation);
  Point point(computation.vars.size(), 0);
  for_each(computation, false, 0, point, [&] {
    out[output_place(computation, point)] = output_value(computation, inputs, point);
  });
  return out;
}

std::vector<double> with_steps(const Computation& computation, const Inputs& inputs,
                               std::vector<double> reduced) {
  if (computation.steps.empty()) {
    return reduced;
  }
  Point point(computation.vars.size(), 0);
  for_each(computation, false, 0, point, [&] {
    double& value = reduced[output_place(computation, point)];
    value = after_steps(computation, inputs, point, value);
  });
  return reduced;
}

Result<std::vector<double>> interpret(const Computation& computation, const Nest& nest,
                                      const Inputs& inputs) {
  check_sizes(computation, inputs);
  return Walk(computation, nest, inputs).values();
}

std::vector<std::vector<float>> whole_inputs(const Computation& computation, Rng& rng) {
  std::vector<std::vector<float>> all;
  for (std::size_t input = 0; input < computation.inputs.size(); ++input) {
    const bool without_zero = is_divisor(computation, input);
    std::vector<float> values(static_cast<std::size_t>(computation.inputs[input].elements()));
    for (float& value : values) {
      const std::int64_t whole =
          without_zero ? rng.between(1, 4) * (rng.below(2) == 0 ? 1 : -1) : rng.between(-4, 4);
      value = static_cast<float>(whole);
    }
    all.push_back(std::move(values));
  }
  return all;
}

std::string difference(const Computation& computation, std::span<const double> expected,
                       std::span<const float> got) {
  if (got.size() != expected.size()) {
    return concat(got.size(), " values instead of ", expected.size());
  }
  constexpr double kUnits = 8;  // a division and the steps behind it, each rounded once
  const double tolerance = divides(computation)
                               ? kUnits * static_cast<double>(std::numeric_limits<float>::epsilon())
                               : 0.0;
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t place = 0; place < got.size(); ++place) {
    const double value = expected[place];
    const auto other = static_cast<double>(got[place]);
    const double allowed = tolerance * std::max(1.0, std::abs(value));
    const bool near = std::isfinite(value) && std::abs(other - value) <= allowed;
    if (std::isnan(value) || other == value || near) {
      continue;
    }
    if (wrong == 0) {
      first = concat("place ", place, " is ", other, " instead of ", value);
    }
    ++wrong;
  }
  return wrong == 0 ? "" : concat(first, ", ", wrong, " of ", got.size(), " are wrong");
}

}  // namespace foretune::loop
