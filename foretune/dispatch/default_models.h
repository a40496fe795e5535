// The models that this build ships, each for the machine that its fingerprint names: those of the
// CPU trained by scripts/default_model.sh and default_conv_model.sh, that of cuBLASLt as
// docs/guides/gpu.md says, those of cuDNN as docs/guides/cudnn.md says. Thread safety: free
// functions on constant data.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "foretune/hardware/cpu.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

// A model that ranks configs of a family of the CPU.
struct DefaultModel {
  std::string_view family;  // "cpu-gemm"
  std::string_view name;    // "cpu-gemm-avx512-1"
  CpuIsa isa = CpuIsa::kGeneric;
  int threads = 1;  // that its configs use at most
  std::span<const std::byte> bytes;
};

std::span<const DefaultModel> default_models();

// Returns the family's model for this number of threads, of the widest instruction set up to `isa`.
// Returns nothing when there is none: the fastest config on two cores says little about sixteen.
std::optional<Model> default_cpu_model(std::string_view family, CpuIsa isa, int threads);

// A model that ranks configs of cublaslt, for the device and the version of the library in its
// fingerprint's isa.
struct DefaultCublasltModel {
  std::string_view name;
  std::span<const std::byte> bytes;
};

std::span<const DefaultCublasltModel> default_cublaslt_models();

// The same for one direction of cudnn, whose engines have other numbers in another direction.
struct DefaultCudnnModel {
  ConvOperation operation = ConvOperation::kForward;
  std::string_view name;
  std::span<const std::byte> bytes;
};

std::span<const DefaultCudnnModel> default_cudnn_models();

}  // namespace foretune
