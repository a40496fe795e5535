#include "foretune/cuda/measuring/device_data.h"

#include <algorithm>
#include <cmath>

namespace foretune::cuda {
namespace {

constexpr std::size_t kMaxSets = 64;

}  // namespace

Status DeviceData::make_sets(std::size_t wanted) {
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes()));
  const std::size_t enough = 2 * device_->l2_bytes() / each + 1;
  wanted = std::clamp<std::size_t>(wanted, 1, std::min(enough, kMaxSets));
  while (sets() < wanted) {
    FORETUNE_TRY_STATUS(add_set());
  }
  if (eviction_.bytes() == 0) {
    FORETUNE_TRY(eviction_, device_->allocate(2 * device_->l2_bytes()));
  }
  return {};
}

void DeviceData::flush() { device_->set(eviction_, 0); }

double result_precision(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 0x1p-16;
    case DataType::kTf32:
      return 0x1p-14;
    case DataType::kF16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

double typical_sum(double count) { return std::sqrt(count) / 3; }

std::size_t bytes_of(DataType type, std::uint64_t elements) {
  return static_cast<std::size_t>(bytes_per_element(type) * static_cast<double>(elements));
}

}  // namespace foretune::cuda
