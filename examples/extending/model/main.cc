// A kind of models of a program's own, from a data set to a pick: registered, trained, stored, read
// and asked. docs/guides/extending/model.md walks through it.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "foretune/families/null/null.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/measure.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/train/trainer.h"
#include "foretune/select/select.h"

namespace foretune {
const ModelKind& ridge_model_kind();
std::span<const ModelTypeEntry> ridge_trainers();
}  // namespace foretune

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

constexpr int kProblems = 24;
constexpr std::size_t kConfigs = 60;

Result<Dataset> measured() {
  FORETUNE_TRY(std::unique_ptr<Family> made, make_null({}));
  const std::shared_ptr<Family> family = std::move(made);
  const auto measurer = make_local_measurer(family, Protocol{}, Context{.threads = 1});
  Dataset dataset(header_of(family->info()));
  Rng rng(1);
  for (int i = 0; i < kProblems; ++i) {
    FORETUNE_TRY(const Problem problem, Problem::parse(concat("gemm m=", 32 + 40 * i,
                                                              " n=", 64 + 16 * (i % 7), " k=256")));
    FORETUNE_TRY(const std::unique_ptr<Space> space, family->space(problem));
    for (std::size_t c = 0; c < kConfigs; ++c) {
      if (const auto config = space->sample(rng)) {
        dataset.add(measurer->measure({.problem = problem, .config = *config}));
      }
    }
  }
  return dataset;
}

Status run() {
  FORETUNE_TRY_STATUS(register_model_kind(ridge_model_kind()));
  FORETUNE_TRY_STATUS(register_model_type(ridge_trainers().front()));
  FORETUNE_TRY(const Dataset dataset, measured());
  const ModelTypeEntry& type = *model_types().back();
  FORETUNE_TRY(const TrainResult trained, type.train(dataset, {}, nullptr));
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "ridge-example.ftm";
  FORETUNE_TRY_STATUS(write_model(trained.model, path));
  FORETUNE_TRY(const std::unique_ptr<Selector> selector, Selector::open(path));
  FORETUNE_TRY(const Problem problem, Problem::parse("gemm m=300 n=128 k=256"));
  const Choice choice = selector->select(problem);
  std::printf("%s picks %s\n", selector->model().kind.c_str(),
              selector->config_text(choice.candidate).c_str());
  std::filesystem::remove(path);
  return choice.picked() ? Status() : fail(ErrorCode::kInternal, "it picks nothing");
}

}  // namespace

int main() {
  const Status status = run();
  if (!status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
