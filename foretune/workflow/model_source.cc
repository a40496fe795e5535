#include "foretune/workflow/model_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/interop/ck/foreign_models.h"
#include "foretune/interop/ck/import_model.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/workflow/kernel_pool.h"

namespace foretune::workflow {
namespace {

// In the order in which they are preferred. Times order configs best; the others are Composable
// Kernel's.
constexpr std::array<std::string_view, 4> kTargets{"time", "tflops", "latency", "bandwidth"};

bool is_lightgbm_text(const std::filesystem::path& path) {
  return path.extension() == ".lgbm" ||
         (path.extension() == ".gz" && path.stem().extension() == ".lgbm");
}

// "model_tflops.lgbm.gz" is of tflops.
std::string target_in(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  constexpr std::string_view kHead = "model_";
  return name.starts_with(kHead) ? name.substr(kHead.size(), name.find('.') - kHead.size())
                                 : std::string();
}

std::filesystem::path model_file(const std::filesystem::path& directory, std::string_view target) {
  return directory / concat("model_", target, ".ftm");
}

std::map<std::string, std::string> labels_of(const ModelDirectory& documents) {
  std::map<std::string, std::string> labels;
  const auto add = [&](const char* field, const std::string& word) {
    // "mixed" is what training writes where problems differ.
    if (!word.empty() && word != "mixed") {
      labels[field] = our_label(field, word);
    }
  };
  add("dtype", documents.dtype);
  add("op", documents.direction);
  // Directories do not say a layout; this one is what Composable Kernel's scripts assume.
  if (documents.op_type.starts_with("gemm_")) {
    add("layout", "rcr");
  }
  return labels;
}

// Puts the target that orders the configs first. Errors: kNotFound.
Result<std::vector<std::string>> ordered(std::vector<std::string> targets,
                                         const std::string& first) {
  std::vector<std::string> out;
  for (const std::string_view target : kTargets) {
    if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
      out.emplace_back(target);
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kNotFound, "there is no model of ",
                join({kTargets.begin(), kTargets.end()}, ", "));
  }
  if (!first.empty()) {
    const auto found = std::find(out.begin(), out.end(), first);
    if (found == out.end()) {
      return fail(ErrorCode::kNotFound, "there is no model of ", foretune::quoted(first),
                  "; there are ", join(out, ", "));
    }
    std::rotate(out.begin(), found, found + 1);
  }
  return out;
}

// Returns the names of kernels to rank, as the options say; nothing where data sets have them.
Result<std::vector<std::string>> named_kernels(const ForeignModels& models,
                                               const std::string& kernels,
                                               const Invocation& invocation) {
  FORETUNE_TRY(const std::vector<std::string> names, read_kernel_names(kernels));
  auto found = kernels_for(models, names, invocation);
  return found ? std::move(found) : fail_because(found.error(), kernels);
}

PoolFilter filter_of(const ForeignModels& models) {
  const std::map<std::string, std::string> labels = labels_of(models.directory());
  const auto label = [&](const char* field) {
    const auto found = labels.find(field);
    return found == labels.end() ? std::string() : found->second;
  };
  return {.schema = &models.config_schema(),
          .data = {.op = label("op"), .dtype = label("dtype"), .arch = {}},
          .arch = models.directory().arch};
}

// The candidates of models that others trained.
struct Candidates {
  std::optional<Dataset> data;
  std::vector<std::string> names;  // where there are no data
};

}  // namespace

Option& ModelArguments::visit(OptionList& list) {
  Option& model =
      list.add(
              "model", path, "PATH",
              "model file, or directory of models: that of train --out-dir, or one that Composable "
              "Kernel's heuristics trained (feature_spec.json, model_tflops.lgbm[.gz])")
          .also("model-dir");
  const Condition of_directory{"with a directory as --model", [this] { return is_directory(); }};
  list.add(
          "kernels", kernels, "PATH",
          "candidates of a directory of others: file with kernel names, one per line, or folder of "
          "benchmark programs")
      .only(of_directory);
  list.add("pool", pool, "PATH",
           "the same: data set or folder of data sets whose kernels are the candidates (default: "
           "../../data of the directory)")
      .only({"with a directory as --model and without --kernels",
             [this] { return is_directory() && kernels.empty(); }});
  list.add("rank-by", rank_by, "TARGET",
           "model of the directory that orders the configs (default: time, else tflops)")
      .choose({kTargets.begin(), kTargets.end()})
      .only(of_directory);
  return model;
}

bool ModelArguments::is_directory() const {
  std::error_code error;
  return is_lightgbm_text(path) || std::filesystem::is_directory(path, error);
}

bool ModelArguments::is_folder() const {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) ||
      std::filesystem::exists(std::filesystem::path(path) / "feature_spec.json", error)) {
    return false;
  }
  bool has_model = false;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".ftm") {
      has_model = true;
      if (at->path().filename().string().starts_with("model_")) {
        return false;
      }
    }
  }
  return has_model;
}

