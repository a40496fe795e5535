// The code shared by our feature tables: lists of columns, and one GEMM with its hardware as
// numbers. Internal to the module. Thread safety: constant.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::features_internal {

constexpr FeatureInfo of_problem(std::string_view name, std::string_view description) {
  return {name, FeatureKind::kProblem, description};
}
constexpr FeatureInfo of_config(std::string_view name, std::string_view description) {
  return {name, FeatureKind::kConfig, description};
}
constexpr FeatureInfo of_both(std::string_view name, std::string_view description) {
  return {name, FeatureKind::kInteraction, description};
}
constexpr FeatureInfo as_categorical(FeatureInfo info) {
  info.is_categorical = true;
  return info;
}

// Returns the value of a parameter, given by its enumeration.
template <class Parameter>
double at(std::span<const std::int32_t> words, Parameter parameter) {
  return words[static_cast<std::size_t>(parameter)];
}

// A GEMM and its device as doubles: every formula here is a ratio or a logarithm, and doubles hold
// the sizes exactly.
struct GemmView {
  double m = 1;
  double n = 1;
  double k = 1;
  double batch = 1;
  double bytes_per_element = 4;
  double is_addmm = 0;
  double is_bmm = 0;
  bool a_by_columns = false;
  bool b_by_columns = false;
  bool on_matrix_units = false;  // a GPU's matrix units multiply its type
  // The device.
  double cores = 1;
  double vector_bytes = 0;
  double l1_bytes = 0;
  double l2_bytes = 0;
  double peak_flops_per_ns = 0;  // one core, or the whole GPU's matrix units
  double bytes_per_ns = 0;       // memory
  // A GPU's multiprocessor; 0 where unknown.
  double shared_bytes = 0;  // with the L1 cache, which is the same memory
  double threads_per_core = 0;
  double register_file_bytes = 0;

  static GemmView of(const Problem& problem, const Hardware& hardware);
  [[nodiscard]] double flops() const { return 2 * m * n * k * batch; }
  [[nodiscard]] double bytes() const { return (m * k + k * n + m * n) * batch * bytes_per_element; }
};

// std::floor and std::ceil for numbers from 0 to 2^62, without the function calls that builds
// without SSE 4.1 make.
inline double floor_of(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value));
}
inline double ceil_of(double value) {
  const double below = floor_of(value);
  return below + (value > below ? 1 : 0);
}
// Returns ceil(a / b) for integers held in doubles.
inline double ceil_div(double a, double b) { return ceil_of(a / b); }
// Returns the share of the whole blocks of `block` that `size` fills.
inline double edge_use(double size, double block) { return size / (ceil_div(size, block) * block); }

// The columns that every GEMM table begins with, and their values.
std::span<const FeatureInfo> gemm_problem_columns();
void gemm_problem_row(const GemmView& view, std::span<double> out);
// Columns about the storage of the operands, for tables of GPU kernels; they follow those above.
std::span<const FeatureInfo> gemm_storage_columns();
void gemm_storage_row(const GemmView& view, std::span<double> out);
// Columns about B's values where B is a file (gemm_weights.h), NaN where B is arbitrary, and
// whether B is constant, for tables of kernels whose time may depend on it. They were added later,
// so they are last.
std::span<const FeatureInfo> gemm_weights_columns();
void gemm_weights_row(const Problem& problem, std::span<double> out);

// Writes the interaction columns of a candidate. A logarithm costs as much as ten other columns,
// and neighbouring candidates often have the same argument, so each column of logarithms caches its
// last one.
class ColumnWriter {
 public:
  ColumnWriter(std::span<double> out, std::size_t stride) : out_(out), stride_(stride) {}
  void start(std::size_t candidate) {
    next_ = candidate;
    logarithm_ = 0;
  }
  void put(double value) {
    out_[next_] = value;
    next_ += stride_;
  }
  // Write the next column for `count` candidates from the started one: fill() the same value for
  // all; take() returns the places.
  void fill(std::size_t count, double value) {
    const auto places = take(count);
    std::fill(places.begin(), places.end(), value);
  }
  void fill_log2(std::size_t count, double value) { fill(count, std::log2(value)); }
  std::span<double> take(std::size_t count) {
    const auto places = out_.subspan(next_, count);
    next_ += stride_;
    return places;
  }
  void put_log2(double value) {
    Logarithm& last = last_[logarithm_++ % kMaxLogarithms];
    if (value != last.of) {
      last = {value, std::log2(value)};
    }
    put(last.value);
  }

 private:
  struct Logarithm {
    double of = 1;
    double value = 0;
  };
  static constexpr std::size_t kMaxLogarithms = 16;

  std::span<double> out_;
  std::size_t stride_;
  std::size_t next_ = 0;
  std::size_t logarithm_ = 0;
  std::array<Logarithm, kMaxLogarithms> last_{};
};

// Calls body(config) for each config, with the writer at its place.
template <class Body>
void for_each_config(ConfigWords configs, ColumnWriter& writer, const Body& body) {
  for (std::size_t i = 0; i < configs.size(); ++i) {
    writer.start(i);
    body(configs[i]);
  }
}

// Returns true when the schema is parametric and its parameters have the names of the expected
// ones, in this order. Labels may differ.
bool has_parameters(const ConfigSchema& schema, const ConfigSchema& expected);

// Concatenates lists of columns.
std::vector<FeatureInfo> joined(std::initializer_list<std::span<const FeatureInfo>> parts);

// The problem columns of a table: those of all GEMM tables alone, or with those about storage or
// weights.
enum class GemmProblemColumns : std::uint8_t { kCommon, kWithStorage, kWithWeights };

// A table of one kind of GEMM config: columns of the problem, then its own. It keeps the schema by
// reference.
class GemmTable : public FeatureTable {
 public:
  std::string_view name() const final { return name_; }
  std::span<const FeatureInfo> columns() const final { return columns_; }
  // Refuses configs whose parameters have other names or another order.
  Support supports(ProblemType type, const ConfigSchema& schema) const final;
  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const final;
  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const final;

 protected:
  GemmTable(std::string_view name, const ConfigSchema& schema,
            std::span<const FeatureInfo> config_columns,
            std::span<const FeatureInfo> interaction_columns,
            GemmProblemColumns problem_columns = GemmProblemColumns::kCommon);

 private:
  // Writes the interaction columns of all candidates, each in order.
  virtual void candidates(const GemmView& view, ConfigWords configs,
                          ColumnWriter& writer) const = 0;

  std::string_view name_;
  const ConfigSchema& schema_;
  GemmProblemColumns problem_columns_;
  std::vector<FeatureInfo> columns_;
};

}  // namespace foretune::features_internal
