#include "foretune/loop/machine/operands.h"

#include <algorithm>
#include <limits>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/expected_outputs.h"

namespace foretune::loop {

Result<Operands> Operands::create(Computation computation, std::uint64_t seed) {
  Operands out(std::move(computation));
  Rng rng(seed);
  for (const std::vector<float>& values : whole_inputs(out.computation_, rng)) {
    FORETUNE_TRY(AlignedBuffer buffer, AlignedBuffer::create(values.size()));
    std::copy(values.begin(), values.end(), buffer.data());
    out.inputs_.push_back(std::move(buffer));
  }
  for (const AlignedBuffer& input : out.inputs_) {
    out.views_.push_back(input.view());
  }
  const auto elements = static_cast<std::size_t>(out.computation_.output.elements());
  FORETUNE_TRY(out.output_, AlignedBuffer::create(elements));
  return out;
}

std::int64_t Operands::bytes() const {
  std::size_t floats = output_.size();
  for (const AlignedBuffer& input : inputs_) {
    floats += input.size();
  }
  return static_cast<std::int64_t>(floats * sizeof(float));
}

void Operands::poison() {
  std::fill(output_.view().begin(), output_.view().end(), std::numeric_limits<float>::quiet_NaN());
}

std::string Operands::wrong_output(const Jit& jit) {
  if (expected_.empty()) {
    expected_ = expected_outputs(computation_, views_, jit);
  }
  return difference(computation_, expected_, output_.view());
}

}  // namespace foretune::loop
