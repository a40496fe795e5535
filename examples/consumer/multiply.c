/* Multiplies two matrices with the arguments of cblas_sgemm. */
#include <foretune/dispatch/sgemm.h>
#include <stdio.h>

int main(void) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6};
  const float b[3 * 2] = {1, 0, 0, 1, 1, 1};
  float c[2 * 2] = {0};
  const int info = foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, 2, 2, 3,
                                  1, a, 3, b, 2, 0, c, 2);
  printf("%d: %g %g %g %g\n", info, c[0], c[1], c[2], c[3]);
  return info;
}
