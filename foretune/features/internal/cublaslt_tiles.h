// The meaning of cuBLASLt's numbers for tiles, clusters and stages, so that its configs can be
// described without the library. The numbers are those of cublasLt.h 13. Internal to the module.
// Thread safety: constant.
#pragma once

#include <cstdint>

namespace foretune::features_internal {

// The extent of a tile in elements or of a cluster in tiles, for C by columns as in the library. We
// pass it a product stored by rows as its transpose, so `rows` run along our n and `columns` along
// m. Both are 0 where the number is invalid or leaves the choice to the library.
struct CublasltExtent {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};
// The steps held in shared memory.
struct CublasltStages {
  std::uint16_t depth = 0;  // elements of one step along k; 0 for an invalid number
  std::uint16_t count = 0;  // 0 where the library takes as many as fit
};

CublasltExtent cublaslt_tile(std::int32_t number);     // CUBLASLT_MATMUL_TILE_*
CublasltExtent cublaslt_cluster(std::int32_t number);  // CUBLASLT_CLUSTER_SHAPE_*
CublasltStages cublaslt_stages(std::int32_t number);   // CUBLASLT_MATMUL_STAGES_*

}  // namespace foretune::features_internal
