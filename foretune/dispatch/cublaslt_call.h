// One call of cublasLtMatmul: its arguments, what of them the choice of an algorithm depends on,
// and the problem that it is to a model.
//
// Thread safety: free functions and plain values. Cost: reading a call asks the library about 25
// attributes, some nanoseconds each.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/cublaslt/cublaslt_api.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

// In the order of cublasLtMatmul.
struct MatmulCall {
  cublaslt::Handle handle = nullptr;
  cublaslt::Descriptor descriptor = nullptr;
  const void* alpha = nullptr;
  const void* a = nullptr;
  cublaslt::Layout a_layout = nullptr;
  const void* b = nullptr;
  cublaslt::Layout b_layout = nullptr;
  const void* beta = nullptr;
  const void* c = nullptr;
  cublaslt::Layout c_layout = nullptr;
  void* d = nullptr;
  cublaslt::Layout d_layout = nullptr;
  const cublaslt::Algorithm* algorithm = nullptr;  // none: it is chosen here
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  gpu::Stream stream = nullptr;

  // Whether the library can be asked about it at all.
  [[nodiscard]] bool has_descriptors() const {
    return handle != nullptr && descriptor != nullptr && a_layout != nullptr &&
           b_layout != nullptr && c_layout != nullptr && d_layout != nullptr;
  }
};

namespace dispatch_internal {

struct LayoutKey {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t stride = 0;  // 0 without batches
  std::int32_t type = 0;
  std::int32_t order = 0;
  std::int32_t batches = 1;
  std::int32_t reserved = 0;
};

// Without padding, so that its bytes can be compared and hashed.
struct CallKey {
  LayoutKey a;
  LayoutKey b;
  LayoutKey c;
  LayoutKey d;
  std::uint64_t workspace_bytes = 0;  // that may be used
  std::int32_t compute = 0;
  std::int32_t scale = 0;
  std::int32_t pointer_mode = 0;
  std::int32_t transpose_a = 0;
  std::int32_t transpose_b = 0;
  std::uint32_t epilogue = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t f8_modes = 0;   // fast accumulation, and how inputs are scaled
  std::int32_t alignment = 0;  // see kAligned
  std::int32_t device = -1;    // of the context; -1 without one

  using Words = std::array<std::uint64_t, 30>;
  [[nodiscard]] Words words() const { return std::bit_cast<Words>(*this); }
  [[nodiscard]] std::uint64_t hash() const {
    const Words all = words();
    // Two chains, since each step waits for the one before.
    std::uint64_t even = 0;
    std::uint64_t odd = 1;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      even = std::rotl(even ^ all[i], 29) * 0x9e3779b97f4a7c15U;
      odd = std::rotl(odd ^ all[i + 1], 31) * 0xbf58476d1ce4e5b9U;
    }
    return mix64(even ^ std::rotl(odd, 32));
  }
  bool operator==(const CallKey& other) const { return words() == other.words(); }
};
static_assert(std::has_unique_object_representations_v<CallKey> &&
              sizeof(CallKey) == sizeof(CallKey::Words));

// log2 of the bytes to which all operands are aligned, in the steps that make a difference: models
// learn from operands at multiples of 256, kernels ask for at most 16.
inline constexpr std::int32_t kAligned = 8;
inline constexpr std::int32_t kAlignedForKernels = 4;
std::int32_t alignment_of(const MatmulCall& call);

// How much of its workspace a call may use: nothing of one that the library refuses.
std::uint64_t usable_workspace(const MatmulCall& call);

// Fills what the descriptors say; the workspace, the alignment and the device are the caller's.
// Returns the library's status.
int read_descriptors(const cublaslt::Api& api, const MatmulCall& call, CallKey& key);

// The problem that models know. Errors: kUnsupported with what it is that they do not know.
Result<GemmProblem> problem_of(const CallKey& key);

}  // namespace dispatch_internal
}  // namespace foretune
