// The tables of vector_ops.h that each file of an instruction set makes. On other architectures
// all of them are made of the same code. Thread safety: constant tables.
#pragma once

#include "foretune/graph/run/vector_ops.h"

namespace foretune::graph {

const VectorOps& generic_vector_ops();
const VectorOps& avx2_vector_ops();
const VectorOps& avx512_vector_ops();

}  // namespace foretune::graph
