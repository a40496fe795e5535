// For tests: draws random expressions as trees, with a text form and an evaluation that follows the
// language's description literally, in wider integers. Serves as the oracle of the compiler.
// Thread safety: values of one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class RandomExpression {
 public:
  struct Inputs {
    std::span<const std::int32_t> words;
    std::span<const std::int64_t> fields;
    const Hardware& hardware;
  };

  // Nests at most `depth` operations; uses the first `parameters` parameters only.
  static RandomExpression draw(const ConfigSchema& config, const ProblemSchema& problem,
                               std::size_t parameters, int depth, Rng& rng);

  // Returns a text with random blanks and more parentheses than needed.
  [[nodiscard]] std::string text(Rng& rng) const;
  [[nodiscard]] std::int64_t evaluate(const Inputs& inputs) const;

 private:
  enum class Kind : std::uint8_t { kNumber, kLabel, kWord, kField, kFact, kUnary, kBinary, kCall };

  [[nodiscard]] std::string text_at(int level, Rng& rng) const;

  Kind kind_ = Kind::kNumber;
  std::string token_;  // operator, function, or the leaf as written
  std::int64_t number_ = 0;
  std::size_t index_ = 0;
  std::vector<RandomExpression> children_;
};

}  // namespace foretune
