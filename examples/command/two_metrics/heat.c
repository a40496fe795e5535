/* The temperature of a plate whose rim is kept at x*x - y*y, by sweeps over a grid. The answer is
 * known, so the program can say how far off it is.
 *
 *   heat SIZE SWEEPS float|double SKIP
 *
 * Fewer sweeps, shorter numbers and skipped rows (a sweep then updates every SKIP-th row) take less
 * time and end farther from the answer. Prints {"time_ms": ..., "error": ...}. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double answer(int row, int column, int size) {
  const double x = (double)row / (size - 1);
  const double y = (double)column / (size - 1);
  return x * x - y * y;
}

#define FORETUNE_SOLVE(name, number)                                                            \
  static double name(int size, int sweeps, int skip) {                                          \
    number* grid = calloc((size_t)size * (size_t)size, sizeof *grid);                           \
    if (!grid) {                                                                                \
      return -1;                                                                                \
    }                                                                                           \
    for (int i = 0; i < size; ++i) {                                                            \
      grid[i] = (number)answer(0, i, size);                                                     \
      grid[(size - 1) * size + i] = (number)answer(size - 1, i, size);                          \
      grid[i * size] = (number)answer(i, 0, size);                                              \
      grid[i * size + size - 1] = (number)answer(i, size - 1, size);                            \
    }                                                                                           \
    for (int sweep = 0; sweep < sweeps; ++sweep) {                                              \
      for (int row = 1 + sweep % skip; row < size - 1; row += skip) {                           \
        number* here = grid + row * size;                                                       \
        for (int column = 1; column < size - 1; ++column) {                                     \
          here[column] = (number)0.25 * (here[column - 1] + here[column + 1] +                  \
                                         here[column - size] + here[column + size]);            \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    double worst = 0;                                                                           \
    for (int row = 0; row < size; ++row) {                                                      \
      for (int column = 0; column < size; ++column) {                                           \
        const double off = fabs((double)grid[row * size + column] - answer(row, column, size)); \
        worst = off > worst ? off : worst;                                                      \
      }                                                                                         \
    }                                                                                           \
    free(grid);                                                                                 \
    return worst;                                                                               \
  }

FORETUNE_SOLVE(solve_float, float)
FORETUNE_SOLVE(solve_double, double)

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: heat SIZE SWEEPS float|double SKIP\n");
    return 2;
  }
  const int size = atoi(argv[1]);
  const int sweeps = atoi(argv[2]);
  const int skip = atoi(argv[4]);
  if (size < 3 || size > 4096 || sweeps < 1 || skip < 1) {
    fprintf(stderr, "the size must be from 3 to 4096, and sweeps and skip at least 1\n");
    return 2;
  }
  const double begin_ms = now_ms();
  const double error = strcmp(argv[3], "float") == 0 ? solve_float(size, sweeps, skip)
                                                     : solve_double(size, sweeps, skip);
  printf("{\"time_ms\": %.6f, \"error\": %.9g}\n", now_ms() - begin_ms, error);
  return error < 0 ? 3 : 0;
}
