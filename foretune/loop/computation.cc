#include "foretune/loop/computation.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/loop/chains.h"

namespace foretune::loop {
namespace {

constexpr double kMaxPoints = 1e15;
constexpr std::array<std::string_view, 6> kOpNames = {"add",    "subtract", "multiply",
                                                      "divide", "max",      "min"};

bool is_known(Op op) { return static_cast<std::size_t>(op) < kOpNames.size(); }

template <class Number>
Number apply_to(Op op, Number left, Number right) {
  switch (op) {
    case Op::kAdd:
      return left + right;
    case Op::kSubtract:
      return left - right;
    case Op::kMultiply:
      return left * right;
    case Op::kDivide:
      return left / right;
    case Op::kMax:
      return left > right ? left : right;
    case Op::kMin:
      return left < right ? left : right;
  }
  return right;
}

std::size_t find(const std::vector<Var>& vars, std::string_view name) {
  return static_cast<std::size_t>(
      std::find_if(vars.begin(), vars.end(), [&](const Var& var) { return var.name == name; }) -
      vars.begin());
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Status check_vars(const std::vector<Var>& vars) {
  if (vars.empty() || vars.size() > kMaxVars) {
    return fail(ErrorCode::kInvalidArgument, "a computation has 1 to ", kMaxVars,
                " variables, not ", vars.size());
  }
  for (std::size_t i = 0; i < vars.size(); ++i) {
    const Var& var = vars[i];
    if (var.name.empty() || !std::all_of(var.name.begin(), var.name.end(), is_letter)) {
      return fail(ErrorCode::kInvalidArgument, "a variable is named with letters only, not ",
                  quoted(var.name));
    }
    if (find(vars, var.name) != i) {
      return fail(ErrorCode::kInvalidArgument, "two variables are named ", var.name);
    }
    if (var.extent < 1 || var.extent > kMaxExtent) {
      return fail(ErrorCode::kInvalidArgument, "variable ", var.name, " has the extent ",
                  var.extent, ", and extents go from 1 to ", kMaxExtent);
    }
  }
  return {};
}

struct Range {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

Range index_range(const std::vector<Var>& vars, const Dimension& dimension) {
  Range range{dimension.offset, dimension.offset};
  for (std::size_t v = 0; v < vars.size(); ++v) {
    const std::int64_t last = dimension.coefficients[v] * (vars[v].extent - 1);
    (last < 0 ? range.lowest : range.highest) += last;
  }
  return range;
}

bool is_within(std::int64_t value, std::int64_t limit) { return value >= -limit && value <= limit; }

// The limits of each number keep the sums of this and of index_range() below 2^63.
Status check_size(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (const Dimension& dimension : tensor.dimensions) {
    if (dimension.size < 1 || dimension.stride < 1) {
      return fail(ErrorCode::kInvalidArgument, "tensor ", tensor.name, " has a dimension of size ",
                  dimension.size, " and stride ", dimension.stride, ", and both are at least 1");
    }
    elements = std::max(dimension.size, dimension.stride) > kMaxElements
                   ? kMaxElements + 1
                   : elements + (dimension.size - 1) * dimension.stride;
    if (elements > kMaxElements) {
      return fail(ErrorCode::kUnsupported, "tensor ", tensor.name, " has more than ", kMaxElements,
                  " elements");
    }
  }
  return {};
}

Status check_indices(const std::vector<Var>& vars, const Tensor& tensor) {
  for (const Dimension& dimension : tensor.dimensions) {
    if (dimension.coefficients.size() != vars.size()) {
      return fail(ErrorCode::kInvalidArgument, "tensor ", tensor.name, " has a dimension with ",
                  dimension.coefficients.size(), " coefficients for ", vars.size(), " variables");
    }
    if (!is_within(dimension.offset, kMaxElements) ||
        !std::all_of(dimension.coefficients.begin(), dimension.coefficients.end(),
                     [](std::int64_t each) { return is_within(each, kMaxElements); })) {
      return fail(ErrorCode::kUnsupported, "tensor ", tensor.name,
                  " has an offset or a coefficient beyond ", kMaxElements);
    }
  }
  return {};
}

// Checks all addresses. A read in the padding only computes its address, but that must fit as well.
Status check_reach(const std::vector<Var>& vars, const Tensor& tensor) {
  Range places;
  for (const Dimension& dimension : tensor.dimensions) {
    const Range range = index_range(vars, dimension);
    const bool fits =
        is_within(range.lowest, kMaxElements) && is_within(range.highest, kMaxElements);
    places.lowest += fits ? range.lowest * dimension.stride : -kMaxElements - 1;
    places.highest += fits ? range.highest * dimension.stride : 0;
    if (!is_within(places.lowest, kMaxElements) || !is_within(places.highest, kMaxElements)) {
      return fail(ErrorCode::kUnsupported, "tensor ", tensor.name, " reaches further than ",
                  kMaxElements, " elements with its padding");
    }
  }
  return {};
}

Status check_tensor(const std::vector<Var>& vars, const Tensor& tensor) {
  if (tensor.name.empty() || !is_letter(tensor.name.front()) ||
      !std::all_of(tensor.name.begin(), tensor.name.end(),
                   [](char c) { return is_letter(c) || is_digit(c); })) {
    return fail(ErrorCode::kInvalidArgument,
                "a tensor is named with letters and digits behind a letter, not ",
                quoted(tensor.name));
  }
  if (tensor.dimensions.size() > kMaxVars) {
    return fail(ErrorCode::kUnsupported, "tensor ", tensor.name, " has ", tensor.dimensions.size(),
                " dimensions, and there may be ", kMaxVars);
  }
  FORETUNE_TRY_STATUS(check_size(tensor));
  FORETUNE_TRY_STATUS(check_indices(vars, tensor));
  return check_reach(vars, tensor);
}

// Checks that a tensor belongs to places of the output: it depends on no reduction variable and has
// no padding.
Status check_at_output(const std::vector<Var>& vars, const Tensor& tensor) {
  for (const Dimension& dimension : tensor.dimensions) {
    for (std::size_t v = 0; v < vars.size(); ++v) {
      if (vars[v].is_reduction && dimension.coefficients[v] != 0) {
        return fail(ErrorCode::kInvalidArgument, "tensor ", tensor.name,
                    " is indexed by the reduction variable ", vars[v].name);
      }
    }
    const Range range = index_range(vars, dimension);
    if (range.lowest < 0 || range.highest >= dimension.size) {
      return fail(ErrorCode::kInvalidArgument, "tensor ", tensor.name, " has an index from ",
                  range.lowest, " to ", range.highest, " in a dimension of size ", dimension.size);
    }
  }
  return {};
}

// Checks that output places differ by a sufficient, not necessary condition: each variable steps
// over all elements that those with smaller strides reach.
Status check_places_differ(const std::vector<Var>& vars, const Tensor& output) {
  struct Stride {
    std::int64_t elements = 0;
    std::size_t var = 0;
  };
  std::vector<Stride> strides;
  for (std::size_t v = 0; v < vars.size(); ++v) {
    if (!vars[v].is_reduction && vars[v].extent > 1) {
      const std::int64_t stride = output.stride_of(v);
      strides.push_back({stride < 0 ? -stride : stride, v});
    }
  }
  std::sort(strides.begin(), strides.end(), [](const Stride& left, const Stride& right) {
    return std::pair(left.elements, left.var) < std::pair(right.elements, right.var);
  });
  std::int64_t needed = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const Var& var = vars[strides[i].var];
    if (strides[i].elements < needed) {
      return fail(ErrorCode::kInvalidArgument, "variable ", var.name,
                  " is no reduction variable and moves by ", strides[i].elements,
                  " elements in the output ", output.name, " where it takes ", needed,
                  " for every point to have a place of its own");
    }
    needed = strides[i].elements * var.extent;
  }
  return {};
}

Status check_inputs(const Computation& computation) {
  const std::vector<Tensor>& inputs = computation.inputs;
  if (computation.combined != 1 && computation.combined != 2) {
    return fail(ErrorCode::kInvalidArgument, "1 or 2 inputs are combined, not ",
                computation.combined);
  }
  const auto combined = static_cast<std::size_t>(computation.combined);
  if (inputs.size() < combined || inputs.size() > kMaxInputs) {
    return fail(ErrorCode::kInvalidArgument, "there are ", combined, " to ", kMaxInputs,
                " inputs where ", combined, " are combined, not ", inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FORETUNE_TRY_STATUS(check_tensor(computation.vars, inputs[i]));
    if (inputs[i].name == computation.output.name ||
        std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Tensor& other) { return other.name == inputs[i].name; })) {
      return fail(ErrorCode::kInvalidArgument, "two tensors are named ", inputs[i].name);
    }
    if (i >= combined) {
      FORETUNE_TRY_STATUS(check_at_output(computation.vars, inputs[i]));
    }
  }
  return {};
}

Status check_operations(const Computation& computation) {
  if (!is_known(computation.combine)) {
    return fail(ErrorCode::kInvalidArgument, "the inputs are combined by no known operation");
  }
  if (computation.reduce != Op::kAdd && computation.reduce != Op::kMax &&
      computation.reduce != Op::kMin) {
    return fail(ErrorCode::kInvalidArgument, "a reduction adds or takes the max or min, not ",
                to_string(computation.reduce));
  }
  for (const Step& step : computation.steps) {
    if (!is_known(step.op)) {
      return fail(ErrorCode::kInvalidArgument, "a step is no known operation");
    }
    if (step.input != -1 && (step.input < computation.combined ||
                             std::cmp_greater_equal(step.input, computation.inputs.size()))) {
      return fail(ErrorCode::kInvalidArgument, "a step reads input ", step.input, ", and of the ",
                  computation.inputs.size(), " inputs the first ", computation.combined,
                  " are not for steps");
    }
  }
  return {};
}

struct Size {
  std::string_view name;
  std::int64_t value = 0;
  std::int64_t lowest = 1;
};

Status check_sizes(std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value < size.lowest || size.value > kMaxExtent) {
      return fail(ErrorCode::kInvalidArgument, size.name, " is ", size.value, ", and goes from ",
                  size.lowest, " to ", kMaxExtent);
    }
  }
  return {};
}

