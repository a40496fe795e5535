// oneDNN's convolutions, which ours are measured beside. Needs its headers, so it is found when the
// benchmarks are built; dnnl.hpp of version 2 or 3.
// Thread safety: one thread; it runs on as many as OMP_NUM_THREADS says.
#pragma once

#include <functional>
#include <string>

#include "foretune/loop/computation.h"

namespace foretune {

// Its name and version; empty when the benchmarks were built without it.
std::string onednn_name();
// One image or more, NHWC, with weights in the order that oneDNN likes best: put into it here,
// once. What runs it must not outlive the arrays; empty where oneDNN does not do such a
// convolution.
std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& sizes, float* image,
                                                 float* weights, float* output);

}  // namespace foretune
