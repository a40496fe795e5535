/* Multiplies a sparse matrix with a vector and with a matrix of two columns. */
#include <foretune/dispatch/sparse_product.h>
#include <stdio.h>

static int failed(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  /* [[1, 0, 2], [0, 0, 0], [0, 3, 0]] */
  const int32_t starts[4] = {0, 2, 2, 3};
  const int32_t columns[3] = {0, 2, 1};
  const float values[3] = {1, 2, 3};
  const float x[3] = {1, 10, 100};
  const float b[6] = {1, 2, 10, 20, 100, 200};
  float y[3];
  float c[6];
  char message[256] = "";
  const foretune_csr csr = {.rows = 3,
                            .columns = 3,
                            .starts = starts,
                            .column_of = columns,
                            .values = values,
                            .index_bytes = 4,
                            .value_bytes = 4};
  foretune_sparse_matrix* a = NULL;
  if (foretune_sparse_create(&csr, NULL, &a, message, sizeof message) != FORETUNE_OK ||
      foretune_spmv(a, x, y, message, sizeof message) != FORETUNE_OK ||
      foretune_spmm(a, 2, b, c, message, sizeof message) != FORETUNE_OK) {
    return failed(message);
  }
  foretune_sparse_destroy(a);
  printf("%g %g %g; %g %g %g\n", (double)y[0], (double)y[1], (double)y[2], (double)c[1],
         (double)c[3], (double)c[5]);
  return 0;
}