struct Term {
  std::string_view var;
  std::int64_t coefficient = 1;
};

struct Axis {
  std::int64_t size = 1;
  std::vector<Term> terms;
  std::int64_t offset = 0;
};

// Returns a tensor by rows. An omitted variable is always 0, and so are its terms.
Tensor dense(const std::vector<Var>& vars, std::string name, const std::vector<Axis>& axes) {
  Tensor tensor{.name = std::move(name), .dimensions = {}};
  tensor.dimensions.resize(axes.size());
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    Dimension& dimension = tensor.dimensions[i];
    dimension.size = axes[i].size;
    dimension.stride = stride;
    dimension.offset = axes[i].offset;
    dimension.coefficients.assign(vars.size(), 0);
    for (const Term& term : axes[i].terms) {
      if (const std::size_t var = find(vars, term.var); var < vars.size()) {
        dimension.coefficients[var] += term.coefficient;
      }
    }
    // Saturates, so that it stays a valid number; check() refuses it.
    stride = std::min(stride * axes[i].size, kMaxElements + 1);
  }
  return tensor;
}

void append_epilogue(Computation& computation, const Epilogue& epilogue, const Axis& channels) {
  if (epilogue.bias) {
    computation.steps.push_back(
        {.op = Op::kAdd, .input = static_cast<int>(computation.inputs.size())});
    computation.inputs.push_back(dense(computation.vars, "bias", {channels}));
    computation.name += " bias";
  }
  if (epilogue.relu) {
    computation.steps.push_back({.op = Op::kMax});
    computation.name += " relu";
  }
}

