// Steps that move elements, pool, sum or normalise.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/run/internal/steps.h"

namespace foretune::graph {

namespace {

class CopyStep final : public Step {
 public:
  CopyStep(ValueId input, ValueId output, Copying copying, CopyStepOptions options)
      : input_(input), copying_(merged(std::move(copying))), options_(std::move(options)) {
    if (input != kNoValue) {
      reads = {input};
    }
    write = output;
  }

  Status run(const Frame& frame) const override {
    const float* const from = input_ == kNoValue ? options_.constant.data() : frame.in(input_);
    float* const to = frame.out(write);
    if (options_.fills) {
      std::fill_n(to, options_.elements, options_.fill);
    }
    copy(0, from + copying_.from_first, to + copying_.to_first);
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat("copy of ", to_text(copying_.shape));
  }

 private:
  // Joins dimensions that follow each other in both tensors, and leaves out those of extent 1.
  static Copying merged(Copying whole) {
    Copying result{.from_first = whole.from_first, .to_first = whole.to_first};
    for (std::size_t i = 0; i < whole.shape.size(); ++i) {
      if (whole.shape[i] == 1) {
        continue;
      }
      const bool follows = !result.shape.empty() &&
                           result.from.back() == whole.from[i] * whole.shape[i] &&
                           result.to.back() == whole.to[i] * whole.shape[i];
      if (follows) {
        result.shape.back() *= whole.shape[i];
        result.from.back() = whole.from[i];
        result.to.back() = whole.to[i];
      } else {
        result.shape.push_back(whole.shape[i]);
        result.from.push_back(whole.from[i]);
        result.to.push_back(whole.to[i]);
      }
    }
    if (result.shape.empty()) {
      result.shape = {1};
      result.from = {1};
      result.to = {1};
    }
    return result;
  }

  void copy(std::size_t dimension, const float* from, float* to) const {
    const std::int64_t extent = copying_.shape[dimension];
    const std::int64_t from_step = copying_.from[dimension];
    const std::int64_t to_step = copying_.to[dimension];
    if (dimension + 1 < copying_.shape.size()) {
      for (std::int64_t i = 0; i < extent; ++i) {
        copy(dimension + 1, from + i * from_step, to + i * to_step);
      }
    } else if (from_step == 1 && to_step == 1) {
      std::copy_n(from, extent, to);
    } else if (from_step == 0 && to_step == 1) {
      std::fill_n(to, extent, *from);
    } else {
      for (std::int64_t i = 0; i < extent; ++i) {
        to[i * to_step] = from[i * from_step];
      }
    }
  }

  ValueId input_;
  Copying copying_;
  CopyStepOptions options_;
};

class PoolStep final : public Step {
 public:
  PoolStep(const VectorOps& loops, const Window& window, bool is_max, const PoolSizes& sizes,
           ValueId input, ValueId output)
      : loops_(loops), window_(window), is_max_(is_max), sizes_(sizes) {
    reads = {input};
    write = output;
  }

  Status run(const Frame& frame) const override {
    if (sizes_.is_i8) {
      return run_typed<std::int8_t>(frame);
    }
    // Windows of few channels are quicker line by line.
    constexpr std::int64_t kFewChannels = 48;
    const bool is_whole =
        window_.pad_left == 0 && window_.dilation_w == 1 &&
        (sizes_.columns - 1) * window_.stride_w + window_.kernel_w <= sizes_.columns_in;
    return is_max_ && is_whole && sizes_.channels <= kFewChannels ? run_lines(frame)
                                                                  : run_typed<float>(frame);
  }

  [[nodiscard]] std::string describe() const override {
    return concat(is_max_ ? "maximum" : "mean", " of ", window_.kernel_h, "x", window_.kernel_w,
                  " points, ", sizes_.channels, " channels", sizes_.is_i8 ? " in i8" : "");
  }

 private:
  // Takes the largest of the rows of a window, then of its columns.
  Status run_lines(const Frame& frame) const {
    const auto channels = static_cast<std::size_t>(sizes_.channels);
    const std::size_t length = static_cast<std::size_t>(sizes_.columns_in) * channels;
    std::vector<const float*> rows(static_cast<std::size_t>(window_.kernel_h));
    std::vector<float> line(length);
    const float* image = frame.in(reads[0]);
    float* to = frame.out(write);
    for (std::int64_t n = 0; n < sizes_.images; ++n) {
      for (std::int64_t y = 0; y < sizes_.rows; ++y) {
        std::size_t inside = 0;
        for (std::int64_t i = 0; i < window_.kernel_h; ++i) {
          const std::int64_t row = y * window_.stride_h - window_.pad_top + i * window_.dilation_h;
          if (row >= 0 && row < sizes_.rows_in) {
            rows[inside++] = image + static_cast<std::size_t>(row) * length;
          }
        }
        loops_.max_rows(rows.data(), inside, length, line.data());
        loops_.max_windows(line.data(), static_cast<std::size_t>(window_.kernel_w),
                           static_cast<std::size_t>(window_.stride_w),
                           static_cast<std::size_t>(sizes_.columns), channels, to);
        to += static_cast<std::size_t>(sizes_.columns) * channels;
      }
      image += static_cast<std::size_t>(sizes_.rows_in) * length;
    }
    return {};
  }

