#include "foretune/loop/computation_text.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/text.h"

namespace foretune::loop {
namespace {

// What a word of a kind sets: a size, or a switch.
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

Result<Computation> parse_matmul(std::span<const std::string_view> parts) {
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
  return matmul(sizes);
}

Result<Computation> parse_conv(std::span<const std::string_view> parts) {
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
  return conv2d(sizes);
}

Result<Computation> parse_reduction(std::vector<std::string_view> parts) {
  Op op = Op::kAdd;
  std::erase_if(parts, [&](std::string_view part) {
    for (const Op known : {Op::kAdd, Op::kMax, Op::kMin}) {
      if (part == concat("op=", to_string(known))) {
        op = known;
        return true;
      }
    }
    return false;
  });
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool of_columns = false;
  const std::array<Word, 3> words{
      {{"r", &rows}, {"c", &columns}, {"of_columns", nullptr, &of_columns}}};
  FORETUNE_TRY_STATUS(take_all(parts, words));
  return reduction(rows, columns, op, of_columns);
}

}  // namespace

Result<Computation> parse_computation(std::string_view text) {
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
  return fail(ErrorCode::kInvalidArgument, "'", kind,
              "' is no kind of computation; there are mm, conv and reduce");
}

}  // namespace foretune::loop
