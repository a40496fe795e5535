/* cublasLtMatmul with an algorithm that a model chooses: the same arguments after one more.
 *
 *   foretune_cublaslt* foretune = NULL;
 *   foretune_cublaslt_open("gemm-h200.ftm", &foretune);
 *   ...
 *   status = foretune_cublaslt_matmul(foretune, handle, matmul_desc, &alpha, A, a_desc, B, b_desc,
 *                                     &beta, C, c_desc, D, d_desc, NULL, workspace,
 *                                     workspace_size, stream);
 *
 * With NULL for the algorithm Foretune chooses: the best of the model's ranking that the library
 * accepts for these descriptors within this workspace. Where the model cannot say (outside of what
 * it was trained on; made for another device or version of the library; types, orders and epilogues
 * that it does not know), the first answer of the library's own heuristic runs, as it would without
 * us. An algorithm of yours is passed on as it is. The result is the one that
 * cublasLtMatmul computes.
 *
 * The choice is made at the first call of its kind, which takes some milliseconds more (a fraction
 * of one with the fast mode), and kept for all with the same sizes, types, transposes, strides,
 * epilogue, workspace size and alignment of operands on the same device; a pointer's value, alpha
 * and beta make no difference. Later calls cost 0.2 to 0.5 microseconds more than cublasLtMatmul,
 * take no lock and do not allocate. Calls may be captured into graphs as cublasLtMatmul's.
 *
 * Nothing of CUDA is linked. The cuBLASLt that the process uses already is found by its name
 * (libcublasLt.so.13, then 12); else it is loaded.
 *
 * Thread safety: any number of threads may use one foretune_cublaslt; open and close by one. */
#ifndef FORETUNE_DISPATCH_CUBLASLT_MATMUL_H_
#define FORETUNE_DISPATCH_CUBLASLT_MATMUL_H_

#include <stddef.h>

#include "foretune/base/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretune_cublaslt foretune_cublaslt;

/* Results of opening. */
enum {
  FORETUNE_CUBLASLT_OK = 0,
  FORETUNE_CUBLASLT_INVALID_ARGUMENT = 1,
  FORETUNE_CUBLASLT_NOT_FOUND = 2,   /* no such model file */
  FORETUNE_CUBLASLT_CORRUPT = 3,     /* the file is not a model, or damaged */
  FORETUNE_CUBLASLT_MISMATCH = 4,    /* give a model that was trained on cublaslt data */
  FORETUNE_CUBLASLT_UNSUPPORTED = 5, /* a library of NVIDIA's cannot be loaded */
  FORETUNE_CUBLASLT_IO = 6,
  FORETUNE_CUBLASLT_INTERNAL = 8
};

/* All 0 and NULL: the defaults. */
typedef struct foretune_cublaslt_options {
  /* A model file; NULL: the shipped model for the device and the version of the library that a call
   * uses, if there is one (else the heuristic chooses). */
  const char* model_path;
  const char* cublaslt_library; /* NULL: as above */
  const char* driver_library;   /* NULL: libcuda.so.1 */
  /* The predicted gain that a pick needs over the heuristic's first (0.02 is 2 %): fewer calls
   * lose by the model's choice, and fewer gain. 0 takes 0.04, a negative number none. */
  double margin;
  /* Not 0: ask the model's fast mode first, for which a new problem is a matter of microseconds.
   * It knows no margin. */
  int fast;
  /* Above 1: the first calls of a kind try this many algorithms on the caller's operands, three
   * times each, and the fastest stays. Events on the caller's stream time them, no call waits, and
   * calls that are captured into a graph try nothing. */
  int measure_top;
  /* A data set (.ftd) with the trials of earlier processes: their fastest algorithms are chosen.
   * foretune_cublaslt_save() appends to it. NULL, or a file that does not exist yet: none. */
  const char* trials_path;
} foretune_cublaslt_options;

/* NULL for the path: the shipped model, see above. */
FORETUNE_API int foretune_cublaslt_open(const char* model_path, foretune_cublaslt** out);
/* `options` may be NULL; `message` (may be NULL) gets one sentence on failure. */
FORETUNE_API int foretune_cublaslt_open_with(const foretune_cublaslt_options* options,
                                             foretune_cublaslt** out, char* message,
                                             size_t message_size);
FORETUNE_API void foretune_cublaslt_close(foretune_cublaslt* foretune);
/* Appends to `trials_path` what the trials measured since the last call. `foretune inspect` shows
 * the file and `foretune train` learns from it. Returns 0 or one of the values above;
 * INVALID_ARGUMENT without a `trials_path`. `message` as above. */
FORETUNE_API int foretune_cublaslt_save(foretune_cublaslt* foretune, char* message,
                                        size_t message_size);

/* The handle is a cublasLtHandle_t (or cublasHandle_t), descriptors are cublasLtMatmulDesc_t and
 * cublasLtMatrixLayout_t, algo is a const cublasLtMatmulAlgo_t*, stream a cudaStream_t. Returns the
 * library's cublasStatus_t: 0, or 7 for missing arguments, or what it says. */
FORETUNE_API int foretune_cublaslt_matmul(foretune_cublaslt* foretune, void* handle,
                                          void* matmul_desc, const void* alpha, const void* a,
                                          void* a_desc, const void* b, void* b_desc,
                                          const void* beta, const void* c, void* c_desc, void* d,
                                          void* d_desc, const void* algo, void* workspace,
                                          size_t workspace_bytes, void* stream);

/* Says which algorithm runs calls with these descriptors and why, as one line: "model: ", "fast
 * model: ", "measured: ", "remembered: " or "heuristic: ", the algorithm's words, and after a
 * semicolon the reason why it is not the model's first, if it is not:
 *
 *   heuristic: heuristic=0 algorithm=66 tile=20 ...; The problem lies outside of ...
 *
 * Operands and workspace are taken to be aligned to 256 bytes. Decides if there was no such call
 * yet. Returns the length needed, as snprintf; 0 for missing or unknown descriptors. */
FORETUNE_API size_t foretune_cublaslt_explain(foretune_cublaslt* foretune, void* handle,
                                              void* matmul_desc, void* a_desc, void* b_desc,
                                              void* c_desc, void* d_desc, size_t workspace_bytes,
                                              char* text, size_t size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_DISPATCH_CUBLASLT_MATMUL_H_ */
