#include "foretune/interop/ck/model_directory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/gzip.h"
#include "foretune/formats/json.h"
#include "foretune/interop/trees/lightgbm_text.h"

namespace foretune {
namespace {

using formats::Json;
using formats::member;
using formats::text_at;

constexpr std::string_view kSpec = "feature_spec.json";
constexpr std::string_view kManifest = "train_manifest.json";

std::string model_name(std::string_view target) { return concat("model_", target, ".lgbm"); }

// The name becomes part of a file name, so it must not lead to another folder.
bool is_target_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Json> read_object(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  auto document = formats::parse_json(text);
  if (!document) {
    return fail_because(document.error(), path.filename().string());
  }
  if (!document->is_object()) {
    return fail(ErrorCode::kCorrupt, path.filename().string(), " is not a JSON object");
  }
  return document;
}

// Returns nothing when the key is absent.
Result<std::optional<std::vector<std::string>>> texts_at(const Json& spec, const char* key) {
  const Json* list = member(spec, key);
  if (list == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> out;
  if (list->is_array()) {
    for (const Json& entry : *list) {
      if (entry.is_string()) {
        out.push_back(entry.get<std::string>());
      }
    }
  }
  if (!list->is_array() || out.size() != list->size()) {
    return fail(ErrorCode::kCorrupt, kSpec, ": '", key, "' is not a list of texts");
  }
  return out;
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_text_at(const Json& spec, const char* key) {
  const Json* value = member(spec, key);
  return value == nullptr ? std::string() : json_text(*value);
}

// Returns the targets of the models in the directory, in alphabetical order.
std::vector<std::string> find_targets(const std::filesystem::path& path) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(".gz")) {
      name.resize(name.size() - 3);
    }
    constexpr std::string_view kHead = "model_";
    constexpr std::string_view kTail = ".lgbm";
    if (name.starts_with(kHead) && name.ends_with(kTail) &&
        name.size() > kHead.size() + kTail.size()) {
      const std::string target =
          name.substr(kHead.size(), name.size() - kHead.size() - kTail.size());
      if (is_target_name(target) && !contains(out, target)) {
        out.push_back(target);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status check_names(const ModelDirectory& models) {
  const std::vector<std::string>& names = models.feature_names;
  if (names.empty()) {
    return fail(ErrorCode::kCorrupt, kSpec, " has no feature_names");
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return fail(ErrorCode::kCorrupt, kSpec, " has the feature ", foretune::quoted(*twice),
                " twice");
  }
  for (const std::string& name : models.categorical_features) {
    if (!contains(names, name)) {
      return fail(ErrorCode::kMismatch, kSpec, ": the categorical feature ", foretune::quoted(name),
                  " is not among feature_names");
    }
  }
  return {};
}

// `file` is the name of the model.
Status check_model(const ModelDirectory& models, const TreeModel& model, std::string_view file,
                   bool categories_listed) {
  const std::vector<std::string>& names = models.feature_names;
  const Forest& forest = model.forest;
  if (forest.feature_count != names.size()) {
    return fail(ErrorCode::kMismatch, file, " has ", forest.feature_count, " features, ", kSpec,
                " ", names.size());
  }
  for (std::size_t i = 0; i < model.feature_names.size(); ++i) {
    if (model.feature_names[i] != names[i]) {
      return fail(ErrorCode::kMismatch, "feature ", i, " is ",
                  foretune::quoted(model.feature_names[i]), " in ", file, " and ",
                  foretune::quoted(names[i]), " in ", kSpec);
    }
  }
  for (std::size_t node = 0; categories_listed && node < forest.feature.size(); ++node) {
    const std::string& name = names[forest.feature[node]];
    if (forest.is_categorical(node) && !contains(models.categorical_features, name)) {
      return fail(ErrorCode::kMismatch, file, " splits ", foretune::quoted(name),
                  " by category, which ", kSpec, " does not list as categorical");
    }
  }
  return {};
}

Result<TreeModel> read_target(const std::filesystem::path& path, std::string_view target) {
  for (const std::string_view ending : {"", ".gz"}) {
    const std::filesystem::path file = path / concat(model_name(target), ending);
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      return read_tree_model(file);
    }
  }
  return fail(ErrorCode::kNotFound, "there is neither ", model_name(target), " nor ",
              model_name(target), ".gz");
}

Status read_targets(const Json& spec, const std::filesystem::path& path, ModelDirectory& models) {
  FORETUNE_TRY(const auto listed, texts_at(spec, "targets"));
  FORETUNE_TRY(const auto logs, texts_at(spec, "log_targets"));
  const std::vector<std::string> names = listed ? *listed : find_targets(path);
  if (names.empty()) {
    return fail(ErrorCode::kNotFound, "there is no model: no target in ", kSpec,
                " and no model_<target>.lgbm");
  }
  models.lists_log_targets = logs.has_value();
  for (const std::string& name : logs.value_or(std::vector<std::string>())) {
    if (!contains(names, name)) {
      return fail(ErrorCode::kMismatch, kSpec, ": the log target ", foretune::quoted(name),
                  " is not among the targets");
    }
  }
  for (const std::string& name : names) {
    if (!is_target_name(name)) {
      return fail(ErrorCode::kCorrupt, kSpec, ": ", foretune::quoted(name),
                  " is not the name of a target");
    }
    FORETUNE_TRY(TreeModel model, read_target(path, name));
    FORETUNE_TRY_STATUS(check_model(models, model, model_name(name),
                                    member(spec, "categorical_features") != nullptr));
    models.targets.push_back(
        {.name = name, .model = std::move(model), .log1p = logs && contains(*logs, name)});
  }
  return {};
}

// Returns the direction in the name of an operation or a folder, as theirs have it:
// "grouped_conv_bwd_data_bf16_gfx950"; empty without one.
std::string_view direction_in(std::string_view name) {
  constexpr std::string_view kHead = "grouped_conv_";
  if (!name.starts_with(kHead)) {
    return {};
  }
  name.remove_prefix(kHead.size());
  for (const std::string_view direction : {"forward", "bwd_data", "bwd_weight"}) {
    if (name == direction || name.starts_with(concat(direction, "_"))) {
      return direction;
    }
  }
  return {};
}

Result<ModelDirectory> read_documents(const Json& spec, const std::filesystem::path& path) {
  ModelDirectory models;
  models.op_type = text_at(spec, "op_type").value_or("");
  models.direction = text_at(spec, "direction").value_or("");
  models.dtype = text_at(spec, "dtype").value_or("");
  models.arch = text_at(spec, "arch").value_or("");
  models.feature_engine = text_at(spec, "feature_engine").value_or("");
  FORETUNE_TRY(auto names, texts_at(spec, "feature_names"));
  FORETUNE_TRY(auto categorical, texts_at(spec, "categorical_features"));
  models.feature_names = std::move(names).value_or(std::vector<std::string>());
  models.categorical_features = std::move(categorical).value_or(std::vector<std::string>());
  models.encoding_version_json = json_text_at(spec, "feature_encoding_version");
  models.hardware_json = json_text_at(spec, "hardware");
  models.params_json = json_text_at(spec, "params");
  FORETUNE_TRY_STATUS(check_names(models));
  std::error_code error;
  if (std::filesystem::exists(path / kManifest, error)) {
    FORETUNE_TRY(const Json manifest, read_object(path / kManifest));
    models.manifest_json = json_text(manifest);
  }
  if (models.direction.empty() && models.op_type.starts_with("grouped_conv")) {
    // A path may end with a separator.
    const std::filesystem::path folder = path.has_filename() ? path : path.parent_path();
    const std::string_view in_operation = direction_in(models.op_type);
    models.direction =
        in_operation.empty() ? direction_in(folder.filename().string()) : in_operation;
  }
  return models;
}

Result<ModelDirectory> read_directory(const std::filesystem::path& path, bool has_models) {
  FORETUNE_TRY(const Json spec, read_object(path / kSpec));
  FORETUNE_TRY(ModelDirectory models, read_documents(spec, path));
  if (has_models) {
    FORETUNE_TRY_STATUS(read_targets(spec, path, models));
  }
  return models;
}

Result<Json> make_spec(const ModelDirectory& models) {
  Json spec = {{"op_type", models.op_type},
               {"dtype", models.dtype},
               {"arch", models.arch},
               {"feature_names", models.feature_names},
               {"categorical_features", models.categorical_features}};
  Json targets = Json::array();
  Json logs = Json::array();
  for (const ModelDirectory::Target& target : models.targets) {
    targets.push_back(target.name);
    if (target.log1p) {
      logs.push_back(target.name);
    }
  }
  spec["targets"] = std::move(targets);
  if (models.lists_log_targets) {
    spec["log_targets"] = std::move(logs);
  }
  for (const auto& [key, text] : {std::pair("direction", &models.direction),
                                  std::pair("feature_engine", &models.feature_engine)}) {
    if (!text->empty()) {
      spec[key] = *text;
    }
  }
  const std::pair<const char*, const std::string*> texts[] = {
      {"feature_encoding_version", &models.encoding_version_json},
      {"hardware", &models.hardware_json},
      {"params", &models.params_json}};
  for (const auto& [key, text] : texts) {
    if (!text->empty()) {
      FORETUNE_TRY(spec[key], formats::parse_json(*text));
    }
  }
  return spec;
}

Status check_writable(const ModelDirectory& models) {
  FORETUNE_TRY_STATUS(check_names(models));
  if (models.targets.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there is no target");
  }
  std::vector<std::string> seen;
  for (const ModelDirectory::Target& target : models.targets) {
    if (!is_target_name(target.name) || contains(seen, target.name)) {
      return fail(ErrorCode::kInvalidArgument, foretune::quoted(target.name),
                  " cannot be the name of a target, or is one already");
    }
    if (target.log1p && !models.lists_log_targets) {
      return fail(ErrorCode::kInvalidArgument, "the target ", target.name,
                  " is a logarithm, but log targets are not to be listed");
    }
    FORETUNE_TRY_STATUS(target.model.forest.validate());
    FORETUNE_TRY_STATUS(check_model(models, target.model, model_name(target.name), true));
    seen.push_back(target.name);
  }
  return {};
}

Status write_target(const ModelDirectory::Target& target, const std::filesystem::path& path,
                    ModelCompression compression) {
  FORETUNE_TRY(const std::string text, to_lightgbm_text(target.model));
  const std::filesystem::path plain = path / model_name(target.name);
  std::filesystem::path zipped = plain;
  zipped += ".gz";
  if (compression != ModelCompression::kNone) {
    FORETUNE_TRY_STATUS(write_file_atomically(
        zipped, formats::deflate_gzip(std::as_bytes(std::span(text.data(), text.size())))));
  }
  if (compression != ModelCompression::kGzip) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(plain, text));
  }
  if (compression == ModelCompression::kBoth) {
    return {};
  }
  // An older model in the other form would contradict this one.
  const std::filesystem::path& other = compression == ModelCompression::kGzip ? plain : zipped;
  std::error_code error;
  std::filesystem::remove(other, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot remove ", other.string(), ": ", error.message());
  }
  return {};
}

// Does the last step of write_directory(): writes the documents, which are complete by then.
Status write_documents(const Json& spec, const std::optional<Json>& manifest,
                       const std::filesystem::path& path) {
  const auto text_of = [](const Json& document) {
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  };
  if (manifest) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(path / kManifest, text_of(*manifest)));
  } else {
    // An existing manifest belongs to other models.
    std::error_code error;
    std::filesystem::remove(path / kManifest, error);
  }
  return write_text_file_atomically(path / kSpec, text_of(spec));
}

