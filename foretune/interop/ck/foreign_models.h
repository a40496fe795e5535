// A model directory that predicts: its models, the feature table that computes what they saw, and
// the hardware numbers that they were trained with.
//
//   FORETUNE_TRY(const auto models, ForeignModels::open("models/gemm_universal_fp8_gfx950"));
//   FORETUNE_TRY(const auto* tflops, models.find_target("tflops"));
//   FORETUNE_TRY(const Config config, models.parse_kernel("gemm_universal_fp8_rcr_compv3_..."));
//   FORETUNE_TRY(const double value, models.predict(*tflops, problem, config));
//
// Thread safety: const members may be called from several threads. Cost: a prediction walks every
// tree once; a model file made of such models (interop/ck/import_model.h) scores whole pools.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/model/forest/forest.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class ForeignModels {
 public:
  // Convolutions are told by the operation ("grouped_conv..."), everything else is a GEMM. The
  // table is the one that the spec names when it is ours, else the first of those that reproduce
  // features of others and have all of the names. The hardware is what the engines took for the
  // architecture ("ck-gfx950"), with the numbers that the spec has, else the device of that name;
  // with a table of ours the device that the spec describes. Errors: those of
  // read_model_directory, kUnsupported with the names that no table has, kNotFound for an unknown
  // architecture.
  static Result<ForeignModels> open(const std::filesystem::path& path);
  static Result<ForeignModels> create(ModelDirectory directory);

  [[nodiscard]] const ModelDirectory& directory() const { return directory_; }
  [[nodiscard]] ProblemType problem_type() const { return problem_type_; }
  [[nodiscard]] const ConfigSchema& config_schema() const { return *schema_; }
  [[nodiscard]] const FeatureTable& table() const { return *table_; }
  // Per feature of the models the column of the table.
  [[nodiscard]] std::span<const std::uint16_t> columns() const { return columns_; }
  [[nodiscard]] const Fingerprint& fingerprint() const { return fingerprint_; }

  // The names of the targets, and one by name. Errors: kNotFound with the names there are.
  [[nodiscard]] std::vector<std::string> target_names() const;
  [[nodiscard]] Result<const ModelDirectory::Target*> find_target(std::string_view name) const;

  // A kernel as a config, by its name. Errors: kInvalidArgument with the name and what is wrong;
  // kMismatch for one of another data type than the models are for.
  [[nodiscard]] Result<Config> parse_kernel(std::string_view name) const;

  // In the unit of the target. Errors: kMismatch for problems and configs of another kind.
  [[nodiscard]] Result<double> predict(const ModelDirectory::Target& target, const Problem& problem,
                                       const Config& config) const;

  // The forest of a target as one over the columns of the table: the same trees, the same sums.
  [[nodiscard]] Forest forest_of(const ModelDirectory::Target& target) const;

 private:
  ForeignModels() = default;
  [[nodiscard]] Status find_table();
  [[nodiscard]] Status find_hardware();

  ModelDirectory directory_;
  ProblemType problem_type_{};
  const ConfigSchema* schema_ = nullptr;
  const FeatureTable* table_ = nullptr;
  std::vector<std::uint16_t> columns_;
  Fingerprint fingerprint_;
};

}  // namespace foretune
