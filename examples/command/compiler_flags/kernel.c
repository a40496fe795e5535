/* What the compiler is to make fast: products, a stencil, a sort and a search, on arrays of n
 * numbers. Prints what it computed, so that a wrong answer shows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t state = 12345;

static uint32_t next_number(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

static uint32_t product(const int32_t* a, const int32_t* b, int32_t* c, int n) {
  uint32_t sum = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      int32_t value = 0;
      for (int k = 0; k < n; ++k) {
        value += a[i * n + k] * b[k * n + j];
      }
      c[i * n + j] = value;
      sum = sum * 31 + (uint32_t)value;
    }
  }
  return sum;
}

static double stencil(double* from, double* to, int n, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int i = 1; i < n - 1; ++i) {
      to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
    }
    double* other = from;
    from = to;
    to = other;
  }
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += from[i];
  }
  return sum;
}

static int is_before(const void* a, const void* b) {
  const int32_t x = *(const int32_t*)a;
  const int32_t y = *(const int32_t*)b;
  return (x > y) - (x < y);
}

static int find(const int32_t* sorted, int n, int32_t wanted) {
  int low = 0;
  int high = n;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sorted[middle] < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 100;
  if (n < 4 || n > 2000) {
    fprintf(stderr, "n must be from 4 to 2000\n");
    return 2;
  }
  const int size = n * n;
  int32_t* a = malloc((size_t)size * sizeof *a);
  int32_t* b = malloc((size_t)size * sizeof *b);
  int32_t* c = malloc((size_t)size * sizeof *c);
  double* x = calloc((size_t)size, sizeof *x);
  double* y = calloc((size_t)size, sizeof *y);
  if (!a || !b || !c || !x || !y) {
    fprintf(stderr, "out of memory\n");
    return 3;
  }
  for (int i = 0; i < size; ++i) {
    a[i] = (int32_t)(next_number() % 100);
    b[i] = (int32_t)(next_number() % 100);
    x[i] = (double)(next_number() % 1000);
  }
  printf("product %u\n", product(a, b, c, n));
  printf("stencil %.0f\n", stencil(x, y, size, 8));
  qsort(c, (size_t)size, sizeof *c, is_before);
  long places = 0;
  for (int i = 0; i < size; ++i) {
    places += find(c, size, a[i] * b[size - 1 - i]);
  }
  printf("places %ld\n", places);
  free(a);
  free(b);
  free(c);
  free(x);
  free(y);
  return 0;
}
