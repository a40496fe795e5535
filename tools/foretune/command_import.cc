// foretune import-model: a model directory of CK Tile's heuristics as a model file.
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/models/exchange/foreign_models.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/train/import_model.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct ImportModelArguments {
  std::string input;
  std::string output;
  std::string pool;
  std::string kernels;
  std::string target = "tflops";
  std::string family = "recorded";
  std::int64_t portfolio_size = ImportOptions().portfolio_size;
  bool overwrite = false;

  void visit(OptionList& list) {
    list.add_positional("directory", input, "model directory").require();
    list.add("output", output, "FILE", "model file to write (.ftm)").require();
    list.add("pool", pool, "FILE",
             "data set whose configs are the candidates; says the range of problems, too");
    list.add("kernels", kernels, "FILE", "names of the candidates instead, one a line");
    list.add("target", target, "NAME", "which of the models orders the candidates")
        .choose({"tflops", "latency", "bandwidth"});
    list.add("family", family, "NAME", "family of the candidates of --kernels");
    list.add("portfolio-size", portfolio_size, "N",
             "configs of the fallback for problems out of range; needs --pool")
        .at_least(0);
    list.add_switch("overwrite", overwrite, "replace an existing output");
  }
};

// Blank lines and those that begin with # are passed over.
Result<std::vector<std::string>> read_names(const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::vector<std::string> names;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view name = trim(line);
    if (!name.empty() && name.front() != '#') {
      names.emplace_back(name);
    }
  }
  return names;
}

Result<Model> import(const ImportModelArguments& arguments, const ForeignModels& models) {
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
      FORETUNE_TRY(const std::vector<std::string> names, read_names(arguments.kernels));
      return import_model(models, names, arguments.family, options);
    }
    FORETUNE_TRY(const Dataset dataset, import_dataset(arguments.pool, std::nullopt));
    return import_model(models, dataset, options);
  };
  Result<Model> model = made();
  return model ? std::move(model) : fail_because(model.error(), arguments.input, " with ", from);
}

Result<int> import_directory(const ImportModelArguments& arguments,
                             const Invocation& /*invocation*/) {
  if (!arguments.overwrite && std::filesystem::exists(arguments.output)) {
    return fail(ErrorCode::kInvalidArgument, arguments.output, " exists; --overwrite replaces it");
  }
  FORETUNE_TRY(const ForeignModels models, ForeignModels::open(arguments.input));
  FORETUNE_TRY(const Model model, import(arguments, models));
  FORETUNE_TRY_STATUS(write_model(model, arguments.output));
  const ModelDirectory& directory = models.directory();
  print(concat(directory.op_type, " ", directory.dtype, " ", directory.arch, ": ",
               count_text(model.forests.front().trees.size()), " trees on ",
               directory.feature_names.size(), " features, as columns of ", model.feature_table,
               "\n"));
  print(concat(count_text(model.pool.size()), " candidates, ", model.portfolio.size(),
               " of them as fallback\nwrote ", arguments.output, "\n"));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_import_model(OptionList& list) {
  return prepare_with<ImportModelArguments, import_directory>(list);
}

}  // namespace foretune::cli
