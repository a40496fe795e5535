#include "foretune/loop/machine/expected_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/register_tiles.h"

namespace foretune::loop {
namespace {

constexpr double kWalkedPoints = 1e6;
// Integers up to this are exact in f32.
constexpr float kLargestWhole = 0x1p24F;

using Chosen = std::vector<std::size_t>;  // variables, ascending

template <class Predicate>
Chosen vars_where(const Computation& computation, const Predicate& is_chosen) {
  Chosen out;
  for (std::size_t var = 0; var < computation.vars.size(); ++var) {
    if (is_chosen(var)) {
      out.push_back(var);
    }
  }
  return out;
}

bool contains(const Chosen& chosen, std::size_t var) {
  return std::binary_search(chosen.begin(), chosen.end(), var);
}

double volume(const Computation& computation, const Chosen& chosen) {
  return std::accumulate(chosen.begin(), chosen.end(), 1.0, [&](double product, std::size_t var) {
    return product * static_cast<double>(computation.vars[var].extent);
  });
}

bool moves_with(const Tensor& tensor, std::size_t var) {
  return std::any_of(tensor.dimensions.begin(), tensor.dimensions.end(),
                     [&](const Dimension& dimension) { return dimension.coefficients[var] != 0; });
}

// A table of one number modulo 2^64 for each combination of values of some variables.
struct Table {
  Tensor tensor;
  std::vector<std::uint64_t> numbers;

  Table(const Computation& computation, const Chosen& chosen) {
    for (auto var = chosen.rbegin(); var != chosen.rend(); ++var) {
      Dimension dimension{.size = computation.vars[*var].extent, .stride = tensor.elements()};
      dimension.coefficients.resize(computation.vars.size());
      dimension.coefficients[*var] = 1;
      tensor.dimensions.push_back(std::move(dimension));
    }
    numbers.resize(static_cast<std::size_t>(tensor.elements()));
  }
};

// Computes sums[...] += values[...] * factors[...] over all points of some variables, modulo 2^64.
class MultiplyAdd {
 public:
  MultiplyAdd(const Computation& computation, const Tensor& tensor, std::span<const float> values,
              const Table& factors, Table& sums)
      : computation_(computation),
        tensor_(tensor),
        values_(values),
        factors_(factors),
        sums_(sums),
        point_(computation.vars.size(), 0) {}

  // Returns true when all values read are integers that f32 holds exactly; otherwise the sums mean
  // nothing.
  bool over(Chosen vars) {
    // The innermost loop is a long one, since starting a loop costs as much as 30 points; among
    // long loops it is the one along memory.
    const auto key = [&](std::size_t var) {
      return std::pair(std::min<std::int64_t>(computation_.vars[var].extent, 30),
                       -std::abs(tensor_.stride_of(var)));
    };
    std::stable_sort(vars.begin(), vars.end(),
                     [&](std::size_t left, std::size_t right) { return key(left) < key(right); });
    vars_ = std::move(vars);
    loop(0);
    return are_whole_;
  }

 private:
  void loop(std::size_t level) {
    const std::size_t var = vars_[level];
    if (level + 1 == vars_.size()) {
      row(var);
    } else {
      for (std::int64_t value = 0; value < computation_.vars[var].extent; ++value) {
        point_[var] = value;
        loop(level + 1);
      }
    }
    point_[var] = 0;
  }

  void row(std::size_t var) {
    // Values outside of the tensor are 0, and those inside are contiguous.
    std::int64_t first = 0;
    std::int64_t last = computation_.vars[var].extent - 1;
    std::int64_t ignored = 0;
    std::int64_t place = 0;
    while (first <= last && !is_inside(tensor_, var, first, &place)) {
      ++first;
    }
    while (last > first && !is_inside(tensor_, var, last, &ignored)) {
      --last;
    }
    std::int64_t factor_place = 0;
    std::int64_t sum_place = 0;
    is_inside(factors_.tensor, var, first, &factor_place);
    is_inside(sums_.tensor, var, first, &sum_place);
    const std::int64_t step = tensor_.stride_of(var);
    const std::int64_t factor_step = factors_.tensor.stride_of(var);
    const std::int64_t sum_step = sums_.tensor.stride_of(var);
    for (; first <= last; ++first) {
      const float value = values_[static_cast<std::size_t>(place)];
      const bool is_small = std::abs(value) <= kLargestWhole;
      const auto whole = static_cast<std::int64_t>(is_small ? value : 0.0F);
      are_whole_ = are_whole_ && is_small && static_cast<float>(whole) == value;
      sums_.numbers[static_cast<std::size_t>(sum_place)] +=
          static_cast<std::uint64_t>(whole) *
          factors_.numbers[static_cast<std::size_t>(factor_place)];
      place += step;
      factor_place += factor_step;
      sum_place += sum_step;
    }
  }

