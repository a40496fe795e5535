// Features of launches of any kernel (problem/kernel), whatever the parameters of its configs: the
// table knows positions only. Trees learn well from it where configs are measured densely.
#include <array>
#include <cmath>
#include <deque>
#include <string>

#include "foretune/base/text.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/kernel/kernel.h"

namespace foretune::features_internal {
namespace {

// Further parameters have no columns.
constexpr std::size_t kParameters = 16;
constexpr std::size_t kPairedSizes = 4;
constexpr std::size_t kPairedParameters = 8;
// The category of a variant is its number modulo this: a set of categories is a set of bits.
constexpr std::int64_t kVariants = 256;

double log2_of(std::int64_t value) {
  const auto size = static_cast<double>(value);
  return size < 0 ? -std::log2(1 - size) : std::log2(1 + size);
}

class KernelLaunchTable final : public FeatureTable {
 public:
  KernelLaunchTable() {
    add("variant", FeatureKind::kProblem, "number of the variant modulo 256", true);
    for (const std::string_view size : kKernelSizes) {
      add(concat("log2_", size), FeatureKind::kProblem, "log2 of one more than the size");
    }
    for (std::size_t p = 0; p < kParameters; ++p) {
      add(concat("log2_parameter_", p + 1), FeatureKind::kConfig,
          "log2 of one more than the parameter at this place, 0 without one");
    }
    for (std::size_t s = 0; s < kPairedSizes; ++s) {
      for (std::size_t p = 0; p < kPairedParameters; ++p) {
        add(concat("log2_", kKernelSizes[s], "_over_parameter_", p + 1), FeatureKind::kInteraction,
            "log2 of a size over a parameter, each one more than it is");
      }
    }
  }

  std::string_view name() const override { return "kernel-launch"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == kKernelProblem && schema.kind == SchemaKind::kParametric
               ? Support::yes()
               : Support::no("kernel-launch describes configs with parameters of kernel problems");
  }

  void problem_row(const Problem& problem, const Hardware& /*hardware*/,
                   std::span<double> out) const override {
    out[0] = static_cast<double>(problem.field(0) % kVariants);
    for (std::size_t i = 1; i < out.size(); ++i) {
      out[i] = log2_of(problem.field(i));
    }
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t p = 0; p < out.size(); ++p) {
      out[p] = p < words.size() ? log2_of(words[p]) : 0;
    }
  }
  void interaction_columns(const Problem& problem, const Hardware& /*hardware*/,
                           ConfigWords configs, std::span<double> out,
                           std::size_t stride) const override {
    for (std::size_t s = 0; s < kPairedSizes; ++s) {
      const double size = log2_of(problem.field(1 + s));
      for (std::size_t p = 0; p < kPairedParameters; ++p) {
        double* const column = out.data() + (s * kPairedParameters + p) * stride;
        for (std::size_t c = 0; c < configs.size(); ++c) {
          const std::span<const std::int32_t> words = configs[c];
          column[c] = size - (p < words.size() ? log2_of(words[p]) : 0);
        }
      }
    }
  }

 private:
  void add(std::string name, FeatureKind kind, std::string_view description,
           bool is_categorical = false) {
    names_.push_back(std::move(name));
    columns_.push_back({.name = names_.back(),
                        .kind = kind,
                        .description = description,
                        .is_categorical = is_categorical});
  }

  std::deque<std::string> names_;  // whose places stay
  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& kernel_launch_table() {
  static const KernelLaunchTable table;
  return table;
}

}  // namespace foretune::features_internal