  template <class Element>
  Status run_typed(const Frame& frame) const {
    const auto channels = static_cast<std::size_t>(sizes_.channels);
    std::vector<const Element*> rows(static_cast<std::size_t>(window_.kernel_h * window_.kernel_w));
    const auto* image = frame.in<Element>(reads[0]);
    auto* to = frame.out<Element>(write);
    for (std::int64_t n = 0; n < sizes_.images; ++n) {
      for (std::int64_t y = 0; y < sizes_.rows; ++y) {
        for (std::int64_t x = 0; x < sizes_.columns; ++x) {
          pool(image, y, x, rows, to);
          to += channels;
        }
      }
      image += sizes_.rows_in * sizes_.columns_in * sizes_.channels;
    }
    return {};
  }

  template <class Element>
  void pool(const Element* image, std::int64_t y, std::int64_t x, std::vector<const Element*>& rows,
            Element* to) const {
    std::size_t inside = 0;
    std::int64_t padded = 0;
    for (std::int64_t i = 0; i < window_.kernel_h; ++i) {
      const std::int64_t row = y * window_.stride_h - window_.pad_top + i * window_.dilation_h;
      for (std::int64_t j = 0; j < window_.kernel_w; ++j) {
        const std::int64_t column =
            x * window_.stride_w - window_.pad_left + j * window_.dilation_w;
        padded += row < sizes_.rows_in + window_.pad_bottom &&
                          column < sizes_.columns_in + window_.pad_right
                      ? 1
                      : 0;
        if (row >= 0 && column >= 0 && row < sizes_.rows_in && column < sizes_.columns_in) {
          rows[inside++] = image + (row * sizes_.columns_in + column) * sizes_.channels;
        }
      }
    }
    const auto channels = static_cast<std::size_t>(sizes_.channels);
    if constexpr (sizeof(Element) == 1) {
      loops_.max_rows_i8(rows.data(), inside, channels, to);
    } else if (is_max_) {
      loops_.max_rows(rows.data(), inside, channels, to);
    } else {
      const auto count = window_.count_padding ? padded : static_cast<std::int64_t>(inside);
      loops_.sum_rows(rows.data(), inside, channels, 1.0F / static_cast<float>(count), to);
    }
  }

  const VectorOps& loops_;
  Window window_;
  bool is_max_;
  PoolSizes sizes_;
};

class SumStep final : public Step {
 public:
  SumStep(const VectorOps& loops, std::size_t count, std::size_t rows, std::size_t channels,
          float factor, const Value& from, ValueId input, ValueId output)
      : loops_(loops),
        count_(count),
        rows_(rows),
        channels_(channels),
        factor_(factor),
        is_i8_(from.type == ElementType::kI8),
        quantization_(from.quantization) {
    reads = {input};
    write = output;
  }

  Status run(const Frame& frame) const override {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t first = i * rows_ * channels_;
      float* const to = frame.out(write) + i * channels_;
      if (is_i8_) {
        loops_.sum_dense_i8(frame.in<std::int8_t>(reads[0]) + first, rows_, channels_,
                            quantization_.zero, factor_ * quantization_.scale, to);
      } else {
        loops_.sum_dense(frame.in(reads[0]) + first, rows_, channels_, factor_, to);
      }
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat("sum of ", rows_, " rows of ", channels_, is_i8_ ? " in i8" : "");
  }

 private:
  const VectorOps& loops_;
  std::size_t count_;
  std::size_t rows_;
  std::size_t channels_;
  float factor_;
  bool is_i8_;
  Quantization quantization_;
};

class SoftmaxStep final : public Step {
 public:
  SoftmaxStep(const VectorOps& loops, std::size_t rows, std::size_t length, ValueId input,
              ValueId output)
      : loops_(loops), rows_(rows), length_(length) {
    reads = {input};
    write = output;
    works_in_place = true;
  }

