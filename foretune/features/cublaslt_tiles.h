// What cuBLASLt's numbers of tiles, clusters and stages stand for, so that its configs can be
// described without the library. The numbers are those of cublasLt.h 13. Internal to the module.
// Thread safety: constant.
#pragma once

#include <cstdint>

namespace foretune::features_internal {

// Of a tile in elements or of a cluster in tiles, as the library sees C: by columns. A product
// stored by rows is given to it as its transpose, so that `rows` run along n of ours and `columns`
// along m. Both are 0 where the number is none, or leaves the choice to the library.
struct CublasltExtent {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};
// Steps that are held in shared memory.
struct CublasltStages {
  std::uint16_t depth = 0;  // elements along k of one; 0 where the number is none
  std::uint16_t count = 0;  // 0 where the library takes as many as fit
};

CublasltExtent cublaslt_tile(std::int32_t number);     // CUBLASLT_MATMUL_TILE_*
CublasltExtent cublaslt_cluster(std::int32_t number);  // CUBLASLT_CLUSTER_SHAPE_*
CublasltStages cublaslt_stages(std::int32_t number);   // CUBLASLT_MATMUL_STAGES_*

}  // namespace foretune::features_internal