// Writes the models and the documents. Without a compression it removes the models and writes the
// documents alone.
Status write_directory(const ModelDirectory& models, const std::filesystem::path& path,
                       std::optional<ModelCompression> compression) {
  FORETUNE_TRY_STATUS(check_writable(models));
  FORETUNE_TRY(const Json spec, make_spec(models));
  std::optional<Json> manifest;
  if (!models.manifest_json.empty()) {
    FORETUNE_TRY(manifest, formats::parse_json(models.manifest_json));
    if (!manifest->is_object()) {
      return fail(ErrorCode::kInvalidArgument, "the manifest is not a JSON object");
    }
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot be made: ", error.message());
  }
  for (const ModelDirectory::Target& target : models.targets) {
    if (compression) {
      FORETUNE_TRY_STATUS(write_target(target, path, *compression));
    } else {
      std::filesystem::remove(path / model_name(target.name), error);
      std::filesystem::remove(path / concat(model_name(target.name), ".gz"), error);
    }
  }
  return write_documents(spec, manifest, path);
}

}  // namespace

double predict(const ModelDirectory::Target& target, std::span<const double> row) {
  const double value = predict(target.model, row);
  return target.log1p ? std::expm1(value) : value;
}

Result<ModelDirectory> read_model_directory(const std::filesystem::path& path) {
  auto models = read_directory(path, true);
  return models ? std::move(models)
                : fail_because(models.error(), "model directory ", path.string());
}

Result<ModelDirectory> read_model_documents(const std::filesystem::path& path) {
  auto models = read_directory(path, false);
  return models ? std::move(models)
                : fail_because(models.error(), "model directory ", path.string());
}

Status write_model_directory(const ModelDirectory& models, const std::filesystem::path& path,
                             ModelCompression compression) {
  const Status status = write_directory(models, path, compression);
  return status ? status : fail_because(status.error(), "model directory ", path.string());
}

Status write_model_documents(const ModelDirectory& models, const std::filesystem::path& path) {
  const Status status = write_directory(models, path, std::nullopt);
  return status ? status : fail_because(status.error(), "model directory ", path.string());
}

}  // namespace foretune
