// One pass of a network over a fixed number of images: values in one block of memory, and steps
// that read and write them in order.
//
// Thread safety: constant once planned; several threads may run a pass at once, each with a block
// of memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/vector_ops.h"

namespace foretune::graph {

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

enum class ElementType : std::uint8_t { kF32 = 0, kBf16 = 1, kI8 = 2 };
inline constexpr std::size_t kElementTypes = 3;

// A tensor of a pass. Its elements follow each other in the order of `shape` or, with its channels
// last, in the order image, row, column, channel.
struct Value {
  Shape shape;  // for all images of the pass, channels first
  bool channels_last = false;
  ElementType type = ElementType::kF32;
  Quantization quantization;  // of integers
  // Another value with the same elements at the same place, or kNoValue.
  ValueId alias = kNoValue;
  std::int32_t input = -1;   // position among the network's inputs
  std::int32_t output = -1;  // position among its outputs

  [[nodiscard]] std::size_t elements() const {
    return static_cast<std::size_t>(element_count(shape));
  }
  // Returns the floats of memory that the elements take.
  [[nodiscard]] std::size_t floats() const {
    const std::size_t of_float = type == ElementType::kF32 ? 1 : type == ElementType::kBf16 ? 2 : 4;
    return (elements() + of_float - 1) / of_float;
  }
  // Returns the extents in the order of the elements.
  [[nodiscard]] Shape stored_shape() const {
    return channels_last ? Shape{shape[0], shape[2], shape[3], shape[1]} : shape;
  }
};

// The places of a pass's values in one run.
class Frame {
 public:
  explicit Frame(std::span<float* const> places) : places_(places) {}
  [[nodiscard]] const float* in(ValueId id) const { return places_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] float* out(ValueId id) const { return places_[static_cast<std::size_t>(id)]; }
  // The same for elements of another type.
  template <class Element>
  [[nodiscard]] const Element* in(ValueId id) const {
    return reinterpret_cast<const Element*>(in(id));
  }
  template <class Element>
  [[nodiscard]] Element* out(ValueId id) const {
    return reinterpret_cast<Element*>(out(id));
  }

 private:
  std::span<float* const> places_;
};

class Step {
 public:
  virtual ~Step() = default;
  virtual Status run(const Frame& frame) const = 0;
  // Returns false while the dispatcher still compares kernels.
  [[nodiscard]] virtual bool is_settled() const { return true; }
  // Returns what the step does and with which kernel, in one line.
  [[nodiscard]] virtual std::string describe() const = 0;

  std::string name;  // of the operations that it runs
  std::vector<ValueId> reads;
  ValueId write = kNoValue;
  // The result may take the place of an operand of the same size that nobody reads later.
  bool works_in_place = false;
};

struct Pass {
  std::int64_t images = 1;
  std::vector<Value> values;
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<std::pair<ValueId, std::string>> names;  // of the tensors that are there in f32
  // Filled in by plan_memory(): where the values lie in the block, in floats; those of inputs and
  // outputs are the caller's.
  std::vector<std::size_t> places;
  std::size_t block_size = 0;

  [[nodiscard]] ValueId root_of(ValueId id) const {
    while (values[static_cast<std::size_t>(id)].alias != kNoValue) {
      id = values[static_cast<std::size_t>(id)].alias;
    }
    return id;
  }
  [[nodiscard]] bool is_settled() const {
    return std::all_of(steps.begin(), steps.end(),
                       [](const auto& step) { return step->is_settled(); });
  }
  // `block` has block_size floats on a cache line.
  Status run(std::span<const float* const> inputs, std::span<float* const> outputs,
             std::span<float> block) const;
  // The same, and calls `observe` with the number of every step and the frame after it.
  Status run_observed(std::span<const float* const> inputs, std::span<float* const> outputs,
                      std::span<float> block,
                      const std::function<void(std::size_t, const Frame&)>& observe) const;
  // The same, and adds the time of each step in ns to `times`.
  Status run_timed(std::span<const float* const> inputs, std::span<float* const> outputs,
                   std::span<float> block, std::span<double> times) const;

 private:
  [[nodiscard]] std::vector<float*> place_values(std::span<const float* const> inputs,
                                                 std::span<float* const> outputs,
                                                 std::span<float> block) const;
};

// Gives every value a place: values whose uses do not overlap share memory.
void plan_memory(Pass& pass);

}  // namespace foretune::graph
