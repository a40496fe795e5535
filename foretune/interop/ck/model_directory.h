// A directory of models as the training of composable_kernel's dispatcher leaves it (ROCm,
// dispatcher/heuristics): feature_spec.json, train_manifest.json, and a LightGBM text for every
// target, model_<target>.lgbm, plain or gzip.
//
//   FORETUNE_TRY(const ModelDirectory models, read_model_directory("models/gemm_fp8_gfx950"));
//   const double tflops = predict(models.targets[0], row);
//
// Thread safety: plain data; free functions without state. Cost: linear in the files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/interop/trees/tree_model.h"

namespace foretune {

struct ModelDirectory {
  struct Target {
    std::string name;  // "tflops"; letters, digits, '_' and '-'
    TreeModel model;
    bool log1p = false;  // the model learnt log(1 + target)

    bool operator==(const Target&) const = default;
  };

  std::string op_type;    // "gemm_universal"
  std::string direction;  // of a convolution; theirs say it in the operation or the folder's name
  std::string dtype;
  std::string arch;
  std::vector<std::string> feature_names;
  std::vector<std::string> categorical_features;  // some of the names
  std::vector<Target> targets;                    // in the order of the spec
  // False for older specs without log_targets: then nobody knows which targets are logarithms, and
  // log1p is false. The order of the predictions is right either way.
  bool lists_log_targets = true;
  std::string feature_engine;  // empty when the spec does not name one
  // JSON texts, empty when absent.
  std::string encoding_version_json;
  std::string hardware_json;
  std::string params_json;
  std::string manifest_json;

  bool operator==(const ModelDirectory&) const = default;
};

// In the unit of the target: expm1 of the model's prediction when log1p.
double predict(const ModelDirectory::Target& target, std::span<const double> row);

// A spec without targets takes the models that lie beside it. Errors: kNotFound with the name for a
// missing spec or model, kMismatch when names, counts or categories of a model are not those of the
// spec, kCorrupt and kUnsupported as the formats do. The manifest alone may be missing.
Result<ModelDirectory> read_model_directory(const std::filesystem::path& path);
// Spec and manifest alone, without a target: for a directory whose models are files of ours.
Result<ModelDirectory> read_model_documents(const std::filesystem::path& path);

enum class ModelCompression { kNone, kGzip, kBoth };

// Makes the directory where there is none, and replaces its files one by one. Errors:
// kInvalidArgument for what read_model_directory would refuse, kIo, and those of to_lightgbm_text.
Status write_model_directory(const ModelDirectory& models, const std::filesystem::path& path,
                             ModelCompression compression = ModelCompression::kNone);
// Spec and manifest alone, for models kept in files of another kind: what write_model_directory
// would write beside its models. Models of the targets that lie there are of others, and go.
Status write_model_documents(const ModelDirectory& models, const std::filesystem::path& path);

}  // namespace foretune
