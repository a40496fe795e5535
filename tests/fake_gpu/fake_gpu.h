// libforetune_fake_gpu.so plays NVIDIA's driver, NVML, cuBLASLt and cuDNN on the CPU, so that
// everything that measures on a GPU can be tested without one. It exports the symbols that
// cuda::DriverApi, cuda::NvmlApi, cublaslt::Api and cudnn::Api look up: give its path as all of
// them. This file is its manual; it declares nothing.
//
// The device
//   One GPU: sm_90, 132 multiprocessors, 50 MiB of L2 cache, 4 GiB of memory (live allocations are
//   counted; beyond it cuMemAlloc returns 2), PCI bus 0000:01:00.0, driver 13.0, cuBLASLt 13.0.
//   A DevicePointer is the host address of an allocated block, aligned to 256 bytes, so that a test
//   may look at device memory. Whoever writes to it directly should not do so to a block that was
//   last written by a cuMemset of 32 MiB or more: repeating such a memset is skipped.
//   Every access is checked to lie inside one live allocation. If not, the call returns 700
//   (illegal address; 13 from cublasLtMatmul) and the context is broken for good: every later
//   driver call returns 700. cuInit is needed first (else 3), and a current context on the thread
//   (else 201). Handles that are destroyed or made up give 400.
//
// Time
//   A simulated clock in nanoseconds, which executed operations advance; nothing else does, and no
//   real time passes through it. Streams execute in order, at once when an operation is enqueued,
//   and events take the time of the clock, so cuEventElapsedTime is exact and repeatable, up to the
//   jitter of a product, a hash of the number of products executed so far in this process. A fill,
//   a compare or another kernel of ours takes 2000 + bytes / 2400, cuMemset 1500 + bytes / 3000, a
//   copy 3000 + bytes / 50, the launch of a graph 3000.
//
// Capture
//   While a stream captures, memsets, kernels, products and cuEventRecordWithFlags(..., external)
//   become nodes of its graph. An event recorded without that flag returns 906; copies,
//   cuStreamSynchronize, cuGraphLaunch, and allocating or freeing memory return 900, and the
//   capture is lost: cuStreamEndCapture returns 901. Outside of a capture the flag returns 1.
//   Arguments are copied when captured, pointers are checked when the graph executes.
//
// Kernels
//   cuModuleLoadData takes any text that names foretune_fill, foretune_widen, foretune_gelu,
//   foretune_compare, foretune_conv and foretune_conv_epilogue (else 218); they run on the host as
//   foretune/cuda/kernels/check.cu says. Another name gives 500 from cuModuleGetFunction. An image
//   that begins with "foretune fake triton kernel\n" followed by the key of a kernel of the family
//   triton (foretune/families/triton/triton_config.h) and a zero is such a kernel, by the name of
//   "matmul". It computes the product with the parameters of that family's launches, in 2200 +
//   waves * (block_m * block_n * k * 3.3e-4) * f, f by tile, stages, warps and alignment. A launch
//   with another number of threads or blocks than the key asks for, or with sizes that break what
//   the key promises (even_k, aligned), is an illegal address.
//
// cuBLASLt
//   Algorithms (tiles are given as id, rows x columns of D):
//     66  F16, BF16, F8E4M3 in, compute F32: tiles 18 (128x64), 20 (128x128), 23 (128x256),
//         15 (64x64), 448 (192x128); stages 35; custom 0..2; swizzle 0..1; split-k with any of
//         reduction schemes 1, 2, 4; clusters 0 (auto), 2 (1x1), 3 (2x1), 5 (1x2)
//     67  the same types: tiles 11 (32x32), 15, 20; stages 0; custom 0; no swizzle; split-k with
//         reduction scheme 2; cluster 0
//     1, 2  F32 in and out with compute F32, F32 pedantic or TF32, and F64 with compute F64: as 67,
//         without split-k
//   C and D have the same type: that of A or F32, for F8 any of F16, BF16, F32 (or C is one of
//   F16, BF16 and D is F8).
//   cublasLtMatmulAlgoCheck and cublasLtMatmul return 15 for config words outside of these sets,
//   split-k outside of 1..16, of less than 16 of k each or without a reduction scheme (and a scheme
//   without split-k), types that are not those of cublasLtMatmulAlgoInit, sizes or batches that
//   disagree, a leading dimension below the rows, F8 other than transposed A and plain B with
//   leading dimensions in multiples of 16. The workspace is 4 * m * n * split_k * batch bytes with
//   split-k, else 0; too little given to cublasLtMatmul returns 7, and so do null operands and
//   unknown attributes or wrong sizes of their values. The inner shape has to be 0. Row-major
//   layouts, alpha and beta on the device, and epilogues other than bias, relu and gelu return 15.
//   Without an algorithm the heuristic's first is run. cublasLtMatmulAlgoGetHeuristic offers up to
//   8 configs of tiles and split-k in {1, 2, 4, 8} that fit the preference's workspace, by a
//   formula without wave quantisation that underrates what small tiles lose, so that the fastest
//   config is often not the first, or not there.
//
// Products
//   cublasLtMatmul computes what it is asked for: column-major, transposes, strided batches, alpha
//   and beta (float, or double for compute F64), bias along the rows of D, relu or gelu, rounded to
//   nearest even (F8 saturates). Sums are float, or double for compute F64; TF32 rounds its inputs
//   to 10 bits of fraction first. Tiles and split-k do not change the result. A product of operands
//   seen before is remembered and costs about as much as reading them. Its simulated time, with
//   tiles counted along D's rows and columns, rounded up to clusters:
//     2000 + waves * (tile rows * tile columns * ceil(k / split_k) * c) * f + split-k's reduction
//   waves = ceil(tiles * batch * split_k / 132). c depends on the types and on the tile (larger is
//   more efficient), f within a few percent on cluster, swizzle and custom option, and on the
//   algorithm (67 is 30 % slower, 2 is 10 % slower than 1). On top a jitter of less than 0.5 %.
//   When no product has touched A's pointer since the last memset of 32 MiB or more, 600 + bytes of
//   A / 4800 is added: a cold cache.
//
// Questions of tests, for dlsym
//   uint64_t foretune_fake_gpu_calls(const char* symbol): how often cublasLtMatmul,
//     cublasLtMatmulAlgoInit, cublasLtMatmulAlgoCheck or cublasLtMatmulAlgoGetHeuristic was called
//   void foretune_fake_gpu_last_algorithm(uint64_t* words): the cublasLtMatmulAlgo_t (8 words) of
//     the product executed last
//   void foretune_fake_gpu_set_faults(const char* faults): replaces FORETUNE_FAKE_GPU_FAULTS; not
//     while other threads use the fake
//
// cuDNN
//   Version 9.19. Seven engines:
//     0  any convolution; no knobs
//     1  tensor cores, channels last in multiples of 8 (4 in f32): tile size (2) 0..3, stages (14)
//        0..2, but not 3 with 2
//     2  as 1 and not deterministic: tile size (2) 0..3, split (17) 1..64, which needs a workspace
//     of
//        4 bytes for every element of the result and part
//     3  compiles at run time: kernel (24) 0..5, of which 5 does not compile
//     4  a knob of a type that no version has (60): 0..1; executing it with 1 while its stream
//        captures returns 4006, and the capture is lost
//     5  Winograd, forward passes of 3x3 without strides and dilations: a workspace of 16 bytes for
//        every element of the result
//     6  none: its finalising returns 3000
//   Tensors are packed, with channels first or last, or finalising the operation returns 3004;
//   sizes that do not fit give 2008, other mistakes 2000 or 2004. A bias, a tensor of the output's
//   shape and ReLU may follow a forward pass in that order or another. Heuristics A, B and fallback
//   offer up to five configs; the fastest is often not the first. Faults name an engine as TILE =
//   5000 + its number; refuse:TILE makes finalising a plan return 3000, and crash:TILE executing it
//   5000. Results are computed in double precision and rounded to nearest even.
//
// Environment, read once at first use
//   FORETUNE_FAKE_GPU_NAME    name of the device; "Foretune Fake GPU" if not set
//   FORETUNE_FAKE_GPU_FAULTS  a comma-separated list, TILE being a tile's id, or
//                             1000 * block_m + block_n of a kernel of Triton's:
//     wrong:TILE   the element in the middle of every result of the tile is off by 1000
//     nan:TILE     the last element of the result is not written
//     crash:TILE   cublasLtMatmul returns 13 and every later driver call 719
//     hang:TILE    cuStreamSynchronize never returns once such a product has been executed
//     refuse:TILE  cublasLtMatmul returns 15, although cublasLtMatmulAlgoCheck accepts
//     throttle     NVML reports reason 0x20 and an SM clock of 1200 MHz
//     nonvml       nvmlInit_v2 returns 9 (driver not loaded)
//     nodevice     cuInit returns 100
//     busy         cuEventElapsedTime returns 600: the work has not ended
//   An unknown word ends the process, so that a misspelt fault does not pass for none.
//
// NVML
//   SM clock 1980 MHz, memory clock 3201 MHz, both also as the maximum, 350 W, 45 C, no reasons.
//   The total energy is 1000 J and those 350 W over the simulated time. Calls before nvmlInit_v2,
//   or after as many of nvmlShutdown, return 1.
//
// Thread safety: any thread may call; calls wait for each other.
#pragma once
