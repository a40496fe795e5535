// Declares the functions that each instruction set's file defines: they return its kernel set, or
// nullptr where the file was compiled for another architecture. kernel_set() checks that this CPU
// can run it. Thread safety: free functions on constant tables.
#pragma once

#include "foretune/kernels/group_kernel.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/output_stage.h"
#include "foretune/kernels/packing.h"
#include "foretune/kernels/winograd_kernel.h"

namespace foretune {

// Return nullptr also for words that the instruction set cannot multiply at once.
const KernelSet* generic_kernel_set(KernelMath math);
const KernelSet* avx2_kernel_set(KernelMath math);
const KernelSet* avx512_kernel_set(KernelMath math);
const KernelSet* avx512_word_kernel_set(KernelMath math);  // for words other than f32

const TapKernelSet* generic_tap_kernel_set(KernelMath math);
const TapKernelSet* avx2_tap_kernel_set(KernelMath math);
const TapKernelSet* avx512_tap_kernel_set(KernelMath math);
const TapKernelSet* avx512_word_tap_kernel_set(KernelMath math);  // for words other than f32
const TapKernelSet* avx512_tile_tap_kernel_set(KernelMath math);  // for words in tiles of AMX
// Begin and end a TileScope of the calling thread.
void avx512_begin_tiles();
void avx512_end_tiles();

const GroupKernelSet* generic_group_kernel_set();
const GroupKernelSet* avx2_group_kernel_set();
const GroupKernelSet* avx512_group_kernel_set();
const GroupKernelSet* avx512_bf16_group_kernel_set();
const GroupKernelSet* avx512_i8_group_kernel_set(bool is_fused);  // with VNNI

// Returns nullptr for types whose plain loops are fast enough.
OutputStage avx512_output_stage(OutputType type);

const WinogradKernels* generic_winograd_kernels(bool large);
const WinogradKernels* avx2_winograd_kernels(bool large);
const WinogradKernels* avx512_winograd_kernels(bool large);

// Return the portable functions where the file was compiled for another architecture.
TransposePanel avx2_transpose_panel();
TransposePanel avx512_transpose_panel();

}  // namespace foretune