std::filesystem::path ModelArguments::directory() const {
  std::filesystem::path given(path);
  if (!is_lightgbm_text(given)) {
    return given;
  }
  return given.has_parent_path() ? given.parent_path() : std::filesystem::path(".");
}

Result<OpenedModels> ModelArguments::open(const Invocation& invocation) const {
  if (path.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--model is required");
  }
  if (is_directory()) {
    return open_directory(invocation);
  }
  FORETUNE_TRY(Model model, read_model(path));
  return OpenedModels{.model = std::move(model), .others = {}, .labels = {}};
}

namespace {

// Model files of ours, as training leaves them.
Result<OpenedModels> open_trained(const std::filesystem::path& directory,
                                  const std::vector<std::string>& targets,
                                  std::map<std::string, std::string> labels) {
  FORETUNE_TRY(Model model, read_model(model_file(directory, targets.front())));
  OpenedModels out{.model = std::move(model), .others = {}, .labels = std::move(labels)};
  for (std::size_t i = 1; i < targets.size(); ++i) {
    FORETUNE_TRY(Model other, read_model(model_file(directory, targets[i])));
    out.others.push_back(std::move(other));
  }
  return out;
}

Result<Candidates> candidates_of(const ModelArguments& arguments,
                                 const std::filesystem::path& directory,
                                 const ForeignModels& models, const Invocation& invocation) {
  Candidates out;
  if (!arguments.kernels.empty()) {
    FORETUNE_TRY(out.names, named_kernels(models, arguments.kernels, invocation));
    return out;
  }
  std::error_code error;
  std::filesystem::path data = (directory / ".." / ".." / "data").lexically_normal();
  for (const std::string& named : {arguments.usual_pool, arguments.pool}) {
    if (!named.empty()) {
      data = named;
    }
  }
  if (!arguments.pool.empty() || std::filesystem::exists(data, error)) {
    FORETUNE_TRY(out.data, read_pool_data(data, filter_of(models), invocation));
  }
  if (!out.data && arguments.pool.empty()) {
    out.names = known_kernels(models);
  }
  if (!out.data && out.names.empty()) {
    return fail(ErrorCode::kNotFound, directory.string(),
                " has no kernels of its own to rank, and ", data.string(),
                " no measurements of such; name them by --kernels or --pool");
  }
  return out;
}

Result<Model> imported(const ForeignModels& models, const Candidates& candidates,
                       const std::string& target) {
  ImportOptions options;
  options.target = target;
  return candidates.data ? import_model(models, *candidates.data, options)
                         : import_model(models, candidates.names, "recorded", options);
}

Result<OpenedModels> open_foreign(const ModelArguments& arguments,
                                  const std::filesystem::path& directory, const std::string& first,
                                  const Invocation& invocation) {
  FORETUNE_TRY(const ForeignModels models, ForeignModels::open(directory));
  FORETUNE_TRY(const Candidates candidates,
               candidates_of(arguments, directory, models, invocation));
  std::vector<std::string> names = models.target_names();
  // A text of trees does not say how predictions of time order configs; rates do.
  if (names.size() > 1 && first != kTargets.front()) {
    std::erase(names, kTargets.front());
  }
  auto targets = ordered(std::move(names), first);
  if (!targets) {
    return fail_because(targets.error(), directory.string());
  }
  FORETUNE_TRY(Model model, imported(models, candidates, targets->front()));
  OpenedModels out{
      .model = std::move(model), .others = {}, .labels = labels_of(models.directory())};
  for (std::size_t i = 1; i < targets->size(); ++i) {
    FORETUNE_TRY(Model other, imported(models, candidates, (*targets)[i]));
    out.others.push_back(std::move(other));
  }
  return out;
}

}  // namespace

Result<OpenedModels> ModelArguments::open_directory(const Invocation& invocation) const {
  const std::filesystem::path folder = directory();
  const std::string first = !rank_by.empty() || !is_lightgbm_text(path) ? rank_by : target_in(path);
  std::vector<std::string> trained;
  std::error_code error;
  for (const std::string_view target : kTargets) {
    if (std::filesystem::exists(model_file(folder, target), error)) {
      trained.emplace_back(target);
    }
  }
  if (trained.empty()) {
    return open_foreign(*this, folder, first, invocation);
  }
  if (!kernels.empty() || !pool.empty()) {
    return without_effect({kernels.empty() ? "--pool" : "--kernels"},
                          "with a directory that others trained; this one has model files");
  }
  std::map<std::string, std::string> labels;
  if (std::filesystem::exists(folder / "feature_spec.json", error)) {
    FORETUNE_TRY(const ModelDirectory documents, read_model_documents(folder));
    labels = labels_of(documents);
  }
  auto targets = ordered(std::move(trained), first);
  if (!targets) {
    return fail_because(targets.error(), folder.string());
  }
  return open_trained(folder, *targets, std::move(labels));
}

}  // namespace foretune::workflow
