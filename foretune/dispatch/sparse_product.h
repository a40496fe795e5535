/* Products of a sparse matrix with vectors and dense matrices on this CPU, with kernels that the
 * dispatcher chooses.
 *
 *   foretune_csr csr = {.rows = m, .columns = k, .starts = indptr, .column_of = indices,
 *                       .values = data, .index_bytes = 4, .value_bytes = 4};
 *   foretune_sparse_matrix* a = NULL;
 *   char message[256];
 *   if (foretune_sparse_create(&csr, NULL, &a, message, sizeof message) != FORETUNE_OK) ...
 *   foretune_spmv(a, x, y, message, sizeof message);
 *   foretune_spmm(a, 128, b, c, message, sizeof message);
 *   foretune_sparse_destroy(a);
 *
 * The matrix is copied. The first product of an operation and a width chooses a config and packs
 * the matrix as its kernel wants it; later ones only multiply. A model for AVX-512 and one thread
 * is shipped. Dense operands have the type of the matrix, are stored by rows without gaps, and must
 * not overlap the result.
 *
 * Functions that return int return FORETUNE_OK or another code of select/foretune.h. `message` (may
 * be NULL) gets one sentence on failure, as much as fits, and "" otherwise. Products return
 * INVALID_ARGUMENT for an operand that is missing or overlaps the result and for a width outside of
 * 1 to 2^31 - 1, UNSUPPORTED when memory is short; the result is then undefined.
 *
 * Thread safety: a matrix may be multiplied by any number of threads at once; products that use
 * several threads take turns. Destroy a matrix when nothing uses it any more. A forked child may
 * use the matrices of its parent. */
#ifndef FORETUNE_DISPATCH_SPARSE_PRODUCT_H_
#define FORETUNE_DISPATCH_SPARSE_PRODUCT_H_

#include <stddef.h>
#include <stdint.h>

#include "foretune/base/c_api.h"
#include "foretune/select/foretune.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretune_sparse_matrix foretune_sparse_matrix;

/* A matrix in three arrays, as SciPy's csr_array has them: row r has the non-zeros starts[r] to
 * starts[r + 1] - 1, with rising columns. */
typedef struct foretune_csr {
  int64_t rows;
  int64_t columns;
  const void* starts;    /* rows + 1 */
  const void* column_of; /* one for each non-zero, from 0 */
  const void* values;    /* one for each non-zero */
  int index_bytes;       /* 4 or 8: of starts and of column_of */
  int value_bytes;       /* 4 or 8: float or double */
} foretune_csr;

/* All 0 and NULL: the defaults. Matrices with equal options share one dispatcher with its threads,
 * its decisions and its measurements until the process ends; both files are read for the first of
 * them. */
typedef struct foretune_sparse_options {
  int threads; /* 0: all cores of the process */
  /* Above 1: the first products of a kind try this many configs, three times each, and the fastest
   * stays. */
  int measure_top;
  /* A model that `foretune train` made of measurements of sparse-cpu. NULL: the one shipped for
   * this CPU and this number of threads; where there is none, the family's textbook config runs,
   * unless choices or trials know a better one. */
  const char* model_path;
  /* A data set (.ftd) with trials of earlier processes: its fastest configs are chosen for the same
   * patterns. foretune_sparse_save() appends to it. NULL, or a file that does not exist yet:
   * none. */
  const char* choices_path;
  /* Not 0: this matrix is multiplied once or a few times. The textbook config runs, which packs
   * nothing; the matrix is not described for a model, and nothing is tried. */
  int is_used_once;
} foretune_sparse_options;

/* Products that foretune_sparse_explain() explains. */
enum { FORETUNE_SPMV = 0, FORETUNE_SPMM = 1, FORETUNE_SDDMM = 2 };

/* `options` may be NULL. `*out` is NULL on failure. INVALID_ARGUMENT for arrays that make no
 * matrix, with the row; UNSUPPORTED for 2^31 columns and more, and when memory is short; NOT_FOUND,
 * CORRUPT, MISMATCH and IO for the files. */
FORETUNE_API int foretune_sparse_create(const foretune_csr* csr,
                                        const foretune_sparse_options* options,
                                        foretune_sparse_matrix** out, char* message,
                                        size_t message_size);
/* `matrix` may be NULL. */
FORETUNE_API void foretune_sparse_destroy(foretune_sparse_matrix* matrix);
/* y = A x: `x` has a value for each column of A, `y` for each row. */
FORETUNE_API int foretune_spmv(foretune_sparse_matrix* a, const void* x, void* y, char* message,
                               size_t message_size);
/* C = A B: `b` has a row of n values for each column of A, `c` for each row. */
FORETUNE_API int foretune_spmm(foretune_sparse_matrix* a, int64_t n, const void* b, void* c,
                               char* message, size_t message_size);
/* D = A * (B C^T) at the non-zeros of A: `b` has a row of n values for each row of A, `c` for each
 * column; `d` has a value for each non-zero, in their order. */
FORETUNE_API int foretune_sddmm(foretune_sparse_matrix* a, int64_t n, const void* b, const void* c,
                                void* d, char* message, size_t message_size);
/* The config that runs the operation with this width (1 for FORETUNE_SPMV) and why, as
 * foretune_conv_plan_explain(). Returns the length needed, as snprintf; 0 for no matrix. */
FORETUNE_API size_t foretune_sparse_explain(foretune_sparse_matrix* a, int operation, int64_t n,
                                            char* text, size_t size);
/* Appends to `choices_path` what the trials of all matrices with the same options measured since
 * the last call. INVALID_ARGUMENT without a `choices_path`. */
FORETUNE_API int foretune_sparse_save(foretune_sparse_matrix* a, char* message,
                                      size_t message_size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_DISPATCH_SPARSE_PRODUCT_H_ */
