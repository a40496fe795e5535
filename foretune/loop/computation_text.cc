#include "foretune/loop/computation_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/chains.h"

namespace foretune::loop {
namespace {

// A word of a kind sets a size or a switch.
struct Word {
  std::string_view name;
  std::int64_t* size = nullptr;
  bool* is_on = nullptr;
};

Status take(std::string_view kind, std::string_view text, std::span<const Word> words,
            std::vector<std::string_view>& seen) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  for (const std::string_view before : seen) {
    if (before == name) {
      return fail(ErrorCode::kInvalidArgument, "'", name, "' is there twice");
    }
  }
  seen.push_back(name);
  for (const Word& word : words) {
    if (word.name != name) {
      continue;
    }
    if (word.is_on != nullptr) {
      if (equals != std::string_view::npos) {
        return fail(ErrorCode::kInvalidArgument, "'", name, "' takes no value");
      }
      *word.is_on = true;
      return {};
    }
    const auto number =
        parse_int(equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1));
    if (!number) {
      return fail(ErrorCode::kInvalidArgument, "'", text, "' is no whole number: ", name, "=N");
    }
    *word.size = *number;
    return {};
  }
  std::vector<std::string> names;
  for (const Word& word : words) {
    names.emplace_back(word.name);
  }
  return fail(ErrorCode::kInvalidArgument, kind, " has no '", name, "'; it has ",
              join(names, ", "));
}

Status take_all(std::span<const std::string_view> parts, std::span<const Word> words) {
  std::vector<std::string_view> seen;
  for (const std::string_view part : parts.subspan(1)) {
    FORETUNE_TRY_STATUS(take(parts[0], part, words, seen));
  }
  return {};
}

Result<ComputationSizes> parse_matmul(std::span<const std::string_view> parts) {
  MatmulSizes sizes;
  const std::array<Word, 8> words{{{"m", &sizes.m},
                                   {"n", &sizes.n},
                                   {"k", &sizes.k},
                                   {"batch", &sizes.batch},
                                   {"ta", nullptr, &sizes.transpose_a},
                                   {"tb", nullptr, &sizes.transpose_b},
                                   {"bias", nullptr, &sizes.epilogue.bias},
                                   {"relu", nullptr, &sizes.epilogue.relu}}};
  FORETUNE_TRY_STATUS(take_all(parts, words));
  return sizes;
}

Result<ComputationSizes> parse_conv(std::span<const std::string_view> parts) {
  ConvSizes sizes;
  const std::array<Word, 14> words{{{"b", &sizes.batch},
                                    {"c", &sizes.channels},
                                    {"h", &sizes.height},
                                    {"w", &sizes.width},
                                    {"o", &sizes.out_channels},
                                    {"r", &sizes.kernel_height},
                                    {"s", &sizes.kernel_width},
                                    {"stride", &sizes.stride},
                                    {"dilation", &sizes.dilation},
                                    {"pad", &sizes.pad},
                                    {"groups", &sizes.groups},
                                    {"nhwc", nullptr, &sizes.channels_last},
                                    {"bias", nullptr, &sizes.epilogue.bias},
                                    {"relu", nullptr, &sizes.epilogue.relu}}};
  FORETUNE_TRY_STATUS(take_all(parts, words));
  return sizes;
}

Result<ComputationSizes> parse_reduction(std::vector<std::string_view> parts) {
  ReductionSizes sizes;
  std::erase_if(parts, [&](std::string_view part) {
    for (const Op known : {Op::kAdd, Op::kMax, Op::kMin}) {
      if (part == concat("op=", to_string(known))) {
        sizes.reduce = known;
        return true;
      }
    }
    return false;
  });
  const std::array<Word, 3> words{
      {{"r", &sizes.rows}, {"c", &sizes.columns}, {"of_columns", nullptr, &sizes.of_columns}}};
  FORETUNE_TRY_STATUS(take_all(parts, words));
  return sizes;
}

