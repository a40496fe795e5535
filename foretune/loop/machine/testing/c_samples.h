// Random schedules as C, and whether what a compiler makes of them computes the right thing: for
// tests and benchmarks.
//
//   std::string source;
//   FORETUNE_TRY(const auto samples, random_c_samples(100, rng, source));
//   ...                                       // compile `source`, find "nest0", "nest1", ...
//   run_and_compare(samples[0], function, rng)   "" where it is right
//
// Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/c_emitter.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {

using CFunction = void (*)(const float* const*, float*);

// Values between zones of NaN, which show up in sums and are looked at after writes.
class GuardedFloats {
 public:
  explicit GuardedFloats(std::size_t count) : all_(count + 2 * kZone, kPoison) {}
  explicit GuardedFloats(std::span<const float> values) : GuardedFloats(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return all_.data() + kZone; }
  [[nodiscard]] std::span<const float> values() const {
    return std::span(all_).subspan(kZone, all_.size() - 2 * kZone);
  }
  [[nodiscard]] bool is_zone_whole() const {
    const auto is_poison = [](float value) { return std::isnan(value); };
    return std::all_of(all_.begin(), all_.begin() + kZone, is_poison) &&
           std::all_of(all_.end() - kZone, all_.end(), is_poison);
  }

 private:
  static constexpr std::ptrdiff_t kZone = 64;
  static constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> all_;
};

struct CSample {
  Computation computation;
  Nest nest;
};

// `count` of them, their functions nest0, nest1, ... appended to `source`. Draws another one for a
// schedule that needs larger buffers than C code gets. Other errors: those of emit_c().
inline Result<std::vector<CSample>> random_c_samples(std::size_t count, Rng& rng,
                                                     std::string& source) {
  constexpr std::size_t kActions = 14;
  std::vector<CSample> samples;
  while (samples.size() < count) {
    CSample sample{.computation = random_computation(rng), .nest = {}};
    sample.nest = random_nest(sample.computation, rng, kActions);
    const auto text = emit_c(sample.computation, sample.nest, concat("nest", samples.size()));
    if (!text && text.error().code == ErrorCode::kUnsupported) {
      continue;
    }
    if (!text) {
      return fail_because(text.error());
    }
    source += concat(*text, "\n");
    samples.push_back(std::move(sample));
  }
  return samples;
}

// Empty where a compiled function computes what the nest means.
inline std::string run_and_compare(const CSample& sample, CFunction function, Rng& rng) {
  const auto values = whole_inputs(sample.computation, rng);
  const auto expected =
      interpret(sample.computation, sample.nest, Inputs(values.begin(), values.end()));
  if (!expected) {
    return expected.error().message;
  }
  std::vector<GuardedFloats> guarded;
  for (const std::vector<float>& input : values) {
    guarded.emplace_back(input);
  }
  std::vector<const float*> inputs;
  for (GuardedFloats& input : guarded) {
    inputs.push_back(input.data());
  }
  GuardedFloats output(expected->size());
  function(inputs.data(), output.data());
  for (std::size_t place = 0; place < expected->size(); ++place) {
    if (std::isnan((*expected)[place]) && !std::isnan(output.values()[place])) {
      return concat("place ", place, " is in a gap of the output and was written");
    }
  }
  return output.is_zone_whole() ? difference(sample.computation, *expected, output.values())
                                : "wrote outside of the output";
}

}  // namespace foretune::loop