  bool is_inside(const Tensor& tensor, std::size_t var, std::int64_t value, std::int64_t* place) {
    point_[var] = value;
    return inside(tensor, point_, place);
  }

  const Computation& computation_;
  const Tensor& tensor_;
  std::span<const float> values_;
  const Table& factors_;
  Table& sums_;
  Chosen vars_;
  std::vector<std::int64_t> point_;
  bool are_whole_ = true;
};

// The variables of the output that only input `side` moves with, over which everything is summed.
struct Contraction {
  std::size_t side = 0;
  Chosen contracted;
};

std::optional<Contraction> contraction_of(const Computation& computation) {
  if (!computation.has_reduction() || computation.reduce != Op::kAdd || computation.combined != 2 ||
      computation.combine != Op::kMultiply) {
    return std::nullopt;
  }
  std::optional<Contraction> best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t side : {0U, 1U}) {
    const Tensor& own = computation.inputs[side];
    const Tensor& other = computation.inputs[1 - side];
    const Chosen contracted = vars_where(computation, [&](std::size_t var) {
      return !computation.vars[var].is_reduction && moves_with(own, var) && !moves_with(other, var);
    });
    const Chosen of_own =
        vars_where(computation, [&](std::size_t var) { return moves_with(own, var); });
    const double work =
        volume(computation, of_own) + computation.points() / volume(computation, contracted);
    if (!contracted.empty() && work < least) {
      least = work;
      best = {.side = side, .contracted = contracted};
    }
  }
  return best;
}

bool has_right_sums(const Computation& computation, const Contraction& contraction,
                    const Inputs& inputs, std::span<const float> sums) {
  const std::size_t side = contraction.side;
  const auto& contracted = contraction.contracted;
  const Tensor& own = computation.inputs[side];
  const auto vars_left = [&](const auto& is_chosen) {
    return vars_where(
        computation, [&](std::size_t var) { return is_chosen(var) && !contains(contracted, var); });
  };
  const auto is_of_own = [&](std::size_t var) { return moves_with(own, var); };
  const auto is_of_output = [&](std::size_t var) { return !computation.vars[var].is_reduction; };

  Table weights(computation, contracted);
  Rng rng(3);
  std::generate(weights.numbers.begin(), weights.numbers.end(), [&] { return rng.next() | 1U; });
  Table weighted_input(computation, vars_left(is_of_own));
  Table expected(computation, vars_left(is_of_output));
  Table weighted_output = expected;
  const bool are_whole =
      MultiplyAdd(computation, own, inputs[side], weights, weighted_input)
          .over(vars_where(computation, is_of_own)) &&
      MultiplyAdd(computation, computation.inputs[1 - side], inputs[1 - side], weighted_input,
                  expected)
          .over(vars_left([](std::size_t) { return true; })) &&
      MultiplyAdd(computation, computation.output, sums, weights, weighted_output)
          .over(vars_where(computation, is_of_output));
  return are_whole && weighted_output.numbers == expected.numbers;
}

// Computes the reduction alone, by an unmeasured schedule.
std::optional<AlignedBuffer> compiled_sums(const Computation& computation, const Inputs& inputs,
                                           const Jit& jit) {
  Computation sums = computation;
  sums.steps.clear();
  sums.inputs.resize(2);
  std::vector<Nest> nests = textbook_nests(sums, jit.unit(), 1);
  nests.push_back(Nest::plain(sums));
  for (const Nest& nest : nests) {
    const Result<Kernel> kernel = jit.compile(sums, nest);
    if (!kernel) {
      continue;
    }
    Result<Kernel::Workspace> workspace = kernel->make_workspace(1);
    auto out = AlignedBuffer::create(static_cast<std::size_t>(sums.output.elements()));
    if (!workspace || !out) {
      return std::nullopt;
    }
    std::fill(out->view().begin(), out->view().end(), std::numeric_limits<float>::quiet_NaN());
    kernel->run(std::span(inputs).first(2), out->view(), *workspace);
    return *std::move(out);
  }
  return std::nullopt;
}

}  // namespace

bool has_right_sums(const Computation& computation, const Inputs& inputs,
                    std::span<const float> sums) {
  const std::optional<Contraction> contraction = contraction_of(computation);
  return contraction && has_right_sums(computation, *contraction, inputs, sums);
}

std::vector<double> expected_outputs(const Computation& computation, const Inputs& inputs,
                                     const Jit& jit) {
  const std::optional<Contraction> contraction = contraction_of(computation);
  if (computation.points() > kWalkedPoints && contraction) {
    const std::optional<AlignedBuffer> sums = compiled_sums(computation, inputs, jit);
    if (sums && has_right_sums(computation, *contraction, inputs, sums->view())) {
      return with_steps(computation, inputs, {sums->view().begin(), sums->view().end()});
    }
  }
  return reference(computation, inputs);
}

}  // namespace foretune::loop
