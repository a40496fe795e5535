// Composable Kernel's words for what our problems call otherwise, so that command lines of its
// scripts work here, and the name of the kernel that a config is for a problem.
//
//   our_label("dtype", "fp16")                  "f16"
//   our_label("op", "bwd_data")                 "backward_data"
//   parse_ck_operation("grouped_conv_bwd_data") convolutions, backward_data
//   ck_kernel_name(problem, config)             "grouped_conv_bwd_data_bf16_2d_64x64x64_compv3"
//
// Thread safety: free functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Returns our label of a field for Composable Kernel's word; other words come back as they are.
std::string_view our_label(std::string_view field, std::string_view word);

// An operation by Composable Kernel's name, as in --op and in feature_spec.json.
struct CkOperation {
  ProblemType type{};
  std::string_view label;  // of the field op; empty where the name leaves it open
};
// Returns nothing for other words.
std::optional<CkOperation> parse_ck_operation(std::string_view name);

// Returns an empty text for configs that are no kernels of Composable Kernel, and for problems that
// it has no kernel for. A split_k above 1 stands behind the name: " split_k=2".
std::string ck_kernel_name(const Problem& problem, const Config& config);

}  // namespace foretune
