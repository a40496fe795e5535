// What our feature tables share: a list of columns, and one GEMM seen with its hardware. Internal
// to the module. Thread safety: constant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/problem/gemm.h"

namespace foretune::features_internal {

// Sizes as doubles: every formula here is a ratio or a logarithm, and doubles are exact for them.
struct GemmView {
  double m = 1;
  double n = 1;
  double k = 1;
  double batch = 1;
  double bytes_per_element = 4;
  double is_addmm = 0;
  double is_bmm = 0;
  // Of the device.
  double cores = 1;
  double vector_bytes = 0;
  double l1_bytes = 0;
  double l2_bytes = 0;
  double peak_flops_per_ns = 0;  // one core, or the whole GPU's matrix units
  double bytes_per_ns = 0;       // memory

  static GemmView of(const Problem& problem, const Hardware& hardware);
  [[nodiscard]] double flops() const { return 2 * m * n * k * batch; }
  [[nodiscard]] double bytes() const { return (m * k + k * n + m * n) * batch * bytes_per_element; }
};

// ceil(a / b) of whole numbers held in doubles.
inline double ceil_div(double a, double b) { return std::ceil(a / b); }
// The share of whole blocks of `block` that `size` fills.
inline double edge_use(double size, double block) { return size / (ceil_div(size, block) * block); }

// The columns every GEMM table begins with, and their values.
std::span<const FeatureInfo> gemm_problem_columns();
void gemm_problem_row(const GemmView& view, std::span<double> out);

// One output place per interaction column of candidate i.
class ColumnWriter {
 public:
  ColumnWriter(std::span<double> out, std::size_t stride) : out_(out), stride_(stride) {}
  void start(std::size_t candidate) { next_ = candidate; }
  void put(double value) {
    out_[next_] = value;
    next_ += stride_;
  }

 private:
  std::span<double> out_;
  std::size_t stride_;
  std::size_t next_ = 0;
};

// Refuses configs whose parameters have other names or another order.
Support same_parameters(std::string_view table, const ConfigSchema& schema,
                        std::span<const std::string_view> names);

const FeatureTable& gemm_cpu_table();
const FeatureTable& gemm_triton_table();
const FeatureTable& gemm_null_table();

}  // namespace foretune::features_internal
