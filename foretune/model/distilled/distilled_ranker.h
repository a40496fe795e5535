// A distilled model laid out for speed: what its inputs have in common is computed once, divisions
// by constants are multiplications, and the weights lie in the order in which the widest integer
// instructions of every x86-64 CPU take them. The numbers are those of DistilledModel.
//
//   const DistilledRanker ranker(model);
//   ranker.inputs(problem.fields(), inputs);
//   ranker.scores(inputs, scores);
//
// Thread safety: immutable after creation. Cost: a few tenths of a us; inputs() and scores() do not
// allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/model/distilled/distilled_model.h"

namespace foretune {

class DistilledRanker {
 public:
  using Inputs = std::array<std::int16_t, DistilledModel::kMaxInputs>;
  // Scores of a portfolio, and room behind them.
  using Scores = std::array<std::int32_t, DistilledModel::kMaxPortfolio>;

  DistilledRanker() = default;
  // The model is valid (DistilledModel::validate()).
  explicit DistilledRanker(const DistilledModel& model);

  // Computes the inputs of the network as DistilledModel::inputs() does, and zeros behind them.
  void inputs(std::span<const std::int64_t> fields, Inputs& out) const noexcept;
  // Computes the scores as DistilledModel::scores() does, and arbitrary ones behind them.
  void scores(const Inputs& inputs, Scores& out) const noexcept;

 private:
  // Divides by a constant: the quotient is the upper half of a product (Lemire, Kaser and Kurz
  // 2019), exact for dividends and divisors below 2^32.
  class Divisor {
   public:
    Divisor() = default;
    explicit Divisor(std::uint32_t by) : by_(by), reciprocal_(by == 1 ? 0 : UINT64_MAX / by + 1) {}
    [[nodiscard]] std::uint64_t by() const { return by_; }
    // Returns value / by() rounded up. `value` is below 2^31.
    [[nodiscard]] std::uint64_t ceil(std::uint64_t value) const;

   private:
    std::uint64_t by_ = 1;
    std::uint64_t reciprocal_ = 0;
  };
  // How a value becomes an input, and which.
  struct Standard {
    std::int32_t mean = 0;
    std::int32_t scale = 0;
    std::size_t input = 0;
  };
  // The inputs about one field: its logarithms, and its use of blocks.
  struct Size {
    std::uint8_t field = 0;
    std::vector<Standard> logs;
    std::vector<std::pair<Divisor, Standard>> uses;
  };
  // An input with two values.
  struct Label {
    std::uint8_t field = 0;
    std::int64_t label = 0;
    std::size_t input = 0;
    std::int16_t if_equal = 0;
    std::int16_t otherwise = 0;
  };
  struct Side {
    std::uint8_t field = 0;
    Divisor block;
  };
  struct Wave {
    Side rows;
    Side columns;
    std::uint8_t repeat = 0;
    Divisor places;
    bool is_use = false;
    Standard standard;
  };
  // Outputs come in groups of kGroup, inputs in pairs: for each group, for each pair, for each
  // output the two weights.
  struct Layer {
    std::size_t pairs = 0;
    std::size_t groups = 0;
    int shift = 0;
    std::vector<std::int16_t> weights;
    std::vector<std::int32_t> bias;
  };
  static constexpr std::size_t kGroup = 16;

  void add_input(const DistilledFeature& feature, std::size_t input);
  void add_layer(const DistilledLayer& layer);
  static void put(std::int64_t value, const Standard& standard, Inputs& out);
  static void sums(const Layer& layer, std::size_t group, const std::int16_t* inputs,
                   std::int32_t* out);

  std::vector<Size> sizes_;
  std::vector<Label> labels_;
  std::vector<Wave> waves_;
  std::vector<Layer> layers_;
};

}  // namespace foretune
