// Base of the data of a problem on a device: copies of the operands for runs with a cold cache.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/cuda/device.h"
#include "foretune/family/family.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cuda {

// Elements of any type whose bytes all have this value are NaNs.
inline constexpr unsigned char kPoison = 0xff;

class DeviceData : public ProblemData {
 public:
  // Set 0 is the one that poison() and verify() use. The others hold the same inputs elsewhere in
  // memory, for runs that must not find theirs in the cache.
  [[nodiscard]] virtual std::size_t sets() const = 0;
  // Makes as many sets as together are larger than the device's cache, but at most `wanted`.
  // Errors: kUnsupported when there is too little memory.
  Status make_sets(std::size_t wanted);
  // Overwrites more than the cache holds.
  void flush();

 protected:
  explicit DeviceData(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // Errors: kUnsupported when there is too little memory.
  virtual Status add_set() = 0;
  [[nodiscard]] Device& device() const { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  Buffer eviction_;
};

// Returns the relative change that one rounding of a result may cause, with room for sums of parts
// that were rounded before.
double result_precision(DataType type);
// Returns the standard deviation of a sum of `count` products of numbers that are uniform in
// [-1, 1).
double typical_sum(double count);
std::size_t bytes_of(DataType type, std::uint64_t elements);

}  // namespace foretune::cuda