Result<Computation> checked(Computation computation) {
  if (Status status = computation.check(); !status) {
    return fail_because(status.error(), computation.name);
  }
  return computation;
}

std::string conv_name(const ConvSizes& sizes) {
  std::string name =
      concat("conv b=", sizes.batch, " c=", sizes.channels, " h=", sizes.height, " w=", sizes.width,
             " o=", sizes.out_channels, " r=", sizes.kernel_height, " s=", sizes.kernel_width);
  const auto append = [&](std::string_view key, std::int64_t value, std::int64_t standard) {
    name += value == standard ? "" : concat(" ", key, "=", value);
  };
  append("stride", sizes.stride, 1);
  append("dilation", sizes.dilation, 1);
  append("pad", sizes.pad, 0);
  append("groups", sizes.groups, 1);
  return sizes.channels_last ? name + " nhwc" : name;
}

Status check_conv(const ConvSizes& sizes) {
  FORETUNE_TRY_STATUS(check_sizes({{"the batch", sizes.batch},
                                   {"the number of channels", sizes.channels},
                                   {"the number of output channels", sizes.out_channels},
                                   {"the height", sizes.height},
                                   {"the width", sizes.width},
                                   {"the kernel's height", sizes.kernel_height},
                                   {"the kernel's width", sizes.kernel_width},
                                   {"the stride", sizes.stride},
                                   {"the dilation", sizes.dilation},
                                   {"the padding", sizes.pad, 0},
                                   {"the number of groups", sizes.groups}}));
  if (sizes.channels % sizes.groups != 0 || sizes.out_channels % sizes.groups != 0) {
    return fail(ErrorCode::kInvalidArgument, sizes.groups, " groups do not divide ", sizes.channels,
                " channels and ", sizes.out_channels, " output channels");
  }
  return {};
}

