// oneDNN's convolutions, which ours are compared with. Needs its headers (dnnl.hpp of version 2 or
// 3), so it is found when the benchmarks are built.
// Thread safety: one calling thread; oneDNN runs on OMP_NUM_THREADS threads.
#pragma once

#include <functional>
#include <string>

#include "foretune/loop/computation.h"

namespace foretune {

// Returns oneDNN's name and version; empty when the benchmarks were built without it.
std::string onednn_name();
// Returns a function that runs the convolution of one image or more, NHWC. The weights are
// reordered here, once, to the layout that oneDNN prefers. The function must not outlive the
// arrays. Empty when oneDNN does not support the convolution.
std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& sizes, float* image,
                                                 float* weights, float* output);

}  // namespace foretune
