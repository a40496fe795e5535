#include "foretune/interop/ck/foreign_models.h"

#include <algorithm>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/formats/json.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

std::size_t count_unknown(const FeatureTable& table, std::span<const std::string_view> names) {
  const std::span<const FeatureInfo> columns = table.columns();
  return static_cast<std::size_t>(
      std::count_if(names.begin(), names.end(), [&](std::string_view name) {
        return std::none_of(columns.begin(), columns.end(),
                            [&](const FeatureInfo& info) { return info.name == name; });
      }));
}

// The device that a directory of our own making describes.
Result<Fingerprint> described_device(std::string_view hardware_json) {
  FORETUNE_TRY(const formats::Json hardware, formats::parse_json(hardware_json));
  Fingerprint out;
  out.device = formats::text_at(hardware, "device").value_or("");
  FORETUNE_TRY(out.hardware, Hardware::parse(formats::text_at(hardware, "facts").value_or("")));
  out.isa = ck_arch(out);
  if (out.device.empty()) {
    return fail(ErrorCode::kNotFound, "no device is described");
  }
  return out;
}

}  // namespace

Result<ForeignModels> ForeignModels::open(const std::filesystem::path& path) {
  FORETUNE_TRY(ModelDirectory directory, read_model_directory(path));
  auto models = create(std::move(directory));
  return models ? std::move(models)
                : fail_because(models.error(), "model directory ", path.string());
}

Result<ForeignModels> ForeignModels::create(ModelDirectory directory) {
  ForeignModels out;
  out.directory_ = std::move(directory);
  // "conv" is what our own training called the operation once.
  const bool is_conv = out.directory_.op_type.starts_with("grouped_conv") ||
                       out.directory_.op_type == find_problem_schema(kConvProblem)->name;
  out.problem_type_ = is_conv ? kConvProblem : kGemmProblem;
  const bool is_streamk = out.directory_.op_type == ck_operation(ck_gemm_streamk_schema());
  out.schema_ = is_conv      ? &ck_grouped_conv_schema()
                : is_streamk ? &ck_gemm_streamk_schema()
                             : &ck_gemm_schema();
  FORETUNE_TRY_STATUS(out.find_table());
  FORETUNE_TRY_STATUS(out.find_hardware());
  return out;
}

Status ForeignModels::find_table() {
  const std::vector<std::string_view> names(directory_.feature_names.begin(),
                                            directory_.feature_names.end());
  const FeatureTable* nearest = nullptr;
  std::size_t fewest_unknown = 0;
  for (const FeatureTable* table : feature_tables()) {
    // Tables of our own may share a few names, but mean something else by them.
    const bool is_named = table->name() == directory_.feature_engine;
    if (!table->supports(problem_type_, *schema_) || (!is_named && foreign_order(*table).empty())) {
      continue;
    }
    const std::size_t unknown = count_unknown(*table, names);
    if (nearest == nullptr || unknown < fewest_unknown || (is_named && unknown == 0)) {
      nearest = table;
      fewest_unknown = unknown;
    }
  }
  if (nearest == nullptr) {
    return fail(ErrorCode::kUnsupported, "this version has no feature table for ", schema_->name);
  }
  auto found = find_columns(*nearest, names);
  if (!found) {
    return fail(ErrorCode::kUnsupported, "no feature table of this version has all ", names.size(),
                " features of the models: ", found.error().message);
  }
  columns_ = *std::move(found);
  table_ = nearest;
  return {};
}

Status ForeignModels::find_hardware() {
  // A model of our own features was made with what the device has.
  const bool has_engine = !ck_engine_name(*table_).empty();
  auto known = has_engine ? known_device(concat("ck-", directory_.arch))
                          : described_device(directory_.hardware_json);
  if (!known) {
    known = known_device(directory_.arch);
  }
  const bool has_numbers = has_engine && !directory_.hardware_json.empty();
  if (!known && !has_numbers) {
    return known.map([](const Fingerprint&) {});
  }
  fingerprint_ =
      known ? *std::move(known) : Fingerprint{.device = directory_.arch, .isa = directory_.arch};
  if (has_numbers) {
    FORETUNE_TRY(fingerprint_.hardware,
                 with_engine_hardware(fingerprint_.hardware, directory_.hardware_json));
  }
  return {};
}

std::vector<std::string> ForeignModels::target_names() const {
  std::vector<std::string> names;
  for (const ModelDirectory::Target& target : directory_.targets) {
    names.push_back(target.name);
  }
  return names;
}

Result<const ModelDirectory::Target*> ForeignModels::find_target(std::string_view name) const {
  for (const ModelDirectory::Target& target : directory_.targets) {
    if (target.name == name) {
      return &target;
    }
  }
  return fail(ErrorCode::kNotFound, "there is no model for ", quoted(name, 40), "; there are ",
              join(target_names(), ", "));
}

Result<Config> ForeignModels::parse_kernel(std::string_view name) const {
  FORETUNE_TRY(CkKernel kernel, parse_ck_kernel(*schema_, name));
  const std::string_view dtype = ck_dtype_name(kernel.dtype);
  if (!directory_.dtype.empty() && parse_ck_dtype(directory_.dtype) && dtype != directory_.dtype) {
    return fail(ErrorCode::kMismatch, "kernel '", name.substr(0, 200), "' is of ", dtype,
                ", the models are for ", directory_.dtype);
  }
  return std::move(kernel.config);
}

Result<double> ForeignModels::predict(const ModelDirectory::Target& target, const Problem& problem,
                                      const Config& config) const {
  if (problem.type() != problem_type_) {
    return fail(ErrorCode::kMismatch, "the models are not for problems like '", problem.text(),
                "'");
  }
  if (config.schema != schema_->id() || config.words.size() != schema_->parameters.size()) {
    return fail(ErrorCode::kMismatch, "the models describe configs of ", schema_->name, " v",
                schema_->version, " only");
  }
  std::vector<double> features(table_->columns().size());
  feature_row(*table_, problem, fingerprint_.hardware, config, features);
  std::vector<double> row(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    row[i] = features[columns_[i]];
  }
  return foretune::predict(target, row);
}

Forest ForeignModels::forest_of(const ModelDirectory::Target& target) const {
  Forest out = target.model.forest;
  out.feature_count = static_cast<std::uint32_t>(table_->columns().size());
  for (std::uint32_t& feature : out.feature) {
    feature = columns_[feature];
  }
  return out;
}

}  // namespace foretune