// Returns a size, which is below 1 where the kernel does not fit.
std::int64_t conv_output_size(const ConvSizes& sizes, std::int64_t size, std::int64_t kernel) {
  const std::int64_t free = size + 2 * sizes.pad - sizes.dilation * (kernel - 1) - 1;
  return free < 0 ? 0 : free / sizes.stride + 1;
}

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t out = 1;
  for (const Dimension& dimension : dimensions) {
    out += (dimension.size - 1) * dimension.stride;
  }
  return out;
}

std::int64_t Tensor::stride_of(std::size_t var) const {
  std::int64_t out = 0;
  for (const Dimension& dimension : dimensions) {
    out += dimension.coefficients[var] * dimension.stride;
  }
  return out;
}

std::int64_t Tensor::origin() const {
  std::int64_t out = 0;
  for (const Dimension& dimension : dimensions) {
    out += dimension.offset * dimension.stride;
  }
  return out;
}

std::string_view to_string(Op op) {
  return is_known(op) ? kOpNames[static_cast<std::size_t>(op)] : "no operation";
}

float apply(Op op, float left, float right) { return apply_to(op, left, right); }
double apply(Op op, double left, double right) { return apply_to(op, left, right); }

Status Computation::check() const {
  FORETUNE_TRY_STATUS(check_vars(vars));
  if (points() > kMaxPoints) {
    return fail(ErrorCode::kUnsupported, "there are more than ", kMaxPoints, " points");
  }
  FORETUNE_TRY_STATUS(check_tensor(vars, output));
  FORETUNE_TRY_STATUS(check_at_output(vars, output));
  FORETUNE_TRY_STATUS(check_places_differ(vars, output));
  FORETUNE_TRY_STATUS(check_inputs(*this));
  return check_operations(*this);
}

bool Computation::has_reduction() const {
  return std::any_of(vars.begin(), vars.end(), [](const Var& var) { return var.is_reduction; });
}

double Computation::points() const {
  double out = 1;
  for (const Var& var : vars) {
    out *= static_cast<double>(var.extent);
  }
  return out;
}