Result<ComputationSizes> parse_map(std::span<const std::string_view> parts) {
  constexpr std::string_view kChainWord = "chain=";
  ElementwiseSizes sizes;
  std::vector<std::string_view> others;
  bool has_chain = false;
  for (const std::string_view part : parts) {
    if (!part.starts_with(kChainWord)) {
      others.push_back(part);
      continue;
    }
    if (has_chain) {
      return fail(ErrorCode::kInvalidArgument, "'chain' is there twice");
    }
    has_chain = true;
    const std::string_view label = part.substr(kChainWord.size());
    const auto known = std::ranges::find(kNestChains, label, &NestChainInfo::label);
    if (known == kNestChains.end()) {
      return fail(ErrorCode::kInvalidArgument, "'", label, "' is no chain; there are ",
                  chain_labels());
    }
    sizes.steps = chain_steps(static_cast<NestChain>(known - kNestChains.begin()));
  }
  const std::array<Word, 2> words{{{"r", &sizes.rows}, {"c", &sizes.columns}}};
  FORETUNE_TRY_STATUS(take_all(others, words));
  if (!has_chain) {
    return fail(ErrorCode::kInvalidArgument, "map has no chain=NAME; there are ", chain_labels());
  }
  return sizes;
}

// Returns the operation of "multiply=in1" or "min=6.5"; nothing for another kind of word.
std::optional<Op> operation_of(std::string_view part) {
  const std::size_t equals = part.find('=');
  for (const Op op : {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide, Op::kMax, Op::kMin}) {
    if (equals != std::string_view::npos && part.substr(0, equals) == to_string(op)) {
      return op;
    }
  }
  return std::nullopt;
}

Result<Step> parse_step(Op op, std::string_view part) {
  constexpr std::string_view kInput = "in";
  const std::string_view value = part.substr(part.find('=') + 1);
  if (value.starts_with(kInput) && value != "inf") {
    const auto input = parse_int(value.substr(kInput.size()));
    if (!input || *input < 1 || *input >= static_cast<std::int64_t>(kMaxInputs)) {
      return fail(ErrorCode::kInvalidArgument, "'", part, "' reads no tensor from in1 to in",
                  kMaxInputs - 1);
    }
    return Step{.op = op, .input = static_cast<int>(*input)};
  }
  const auto number = parse_double(value);
  if (!number || !(std::abs(*number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    return fail(ErrorCode::kInvalidArgument, "'", part, "' has neither a tensor nor a number");
  }
  return Step{.op = op, .constant = static_cast<float>(*number)};
}

// Parses any steps, in their order.
Result<ComputationSizes> parse_elementwise(std::span<const std::string_view> parts) {
  ElementwiseSizes sizes;
  std::vector<std::string_view> others;
  for (const std::string_view part : parts) {
    if (const std::optional<Op> op = operation_of(part)) {
      FORETUNE_TRY(const Step step, parse_step(*op, part));
      sizes.steps.push_back(step);
    } else {
      others.push_back(part);
    }
  }
  const std::array<Word, 2> words{{{"r", &sizes.rows}, {"c", &sizes.columns}}};
  FORETUNE_TRY_STATUS(take_all(others, words));
  return sizes;
}

struct Maker {
  Result<Computation> operator()(const MatmulSizes& sizes) const { return matmul(sizes); }
  Result<Computation> operator()(const ConvSizes& sizes) const { return conv2d(sizes); }
  Result<Computation> operator()(const ReductionSizes& sizes) const {
    return reduction(sizes.rows, sizes.columns, sizes.reduce, sizes.of_columns);
  }
  Result<Computation> operator()(const ElementwiseSizes& sizes) const {
    return elementwise(sizes.rows, sizes.columns, sizes.steps);
  }
};

}  // namespace

Result<ComputationSizes> parse_sizes(std::string_view text) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(text, ' ')) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  const std::string_view kind = parts.empty() ? std::string_view() : parts.front();
  if (kind == "mm") {
    return parse_matmul(parts);
  }
  if (kind == "conv") {
    return parse_conv(parts);
  }
  if (kind == "reduce") {
    return parse_reduction(std::move(parts));
  }
  if (kind == "map") {
    return parse_map(parts);
  }
  if (kind == "elementwise") {
    return parse_elementwise(parts);
  }
  return fail(ErrorCode::kInvalidArgument, "'", kind,
              "' is no kind of computation; there are mm, conv, reduce, map and elementwise");
}

Result<Computation> parse_computation(std::string_view text) {
  FORETUNE_TRY(const ComputationSizes sizes, parse_sizes(text));
  return std::visit(Maker(), sizes);
}

}  // namespace foretune::loop
