/* Matrix product with the arguments of cblas_sgemm, on kernels that the dispatcher chooses: by the
 * shipped models for one thread and two, by the textbook for more.
 *
 *   C = alpha * op(A) * op(B) + beta * C        op(X) = X or its transpose
 *
 *   foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_TRANS, m, n, k, 1, a, k, b, k,
 *                  0, c, n);
 *
 * op(A) is m x k, op(B) is k x n, C is m x n. A leading dimension is the distance of two rows (row
 * major) or two columns (column major) in elements. With beta = 0, C is not read, so its NaNs do
 * not spread; with alpha = 0 or k = 0, A and B are not read. The numbers of order and trans are
 * those of CBLAS. The first call of a shape takes a few milliseconds more, for the choice.
 *
 * Returns 0; or the position of the first wrong argument, counted from 1 (m is 4), as LAPACK's info
 * is; or FORETUNE_SGEMM_OVERLAP when an element of C is one of A or B; or FORETUNE_SGEMM_NO_MEMORY;
 * or FORETUNE_SGEMM_UNSUPPORTED when no kernel runs here. C is untouched unless 0 is returned.
 *
 * Thread safety: may be called by any number of threads; a product uses the threads that
 * foretune_set_num_threads allows, and products of several threads take turns. A forked child may
 * call it, too, whatever other threads were doing at the fork: it makes threads of its own. */
#ifndef FORETUNE_DISPATCH_SGEMM_H_
#define FORETUNE_DISPATCH_SGEMM_H_

#include "foretune/base/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FORETUNE_ROW_MAJOR = 101, FORETUNE_COLUMN_MAJOR = 102 };
enum { FORETUNE_NO_TRANS = 111, FORETUNE_TRANS = 112, FORETUNE_CONJ_TRANS = 113 };
enum {
  FORETUNE_SGEMM_OVERLAP = -1,
  FORETUNE_SGEMM_NO_MEMORY = -2,
  FORETUNE_SGEMM_UNSUPPORTED = -3
};

FORETUNE_API int foretune_sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                                float alpha, const float* a, int lda, const float* b, int ldb,
                                float beta, float* c, int ldc);

/* How many threads later products may use; 0 (at the start): all cores of the process, at most 64.
 * More than there are means all. Returns how many that are. */
FORETUNE_API int foretune_set_num_threads(int threads);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_DISPATCH_SGEMM_H_ */
