// The kernels of CK Tile (ROCm's composable_kernel) as configs: a schema for its GEMM, one for its
// StreamK GEMM and one for its grouped convolution, and the kernels' names read and written.
//
//   gemm_universal_fp8_rcr_compv3_cshuffle_intrawave_False_False_False_False_
//       128x128x128_1x4x1_16x16x128[_vec8_8_8]
//   gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_atomic_False_False_False_False_...
//   grouped_conv_forward_bf16_2d_64x64x64_compv3[_intrawave|_interwave][_dsb][_si]
//
// A name says what the kernel is, so reading is strict: a part that is missing, out of order or
// unknown is an error that says which, never a default.
//
//   FORETUNE_TRY(const CkGemmKernel kernel, parse_ck_gemm_name(name));
//   use(kernel.dtype, kernel.layout, kernel.config);
//
// Thread safety: free functions without state. Cost: a parse makes no allocation but the config's.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/config.h"

namespace foretune {

// Positions of the words in a "ck-gemm" config.
enum class CkGemmParameter : std::uint8_t {
  kTileM = 0,
  kTileN = 1,
  kTileK = 2,
  kWarpM = 3,  // warps per block
  kWarpN = 4,
  kWarpK = 5,
  kWarpTileM = 6,  // of one matrix instruction
  kWarpTileN = 7,
  kWarpTileK = 8,
  kPipeline = 9,
  kScheduler = 10,
  kEpilogue = 11,
  kPadM = 12,  // 0 or 1, as are the next three
  kPadN = 13,
  kPadK = 14,
  kPersistent = 15,
  kSplitK = 16,  // no part of the name: chosen when the kernel starts
  kVecA = 17,    // elements a load takes; 0 leaves it to the kernel
  kVecB = 18,
  kVecC = 19,
  kReduction = 20,  // of StreamK alone: how partial results become one
};

// Positions of the words in a "ck-grouped-conv" config.
enum class CkConvParameter : std::uint8_t {
  kTileM = 0,
  kTileN = 1,
  kTileK = 2,
  kPipeline = 3,
  kWaveMode = 4,
  kDsb = 5,  // double shared-memory buffer: 0 or 1
  kSi = 6,   // split image: 0 or 1
};

// Labels of the parameter `pipeline`, in both schemas.
enum class CkPipeline : std::uint8_t {
  kCompV3 = 0,
  kCompV4 = 1,
  kCompV5 = 2,
  kMem = 3,
  kPreshuffleV2 = 4,
  kBasicV1 = 5,
  kCompV6 = 6,
};

// Name "ck-gemm", version 1.
const ConfigSchema& ck_gemm_schema();
// Name "ck-gemm-streamk", version 1: the parameters of "ck-gemm", then the reduction.
const ConfigSchema& ck_gemm_streamk_schema();
// Name "ck-grouped-conv", version 1.
const ConfigSchema& ck_grouped_conv_schema();

enum class CkConvVariant : std::uint8_t { kForward = 0, kBwdData = 1, kBwdWeight = 2 };
std::string_view to_string(CkConvVariant variant);  // "forward", "bwd_data", "bwd_weight"

// "fp16", "bf8", "int8": what CK calls a data type. Empty where it has no name for one.
std::string_view ck_dtype_name(DataType type);
Result<DataType> parse_ck_dtype(std::string_view name);

struct CkGemmKernel {
  DataType dtype = DataType::kF16;
  GemmLayout layout = GemmLayout::kRcr;
  Config config;  // of ck_gemm_schema() or ck_gemm_streamk_schema()
  auto operator<=>(const CkGemmKernel&) const = default;
};

struct CkConvKernel {
  CkConvVariant variant = CkConvVariant::kForward;
  DataType dtype = DataType::kBf16;
  std::int32_t spatial_dims = 2;  // 1 to 3
  Config config;                  // of ck_grouped_conv_schema()
  auto operator<=>(const CkConvKernel&) const = default;
};

// A leading "benchmark_" (the program that measures the kernel) is passed over. A GEMM may begin
// with gemm_universal_, gemm_, gemm_preshuffle_ (the pipeline preshufflev2), gemm_streamk_, or with
// the data type, as in the dispatcher's registry. split_k is 1, and the vector widths are 0 where
// the name has none. Errors say what is wrong but not with which name, so that many of a kind can
// be counted together.
Result<CkGemmKernel> parse_ck_gemm_name(std::string_view name);
Result<CkConvKernel> parse_ck_conv_name(std::string_view name);

// A kernel of any of the schemas, with what its name says of the problems that it computes.
struct CkKernel {
  DataType dtype = DataType::kF16;
  std::optional<GemmLayout> layout;      // of a GEMM
  std::optional<CkConvVariant> variant;  // of a convolution
  Config config;
};
// Parses the name of a kernel of that schema. Errors: those above, with the name in front;
// kMismatch for a kernel of another schema; kUnsupported for a schema that is none of the three.
Result<CkKernel> parse_ck_kernel(const ConfigSchema& schema, std::string_view name);

// The name of a kernel; the widths are left out when all three are 0. A GEMM begins with
// gemm_preshuffle_ for that pipeline, else with gemm_universal_ or gemm_streamk_. Errors:
// kInvalidArgument for a data type without a CK name and for a config that is none of the schema.
Result<std::string> ck_gemm_name(const CkGemmKernel& kernel);
// The same without the operation, "fp8_rcr_compv3_...": what KernelKey::encode_identifier() returns
// for a kernel of the dispatcher's registry.
Result<std::string> ck_gemm_identifier(const CkGemmKernel& kernel);
Result<std::string> ck_conv_name(const CkConvKernel& kernel);

}  // namespace foretune
