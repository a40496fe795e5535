// The objects of the fake cuBLASLt, and how their attributes are set and given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "foretune/cuda/cublaslt_api.h"
#include "tests/fake_gpu/fake_product.h"
#include "tests/fake_gpu/fake_state.h"

// The objects that cublaslt_api.h leaves to the library.
namespace foretune::cublaslt {

struct HandleObject {};
struct DescriptorObject {
  ComputeType compute = ComputeType::kF32;
  CudaType scale = CudaType::kF32;
  std::int32_t pointer_mode = 0;
  std::int32_t transpose_a = 0;
  std::int32_t transpose_b = 0;
  Epilogue epilogue = Epilogue::kDefault;
  cuda::DevicePointer bias = 0;
  std::optional<CudaType> bias_type;
  std::int32_t multiprocessors = 0;
  std::int8_t fast_accumulation = 0;
};
struct LayoutObject {
  fake_gpu::Matrix matrix;
  std::int32_t order = 0;
};
struct PreferenceObject {
  std::uint64_t max_workspace_bytes = 0;
};

}  // namespace foretune::cublaslt

namespace foretune::fake_gpu {

template <class Object>
int make(Object** to, Object object) {
  if (to == nullptr) {
    return cublaslt::kInvalidValue;
  }
  auto made = std::make_unique<Object>(std::move(object));
  State& device = state();
  const std::lock_guard lock(device.mutex);
  device.live.insert(made.get());
  *to = made.release();
  return cublaslt::kSuccess;
}

template <class Object>
int destroy(Object* object) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (device.live.erase(object) == 0) {
    return cublaslt::kInvalidValue;
  }
  const std::unique_ptr<Object> owner(object);
  return cublaslt::kSuccess;
}

inline bool is_live(const void* object) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  return device.live.contains(object);
}

inline bool all_live(std::initializer_list<const void*> objects) {
  return std::ranges::all_of(objects, is_live);
}

// Sets a field from an attribute's value of exactly its size.
template <class T>
int set_field(T& field, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) {
    return cublaslt::kInvalidValue;
  }
  std::memcpy(&field, value, sizeof(T));
  return cublaslt::kSuccess;
}

// Sets a field that has no value until then.
template <class T>
int set_field(std::optional<T>& field, const void* value, std::size_t bytes) {
  T given{};
  const int status = set_field(given, value, bytes);
  if (status == cublaslt::kSuccess) {
    field = given;
  }
  return status;
}

// Gives a value as cuBLASLt does: with 0 bytes only how many are needed; of an array what fits.
inline int give_bytes(const void* from, std::size_t size, std::size_t element, void* to,
                      std::size_t bytes, std::size_t* written) {
  if (bytes == 0) {
    if (written == nullptr) {
      return cublaslt::kInvalidValue;
    }
    *written = size;
    return cublaslt::kSuccess;
  }
  const bool is_array = size != element;
  if (to == nullptr || (!is_array && bytes != size)) {
    return cublaslt::kInvalidValue;
  }
  const std::size_t given = std::min(size, bytes / element * element);
  std::memcpy(to, from, given);
  if (written != nullptr) {
    *written = given;
  }
  return cublaslt::kSuccess;
}

template <class T>
int give(T value, void* to, std::size_t bytes, std::size_t* written) {
  return give_bytes(&value, sizeof(T), sizeof(T), to, bytes, written);
}

// Gives -1 for no value.
inline int give(std::optional<cublaslt::CudaType> type, void* to, std::size_t bytes,
                std::size_t* written) {
  return give(type ? static_cast<std::int32_t>(*type) : -1, to, bytes, written);
}

}  // namespace foretune::fake_gpu
