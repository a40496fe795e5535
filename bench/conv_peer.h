// oneDNN's convolutions, which ours are compared with. Needs its headers (dnnl.hpp of version 2 or
// 3), so it is found when the benchmarks are built.
// Thread safety: one calling thread; oneDNN runs on OMP_NUM_THREADS threads.
#pragma once

#include <functional>
#include <string>

#include "foretune/loop/computation.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

// Returns oneDNN's name and version; empty when the benchmarks were built without it.
std::string onednn_name();
// Returns a function that runs the convolution of one image or more, NHWC. The weights are
// reordered here, once, to the layout that oneDNN prefers. The function must not outlive the
// arrays. Empty when oneDNN does not support the convolution.
std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& sizes, float* image,
                                                 float* weights, float* output);

// A convolution of oneDNN's in any of the three directions, with channels last outside of it.
struct PeerConvolution {
  std::function<void()> run;     // in the layouts that oneDNN prefers; all reorders are done before
  std::function<void()> whole;   // the same, with reorders of tensors that are not weights inside
  std::function<void()> finish;  // brings the result of run() to the caller's tensor
};
// The tensors are those of the problem, in its type; elements of other types are passed as if they
// were floats, and inputs of i8 are taken as unsigned ones, which oneDNN prefers. The result is the
// one that the problem computes; one of i8 takes a scale for each filter. Weights of a forward pass
// and of a gradient of inputs are reordered here, once. All functions are empty when oneDNN does
// not support the convolution. The tensors and scales have to outlive them.
PeerConvolution prepare_onednn(const ConvProblem& problem, float* input, float* weights,
                               float* output, const float* scales = nullptr);

// Restricts oneDNN to the instructions that our kernels for the type use. Only before its first
// primitive; returns false when it is too late or when oneDNN has no such limit.
bool limit_onednn(DataType dtype);

}  // namespace foretune
