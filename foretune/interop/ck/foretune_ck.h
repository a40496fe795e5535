/* The names of Composable Kernel's kernels, for programs that pick among them with
 * foretune/select/foretune.h and foretune_conv.h. libforetune_select has them.
 *
 *   foretune_select_gemm(selector, &gemm, &choice);
 *   foretune_ck_gemm_name(gemm.dtype, gemm.layout, choice.words, choice.word_count, name,
 *                         sizeof name);
 *
 *   foretune_select_conv(selector, &conv, &choice);
 *   foretune_ck_conv_name(conv.op, conv.dtype, 2, choice.words, choice.word_count, name,
 *                         sizeof name);
 *
 * Thread safety: any thread may call these functions. */
#ifndef FORETUNE_INTEROP_CK_FORETUNE_CK_H_
#define FORETUNE_INTEROP_CK_FORETUNE_CK_H_

#include <stddef.h>
#include <stdint.h>

#include "foretune/base/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the name of the CK Tile kernel that a config of ck-gemm, or of ck-gemm-streamk, is for a
 * data type and a layout (those of foretune_gemm): "gemm_universal_fp16_rcr_compv3_...". Returns
 * the length needed, as snprintf; 0 when the words are none of such a config or CK has no name for
 * the type. */
FORETUNE_API size_t foretune_ck_gemm_name(int32_t dtype, int32_t layout, const int32_t* words,
                                          uint32_t word_count, char* text, size_t size);

/* Writes the name of the CK Tile kernel that a config of ck-grouped-conv is for an operation and a
 * data type (those of foretune_conv) and 1 to 3 spatial dimensions:
 * "grouped_conv_bwd_data_bf16_2d_64x64x64_compv3". Returns the length needed, as snprintf; 0 when
 * the words are none of such a config or CK has no name for the type. */
FORETUNE_API size_t foretune_ck_conv_name(int64_t op, int64_t dtype, int32_t spatial_dims,
                                          const int32_t* words, uint32_t word_count, char* text,
                                          size_t size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_INTEROP_CK_FORETUNE_CK_H_ */
