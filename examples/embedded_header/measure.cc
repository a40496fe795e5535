// Times every kernel on random sizes and prints a table that foretune reads.
#include <cmath>
#include <cstdio>
#include <random>

#include "timing.h"

int main() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(3, 8);  // sizes from 8 to 256
  const auto size = [&] { return static_cast<int>(std::exp2(exponent(random))); };
  std::printf("m,n,k,rows,columns,time_us\n");
  for (int problem = 0; problem < 150; ++problem) {
    const int m = size();
    const int n = size();
    const int k = size();
    for (const Variant& variant : kVariants) {
      std::printf("%d,%d,%d,%d,%d,%.3f\n", m, n, k, variant.rows, variant.columns,
                  microseconds(variant.run, m, n, k));
    }
  }
  return 0;
}
