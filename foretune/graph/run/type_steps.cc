// Steps between types of elements, and those that complete what a convolution has left out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/run/internal/steps.h"

namespace foretune::graph {

namespace {

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kI8:
      return "i8";
    case ElementType::kF32:
      break;
  }
  return "f32";
}

class ConvertStep final : public Step {
 public:
  ConvertStep(const VectorOps& loops, const Value& from, ValueId input, const Value& to,
              ValueId output)
      : loops_(loops),
        from_(from.type),
        to_(to.type),
        quantization_(from_ == ElementType::kI8 ? from.quantization : to.quantization),
        count_(to.elements()) {
    reads = {input};
    write = output;
  }

  Status run(const Frame& frame) const override {
    const ValueId input = reads[0];
    if (to_ == ElementType::kI8) {
      loops_.to_i8(frame.in(input), frame.out<std::int8_t>(write), count_, quantization_.scale,
                   quantization_.zero);
    } else if (to_ == ElementType::kBf16) {
      loops_.to_bf16(frame.in(input), frame.out<std::uint16_t>(write), count_);
    } else if (from_ == ElementType::kI8) {
      loops_.from_i8(frame.in<std::int8_t>(input), frame.out(write), count_, quantization_.scale,
                     quantization_.zero);
    } else {
      loops_.from_bf16(frame.in<std::uint16_t>(input), frame.out(write), count_);
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat(name_of(from_), " to ", name_of(to_));
  }

 private:
  const VectorOps& loops_;
  ElementType from_;
  ElementType to_;
  Quantization quantization_;
  std::size_t count_;
};

class SumsStep final : public Step {
 public:
  SumsStep(const VectorOps& loops, std::size_t rows, std::vector<float> scales, bool relu,
           ValueId sums, ValueId addend, ValueId output)
      : loops_(loops), rows_(rows), scales_(std::move(scales)), relu_(relu), addend_(addend) {
    reads = {sums};
    if (addend != kNoValue) {
      reads.push_back(addend);
    }
    write = output;
  }

  Status run(const Frame& frame) const override {
    const std::size_t count = rows_ * scales_.size();
    const float floor =
        relu_ && addend_ == kNoValue ? 0.0F : -std::numeric_limits<float>::infinity();
    float* const to = frame.out(write);
    loops_.from_sums(frame.in<std::int32_t>(reads[0]), scales_.data(), to, rows_, scales_.size(),
                     floor);
    if (addend_ != kNoValue) {
      loops_.binary_of("add")(to, frame.in(addend_), to, count);
      if (relu_) {
        loops_.unary_of("relu")(to, to, count, 0, 0);
      }
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override { return "sums to f32"; }

 private:
  const VectorOps& loops_;
  std::size_t rows_;
  std::vector<float> scales_;
  bool relu_;
  ValueId addend_;
};

class InterpolateStep final : public Step {
 public:
  InterpolateStep(const VectorOps& loops, const Value& value, ValueId id, const Skipping& skipping)
      : loops_(loops), value_(value), skipping_(skipping) {
    reads = {id};
    write = id;
  }

  Status run(const Frame& frame) const override {
    switch (value_.type) {
      case ElementType::kI8:
        fill(frame.out<std::int8_t>(write), loops_.mean_i8);
        break;
      case ElementType::kBf16:
        fill(frame.out<std::uint16_t>(write), loops_.mean_bf16);
        break;
      case ElementType::kF32:
        fill(frame.out(write), loops_.mean_f32);
        break;
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override { return "means of neighbours"; }

 private:
  // Fills lines `at`, `at` + `period`, ... of `count` lines.
  template <class Element, class Mean>
  static void fill_lines(Element* first, std::int64_t period, std::int64_t at, std::int64_t count,
                         std::size_t length, std::size_t apart, const Mean& mean) {
    for (std::int64_t i = at; i < count; i += period) {
      Element* const line = first + static_cast<std::size_t>(i) * apart;
      if (i > 0 && i + 1 < count) {
        mean(line - apart, line + apart, line, length);
      } else {
        std::copy_n(i > 0 ? line - apart : line + apart, length, line);
      }
    }
  }

  template <class Element, class Mean>
  void fill(Element* image, const Mean& mean) const {
    const auto channels = static_cast<std::size_t>(value_.shape[1]);
    const std::int64_t rows = value_.shape[2];
    const std::int64_t columns = value_.shape[3];
    const std::size_t row_length = static_cast<std::size_t>(columns) * channels;
    for (std::int64_t n = 0; n < value_.shape[0]; ++n) {
      for (std::int64_t row = 0; row < rows && skipping_.columns > 0; ++row) {
        if (skipping_.rows == 0 || row % skipping_.rows != skipping_.rows_at) {
          fill_lines(image + static_cast<std::size_t>(row) * row_length, skipping_.columns,
                     skipping_.columns_at, columns, channels, channels, mean);
        }
      }
      if (skipping_.rows > 0) {
        fill_lines(image, skipping_.rows, skipping_.rows_at, rows, row_length, row_length, mean);
      }
      image += static_cast<std::size_t>(rows) * row_length;
    }
  }

  const VectorOps& loops_;
  Value value_;
  Skipping skipping_;
};

}  // namespace

std::unique_ptr<Step> make_convert_step(const VectorOps& loops, const Value& from, ValueId input,
                                        const Value& to, ValueId output) {
  return std::make_unique<ConvertStep>(loops, from, input, to, output);
}

std::unique_ptr<Step> make_sums_step(const VectorOps& loops, std::size_t rows,
                                     std::vector<float> scales, bool relu, ValueId sums,
                                     ValueId addend, ValueId output) {
  return std::make_unique<SumsStep>(loops, rows, std::move(scales), relu, sums, addend, output);
}

std::unique_ptr<Step> make_interpolate_step(const VectorOps& loops, const Value& value, ValueId id,
                                            const Skipping& skipping) {
  return std::make_unique<InterpolateStep>(loops, value, id, skipping);
}

}  // namespace foretune::graph