  Status run(const Frame& frame) const override {
    for (std::size_t i = 0; i < rows_; ++i) {
      loops_.softmax(frame.in(reads[0]) + i * length_, frame.out(write) + i * length_, length_);
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat("softmax of ", rows_, " rows of ", length_);
  }

 private:
  const VectorOps& loops_;
  std::size_t rows_;
  std::size_t length_;
};

class NormaliseStep final : public Step {
 public:
  NormaliseStep(const VectorOps& loops, std::size_t rows, std::size_t length, float epsilon,
                std::vector<float> scale, std::vector<float> shift, ValueId input, ValueId output)
      : loops_(loops),
        rows_(rows),
        length_(length),
        epsilon_(epsilon),
        scale_(std::move(scale)),
        shift_(std::move(shift)) {
    reads = {input};
    write = output;
    works_in_place = true;
  }

  Status run(const Frame& frame) const override {
    for (std::size_t i = 0; i < rows_; ++i) {
      loops_.normalise(frame.in(reads[0]) + i * length_, scale_.empty() ? nullptr : scale_.data(),
                       shift_.empty() ? nullptr : shift_.data(), epsilon_,
                       frame.out(write) + i * length_, length_);
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override {
    return concat("normalisation of ", rows_, " rows of ", length_);
  }

 private:
  const VectorOps& loops_;
  std::size_t rows_;
  std::size_t length_;
  float epsilon_;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

class SlowStep final : public Step {
 public:
  SlowStep(const OpInfo& op, Attributes attributes, std::vector<SlowOperand> operands, Shape shape,
           ValueId output)
      : op_(op),
        attributes_(std::move(attributes)),
        operands_(std::move(operands)),
        shape_(std::move(shape)) {
    for (const SlowOperand& operand : operands_) {
      if (operand.value != kNoValue) {
        reads.push_back(operand.value);
      }
    }
    write = output;
  }

  Status run(const Frame& frame) const override {
    std::vector<std::vector<double>> widened(operands_.size());
    std::vector<OperandValues> operands;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const SlowOperand& operand = operands_[i];
      if (operand.value != kNoValue) {
        const float* const from = frame.in(operand.value);
        widened[i].assign(from, from + element_count(operand.shape));
      }
      operands.push_back(
          {operand.shape, operand.value == kNoValue ? operand.constant : widened[i]});
    }
    std::vector<double> result(static_cast<std::size_t>(element_count(shape_)));
    op_.compute(operands, attributes_, shape_, result);
    float* const to = frame.out(write);
    for (std::size_t i = 0; i < result.size(); ++i) {
      to[i] = static_cast<float>(result[i]);
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override { return concat("slow ", op_.name); }

 private:
  const OpInfo& op_;
  Attributes attributes_;
  std::vector<SlowOperand> operands_;
  Shape shape_;
};

}  // namespace

std::unique_ptr<Step> make_copy_step(ValueId input, ValueId output, Copying copying,
                                     CopyStepOptions options) {
  return std::make_unique<CopyStep>(input, output, std::move(copying), std::move(options));
}

std::unique_ptr<Step> make_pool_step(const VectorOps& loops, const Window& window, bool is_max,
                                     const PoolSizes& sizes, ValueId input, ValueId output) {
  return std::make_unique<PoolStep>(loops, window, is_max, sizes, input, output);
}

std::unique_ptr<Step> make_sum_step(const VectorOps& loops, std::size_t count, std::size_t rows,
                                    std::size_t channels, float factor, const Value& from,
                                    ValueId input, ValueId output) {
  return std::make_unique<SumStep>(loops, count, rows, channels, factor, from, input, output);
}

std::unique_ptr<Step> make_softmax_step(const VectorOps& loops, std::size_t rows,
                                        std::size_t length, ValueId input, ValueId output) {
  return std::make_unique<SoftmaxStep>(loops, rows, length, input, output);
}

std::unique_ptr<Step> make_normalise_step(const VectorOps& loops, std::size_t rows,
                                          std::size_t length, float epsilon,
                                          std::vector<float> scale, std::vector<float> shift,
                                          ValueId input, ValueId output) {
  return std::make_unique<NormaliseStep>(loops, rows, length, epsilon, std::move(scale),
                                         std::move(shift), input, output);
}

std::unique_ptr<Step> make_slow_step(const OpInfo& op, Attributes attributes,
                                     std::vector<SlowOperand> operands, Shape shape,
                                     ValueId output) {
  return std::make_unique<SlowStep>(op, std::move(attributes), std::move(operands),
                                    std::move(shape), output);
}

}  // namespace foretune::graph
