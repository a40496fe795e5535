#include "foretune/workflow/model_import.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/stored_zip.h"
#include "foretune/interop/ck/foreign_models.h"
#include "foretune/interop/diode/import_diode.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/kernel_pool.h"
#include "foretune/workflow/output.h"

namespace foretune::workflow {

void ImportModelArguments::visit(OptionList& list) {
  list.add_positional("model", input, "model directory, or checkpoint of torch-diode (.pt)")
      .require();
  list.add("output", output, "FILE", "model file to write (.ftm)").require();
  list.add("pool", pool, "FILE",
           "data set whose configs are the candidates; it also sets the range of problems");
  list.add("kernels", kernels, "FILE",
           "instead: file with the names of the candidates, one per line, or folder of benchmark "
           "programs");
  list.add("target", target, "NAME", "model that orders the candidates")
      .choose({"tflops", "latency", "bandwidth"});
  list.add("family", family, "NAME", "family of the candidates").only({"with --kernels", [this] {
                                                                         return !kernels.empty();
                                                                       }});
  list.add("portfolio-size", portfolio_size, "N",
           "configs in the fallback for problems out of range")
      .at_least(0)
      .only({"with --pool", [this] { return !pool.empty(); }});
  list.add("diode-kind", diode_kind, "KIND",
           "architecture of the checkpoint; auto detects it from its tensors")
      .choose({"auto", "v1", "base", "deep"});
  list.add_switch("raw", raw,
                  "for a v1 checkpoint: take inputs as torch-diode's integration computes them, "
                  "which differ from those it learned");
  list.add_switch("overwrite", overwrite, "replace an existing output");
}

namespace {

Result<Model> import_with_candidates(const ImportModelArguments& arguments,
                                     const ForeignModels& models, const Invocation& invocation) {
  const ImportOptions options{
      .target = arguments.target,
      .portfolio_size = static_cast<std::uint32_t>(arguments.portfolio_size)};
  if (arguments.pool.empty() == arguments.kernels.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the candidates come from --pool DATASET or from --kernels FILE; say one of them");
  }
  const std::string& from = arguments.pool.empty() ? arguments.kernels : arguments.pool;
  const auto made = [&]() -> Result<Model> {
    if (arguments.pool.empty()) {
      FORETUNE_TRY(std::vector<std::string> names, read_kernel_names(arguments.kernels));
      std::error_code error;
      // A folder of programs may hold those of other operations and types.
      if (std::filesystem::is_directory(arguments.kernels, error)) {
        FORETUNE_TRY(names, kernels_for(models, names, invocation));
      }
      return import_model(models, names, arguments.family, options);
    }
    FORETUNE_TRY(const Dataset dataset, read_measurements(arguments.pool, invocation));
    return import_model(models, dataset, options);
  };
  Result<Model> model = made();
  return model ? std::move(model) : fail_because(model.error(), arguments.input, " with ", from);
}

// Decides by content; by name where there is none or another one, for an error that fits.
bool is_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return false;
  }
  const auto file = MappedFile::open(path);
  return path.extension() == ".pt" || (file && formats::is_zip(file->bytes()));
}

Status check_checkpoint_options(const ImportModelArguments& arguments) {
  if (arguments.pool.empty() || !arguments.kernels.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the candidates of a checkpoint come from --pool DATASET");
  }
  if (arguments.target != ImportModelArguments().target) {
    return fail(ErrorCode::kInvalidArgument,
                "--target is for model directories; a checkpoint predicts times");
  }
  return {};
}

Result<ImportedModel> import_checkpoint(const ImportModelArguments& arguments,
                                        const Invocation& invocation) {
  FORETUNE_TRY_STATUS(check_checkpoint_options(arguments));
  std::optional<DiodeKind> kind;
  if (arguments.diode_kind != "auto") {
    FORETUNE_TRY(kind, parse_diode_kind(arguments.diode_kind));
  }
  FORETUNE_TRY(DiodeCheckpoint checkpoint, read_diode_checkpoint(arguments.input, kind));
  if (arguments.raw && checkpoint.kind != DiodeKind::kV1) {
    return fail(ErrorCode::kInvalidArgument, "--raw is for v1; a ", to_string(checkpoint.kind),
                " model learned its inputs as they are");
  }
  FORETUNE_TRY(const Dataset dataset, read_measurements(arguments.pool, invocation));
  auto model =
      import_diode(checkpoint, dataset,
                   {.raw = arguments.raw,
                    .portfolio_size = static_cast<std::uint32_t>(arguments.portfolio_size)});
  if (!model) {
    return fail_because(model.error(), arguments.input, " with ", arguments.pool);
  }
  return ImportedModel{.model = *std::move(model), .checkpoint = std::move(checkpoint)};
}

Result<ImportedModel> import_directory(const ImportModelArguments& arguments,
                                       const Invocation& invocation) {
  if (arguments.raw || arguments.diode_kind != "auto") {
    return fail(ErrorCode::kInvalidArgument, "--raw and --diode-kind are for checkpoints of ",
                "torch-diode (.pt)");
  }
  FORETUNE_TRY(const ForeignModels models, ForeignModels::open(arguments.input));
  FORETUNE_TRY(Model model, import_with_candidates(arguments, models, invocation));
  return ImportedModel{.model = std::move(model), .directory = models.directory()};
}

}  // namespace

Result<ImportedModel> run_import(const ImportModelArguments& arguments,
                                 const Invocation& invocation) {
  FORETUNE_TRY_STATUS(refuse_existing(arguments.output, arguments.overwrite));
  return is_checkpoint(arguments.input) ? import_checkpoint(arguments, invocation)
                                        : import_directory(arguments, invocation);
}

}  // namespace foretune::workflow
