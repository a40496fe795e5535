#include "foretune/evaluate/learned_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretune/formats/json.h"

namespace foretune {

double LearnedRate::value(double score) const {
  const double learned = score / factor;
  return std::max(0.0, log1p ? std::expm1(learned) : learned);
}

double LearnedRate::time_ns(double value, const std::optional<ProblemWork>& work) const {
  if (unit == Unit::kMilliseconds) {
    return value * 1e6;
  }
  if (!work || !(value > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return unit == Unit::kTflops ? work->flops / value * 1e-3 : work->bytes / value;
}

std::optional<LearnedRate> learned_rate_of(const Model& model) {
  using Unit = LearnedRate::Unit;
  LearnedRate out;
  if (model.target == "tflops") {
    out.unit = Unit::kTflops;
  } else if (model.target == "latency") {
    out.unit = Unit::kMilliseconds;
  } else if (model.target == "bandwidth") {
    out.unit = Unit::kGigabytesPerSecond;
  } else {
    return std::nullopt;
  }
  const Result<formats::Json> card = formats::parse_json(model.card_json);
  if (!card || formats::text_at(*card, "objective") == "lambdarank") {
    return std::nullopt;
  }
  const formats::Json* const factor = formats::member(*card, "score_factor");
  const formats::Json* const log1p = formats::member(*card, "log1p");
  if (factor == nullptr || !factor->is_number() || log1p == nullptr || !log1p->is_boolean()) {
    return std::nullopt;
  }
  out.factor = factor->get<double>();
  out.log1p = log1p->get<bool>();
  // A latency grows with its score, a rate falls.
  const bool has_right_sign = out.unit == Unit::kMilliseconds ? out.factor > 0 : out.factor < 0;
  return has_right_sign && std::isfinite(out.factor) ? std::optional(out) : std::nullopt;
}

}  // namespace foretune
