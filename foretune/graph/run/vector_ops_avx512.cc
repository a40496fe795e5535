#include "foretune/graph/run/internal/vector_ops_inl.h"
#include "foretune/graph/run/internal/vector_ops_isa.h"

namespace foretune::graph {

const VectorOps& avx512_vector_ops() {
  static constexpr VectorOps kOps = all_vector_ops();
  return kOps;
}

}  // namespace foretune::graph