double Computation::flops() const {
  double places = 1;
  for (const Var& var : vars) {
    places *= var.is_reduction ? 1 : static_cast<double>(var.extent);
  }
  const int per_point = (combined == 2 ? 1 : 0) + (has_reduction() ? 1 : 0);
  return points() * per_point + places * static_cast<double>(steps.size());
}

float Computation::neutral() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return reduce == Op::kMax ? -kInfinity : reduce == Op::kMin ? kInfinity : 0.0F;
}

bool inside(const Tensor& tensor, const std::vector<std::int64_t>& point, std::int64_t* place) {
  *place = 0;
  std::int64_t sum = 0;
  for (const Dimension& dimension : tensor.dimensions) {
    std::int64_t index = dimension.offset;
    for (std::size_t v = 0; v < dimension.coefficients.size(); ++v) {
      index += dimension.coefficients[v] * point[v];
    }
    if (index < 0 || index >= dimension.size) {
      return false;
    }
    sum += index * dimension.stride;
  }
  *place = sum;
  return true;
}

Result<Computation> matmul(const MatmulSizes& sizes) {
  FORETUNE_TRY_STATUS(
      check_sizes({{"m", sizes.m}, {"n", sizes.n}, {"k", sizes.k}, {"the batch", sizes.batch}}));
  Computation out;
  out.name = concat("mm m=", sizes.m, " n=", sizes.n, " k=", sizes.k,
                    sizes.batch > 1 ? concat(" batch=", sizes.batch) : "",
                    sizes.transpose_a ? " ta" : "", sizes.transpose_b ? " tb" : "");
  if (sizes.batch > 1) {
    out.vars.push_back({.name = "b", .extent = sizes.batch});
  }
  out.vars.push_back({.name = "m", .extent = sizes.m});
  out.vars.push_back({.name = "k", .extent = sizes.k, .is_reduction = true});
  out.vars.push_back({.name = "n", .extent = sizes.n});
  const Axis m{sizes.m, {{"m"}}};
  const Axis n{sizes.n, {{"n"}}};
  const Axis k{sizes.k, {{"k"}}};
  const auto matrix = [&](std::string name, const Axis& rows, const Axis& columns) {
    std::vector<Axis> axes;
    if (sizes.batch > 1) {
      axes.push_back({sizes.batch, {{"b"}}});
    }
    axes.push_back(rows);
    axes.push_back(columns);
    return dense(out.vars, std::move(name), axes);
  };
  out.output = matrix("c", m, n);
  out.inputs.push_back(sizes.transpose_a ? matrix("a", k, m) : matrix("a", m, k));
  out.inputs.push_back(sizes.transpose_b ? matrix("b", n, k) : matrix("b", k, n));
  append_epilogue(out, sizes.epilogue, n);
  return checked(std::move(out));
}

