#include "foretune/families/loop_nest/nest_data.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/expected_outputs.h"

namespace foretune {

Result<std::unique_ptr<NestData>> NestData::create(loop::Computation computation,
                                                   std::uint64_t seed,
                                                   std::shared_ptr<const loop::Jit> jit) {
  std::unique_ptr<NestData> data(new NestData(std::move(computation), std::move(jit)));
  Rng rng(seed);
  for (const std::vector<float>& values : loop::whole_inputs(data->computation_, rng)) {
    FORETUNE_TRY(AlignedBuffer buffer, AlignedBuffer::create(values.size()));
    std::copy(values.begin(), values.end(), buffer.data());
    data->inputs_.push_back(std::move(buffer));
  }
  for (const AlignedBuffer& input : data->inputs_) {
    data->views_.push_back(input.view());
  }
  const auto elements = static_cast<std::size_t>(data->computation_.output.elements());
  FORETUNE_TRY(data->output_, AlignedBuffer::create(elements));
  return data;
}

void NestData::poison() {
  std::fill(output_.view().begin(), output_.view().end(), std::numeric_limits<float>::quiet_NaN());
}

Support NestData::verify() {
  if (expected_.empty()) {
    expected_ = loop::expected_outputs(computation_, views_, *jit_);
  }
  const std::string wrong = loop::difference(computation_, expected_, output_.view());
  return wrong.empty() ? Support::yes() : Support::no(wrong);
}

std::int64_t NestData::bytes() const {
  std::size_t floats = output_.size();
  for (const AlignedBuffer& input : inputs_) {
    floats += input.size();
  }
  return static_cast<std::int64_t>(floats * sizeof(float));
}

}  // namespace foretune
