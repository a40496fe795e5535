// Writes the seeds of the model fuzz target that hold what the older ones do not: a fast model, a
// applicability domain and packed leaf values; an ensemble with networks of both shapes; a network
// with weights of 8 bits; and three metrics.
//   build/dev/fuzz/model_seeds fuzz/corpus/model
#include <cstdio>
#include <filesystem>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/model/applicability_domain.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_int8.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

// Few of everything, so that a changed byte often matters. Leaf values are packed from 65 on.
Model seed_model() {
  Rng rng(1);
  Model model = sample_model(
      {.candidates = 12, .forest = {.trees = 3, .max_leaves = 24, .vary_leaves = false}}, rng);
  std::vector<Problem> problems;
  for (int i = 0; i < 12; ++i) {
    problems.push_back(sample_gemm(rng));
  }
  model.domain = ApplicabilityDomain::fit(problems);
  model.distilled = sample_distilled_model(6, model.pool.size(), rng);
  return model;
}

Model ensemble_model() {
  Rng rng(2);
  Model model = sample_model(
      {.candidates = 8, .forest = {.trees = 2, .max_leaves = 4, .vary_leaves = false}}, rng);
  const FeatureTable& table = **find_feature_table(model.feature_table);
  set_ensemble(model,
               {.forests = forests_of(model),
                .networks = {random_deep(table, 4, 1, rng), random_towers(table, 4, 2, 2, rng)}});
  return model;
}

Model int8_model() {
  Model model = ensemble_model();
  set_networks(model, {*with_int8_weights(ensemble_of(model).networks.front())});
  return model;
}

Model metrics_model() {
  Rng rng(3);
  return sample_metrics_model(
      {.candidates = 8, .forest = {.trees = 2, .max_leaves = 4, .vary_leaves = false}}, rng);
}

Status write_seeds(const std::filesystem::path& folder) {
  const Model ensemble = ensemble_model();
  FORETUNE_TRY_STATUS(Selector::create(ensemble));
  FORETUNE_TRY_STATUS(
      write_file_atomically(folder / "ensemble_networks.ftm", model_bytes(ensemble)));
  const Model int8 = int8_model();
  FORETUNE_TRY_STATUS(Selector::create(int8));
  FORETUNE_TRY_STATUS(write_file_atomically(folder / "network_int8.ftm", model_bytes(int8)));
  const Model metrics = metrics_model();
  FORETUNE_TRY_STATUS(Selector::create(metrics));
  FORETUNE_TRY_STATUS(write_file_atomically(folder / "metrics.ftm", model_bytes(metrics)));
  const Model model = seed_model();
  FORETUNE_TRY_STATUS(Selector::create(model));  // or it would test only a refusal
  return write_file_atomically(folder / "fast_hull_packed.ftm", model_bytes(model));
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: model_seeds FOLDER\n", stderr);
    return 2;
  }
  if (const foretune::Status status = foretune::write_seeds(argv[1]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
