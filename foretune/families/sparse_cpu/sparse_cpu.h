// The family sparse-cpu, for whoever holds a matrix in memory and runs its products with
// SparsePlan.
//
//   FORETUNE_TRY(const auto family, create_sparse_cpu(options));
//   FORETUNE_TRY(const SparseCpuConfig config, sparse_cpu_config(family->info(), problem, words));
//   FORETUNE_TRY(auto plan, SparsePlan<float>::create(matrix, sizes, config, pool,
//                                                     max_packed_bytes(family->info())));
//
// Thread safety: free functions; the family as Family.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/schemas/sparse_cpu.h"

namespace foretune {

inline constexpr std::string_view kSparseCpuName = "sparse-cpu";
inline constexpr std::string_view kSparseCpuDescription =
    "products of a sparse matrix on this CPU, with our own kernels";

// Reads zipped payloads where it gets a function for them. Takes the parameter space=NAME beside
// those of apply_cpu_limits(): a subspace (sparse_cpu_space.h). Errors: kInvalidArgument for an
// unknown subspace; those of apply_cpu_limits() and of opening payload folders.
Result<std::unique_ptr<Family>> create_sparse_cpu(const FamilyOptions& options,
                                                  InflateGzip inflate = nullptr);

// Returns the canonical config. Errors: kUnsupported with the reason for one that is not legal for
// the problem.
Result<SparseCpuConfig> sparse_cpu_config(const FamilyInfo& info, const Problem& problem,
                                          const Config& config);

// Returns how many bytes a packed matrix may take: half of the memory.
[[nodiscard]] std::uint64_t max_packed_bytes(const FamilyInfo& info);

}  // namespace foretune
