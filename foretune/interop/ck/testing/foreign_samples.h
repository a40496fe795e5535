// Kernels and problems as a test wants them for models that were trained elsewhere. For tests.
// Thread safety: free functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/problem.h"

namespace foretune {

// "grouped_conv_..." or "gemm_universal_..." names of kernels for bf16.
inline std::vector<std::string> sample_kernels(ProblemType type) {
  std::vector<std::string> out;
  for (const std::string_view pipeline : {"compv3", "compv4", "mem"}) {
    for (const int tile_m : {32, 64, 128, 256}) {
      for (const int tile_n : {64, 128}) {
        if (type == kConvProblem) {
          out.push_back(concat("grouped_conv_forward_bf16_2d_", tile_m, "x", tile_n, "x64_",
                               pipeline, "_intrawave"));
          continue;
        }
        const std::string_view pad = pipeline == "mem" ? "True" : "False";
        out.push_back(concat("gemm_universal_bf16_rcr_", pipeline, "_cshuffle_intrawave_", pad, "_",
                             pad, "_", pad, "_False_", tile_m, "x", tile_n, "x64_2x2x1_16x16x32"));
      }
    }
  }
  return out;
}

inline Problem sample_foreign_problem(ProblemType type, Rng& rng) {
  const auto size = [&](std::uint64_t step, std::uint64_t most) {
    return step * (1 + rng.below(most));
  };
  const std::string text = type == kConvProblem
                               ? concat("conv op=forward n=", size(1, 16), " c=", size(16, 16),
                                        " k=", size(16, 16), " g=1 hi=", size(7, 8),
                                        " wi=", size(7, 8), " y=3 x=3 pad_h=1 pad_w=1 dtype=bf16")
                               : concat("gemm m=", size(8, 300), " n=", size(64, 60),
                                        " k=", size(64, 60), " dtype=bf16 layout=rcr");
  return Problem::parse(text).value();
}

// Without models: the names of the table's features in the order of the models that it reproduces.
inline ModelDirectory sample_foreign_spec(const FeatureTable& table, ProblemType type) {
  ModelDirectory out;
  out.op_type = type == kConvProblem ? "grouped_conv" : "gemm_universal";
  out.dtype = "bf16";
  out.arch = "gfx950";
  for (const std::uint16_t column : foreign_order(table)) {
    const FeatureInfo& info = table.columns()[column];
    out.feature_names.emplace_back(info.name);
    if (info.is_categorical) {
      out.categorical_features.emplace_back(info.name);
    }
  }
  return out;
}

}  // namespace foretune