Result<Computation> conv2d(const ConvSizes& sizes) {
  FORETUNE_TRY_STATUS(check_conv(sizes));
  const std::int64_t out_height = conv_output_size(sizes, sizes.height, sizes.kernel_height);
  const std::int64_t out_width = conv_output_size(sizes, sizes.width, sizes.kernel_width);
  if (out_height < 1 || out_width < 1) {
    return fail(ErrorCode::kInvalidArgument, conv_name(sizes),
                ": the kernel does not fit into the padded input");
  }
  const std::int64_t group_in = sizes.channels / sizes.groups;
  const std::int64_t group_out = sizes.out_channels / sizes.groups;
  Computation out;
  out.name = conv_name(sizes);
  for (const Var& var : {Var{"b", sizes.batch}, Var{"g", sizes.groups}, Var{"o", group_out},
                         Var{"c", group_in, true}, Var{"y", out_height}, Var{"x", out_width},
                         Var{"r", sizes.kernel_height, true}, Var{"s", sizes.kernel_width, true}}) {
    if (var.extent > 1) {
      out.vars.push_back(var);
    }
  }
  if (out.vars.empty()) {
    out.vars.push_back({.name = "b"});
  }
  const Axis batch{sizes.batch, {{"b"}}};
  const Axis channel{sizes.channels, {{"g", group_in}, {"c"}}};
  const Axis row{sizes.height, {{"y", sizes.stride}, {"r", sizes.dilation}}, -sizes.pad};
  const Axis column{sizes.width, {{"x", sizes.stride}, {"s", sizes.dilation}}, -sizes.pad};
  const Axis out_channel{sizes.out_channels, {{"g", group_out}, {"o"}}};
  const Axis out_row{out_height, {{"y"}}};
  const Axis out_column{out_width, {{"x"}}};
  const Axis weight_channel{group_in, {{"c"}}};
  const Axis kernel_row{sizes.kernel_height, {{"r"}}};
  const Axis kernel_column{sizes.kernel_width, {{"s"}}};
  if (sizes.channels_last) {
    out.output = dense(out.vars, "out", {batch, out_row, out_column, out_channel});
    out.inputs = {
        dense(out.vars, "in", {batch, row, column, channel}),
        dense(out.vars, "weight", {kernel_row, kernel_column, weight_channel, out_channel})};
  } else {
    out.output = dense(out.vars, "out", {batch, out_channel, out_row, out_column});
    out.inputs = {
        dense(out.vars, "in", {batch, channel, row, column}),
        dense(out.vars, "weight", {out_channel, weight_channel, kernel_row, kernel_column})};
  }
  append_epilogue(out, sizes.epilogue, out_channel);
  return checked(std::move(out));
}

Result<Computation> reduction(std::int64_t rows, std::int64_t columns, Op reduce, bool of_columns) {
  FORETUNE_TRY_STATUS(
      check_sizes({{"the number of rows", rows}, {"the number of columns", columns}}));
  Computation out;
  out.name = concat("reduce r=", rows, " c=", columns, " op=", to_string(reduce),
                    of_columns ? " of_columns" : "");
  out.vars = {{.name = "r", .extent = rows, .is_reduction = of_columns},
              {.name = "c", .extent = columns, .is_reduction = !of_columns}};
  const Axis row{rows, {{"r"}}};
  const Axis column{columns, {{"c"}}};
  out.output = dense(out.vars, "out", {of_columns ? column : row});
  out.inputs = {dense(out.vars, "in", {row, column})};
  out.combined = 1;
  out.reduce = reduce;
  return checked(std::move(out));
}

Result<Computation> elementwise(std::int64_t rows, std::int64_t columns, std::vector<Step> steps) {
  FORETUNE_TRY_STATUS(
      check_sizes({{"the number of rows", rows}, {"the number of columns", columns}}));
  Computation out;
  for (Step& step : steps) {
    step.constant = step.input == -1 ? step.constant : 0;  // nothing reads it
  }
  const std::optional<NestChain> chain = find_chain(steps);
  out.name = chain ? concat("map r=", rows, " c=", columns,
                            " chain=", kNestChains[static_cast<std::size_t>(*chain)].label)
                   : concat("elementwise r=", rows, " c=", columns);
  out.vars = {{.name = "r", .extent = rows}, {.name = "c", .extent = columns}};
  const std::vector<Axis> axes = {{rows, {{"r"}}}, {columns, {{"c"}}}};
  out.output = dense(out.vars, "out", axes);
  out.inputs = {dense(out.vars, "in", axes)};
  out.combined = 1;
  for (const Step& step : steps) {
    if (!chain) {
      out.name += concat(
          " ", to_string(step.op), "=",
          step.input == -1 ? concat(static_cast<double>(step.constant)) : concat("in", step.input));
    }
    while (std::cmp_less_equal(out.inputs.size(), step.input) && out.inputs.size() < kMaxInputs) {
      out.inputs.push_back(dense(out.vars, concat("in", out.inputs.size()), axes));
    }
  }
  out.steps = std::move(steps);
  return checked(std::move(out));
}

}  // namespace foretune::loop
