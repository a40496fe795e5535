// One call of cublasLtMatmul: its arguments, the facts about them on which the choice of an
// algorithm depends, and the problem that a model sees.
//
// Thread safety: free functions and plain values. Cost: reading a call queries about 25 attributes
// of the library, some nanoseconds each.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/cuda/cublaslt_api.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

// The arguments in the order of cublasLtMatmul.
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
  cuda::Stream stream = nullptr;

  // Returns true when the call is complete enough to query the library about it.
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

// Has no padding, so that its bytes can be compared and hashed.
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

// Returns log2 of the bytes to which all operands are aligned, in the steps that make a difference:
// models learn from operands at multiples of 256, kernels require at most 16.
inline constexpr std::int32_t kAligned = 8;
inline constexpr std::int32_t kAlignedForKernels = 4;
std::int32_t alignment_of(const MatmulCall& call);

// Returns how many bytes of its workspace a call may use: 0 of a workspace that the library
// refuses.
std::uint64_t usable_workspace(const MatmulCall& call);

// Fills the members that the descriptors determine; the caller sets the workspace, the alignment
// and the device. Returns the library's status.
int read_descriptors(const cublaslt::Api& api, const MatmulCall& call, CallKey& key);

// Returns the problem in the models' terms. Errors: kUnsupported with the property that models do
// not know.
Result<GemmProblem> problem_of(const CallKey& key);

}  // namespace dispatch_internal
}  // namespace foretune
