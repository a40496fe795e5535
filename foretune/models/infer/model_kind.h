// The kinds of models that there are: what each is made of and what scores it. The table is in
// model_scorer.cc. Internal to models/infer. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/infer/scorer.h"

namespace foretune {

struct ModelKind {
  std::string_view name;
  bool has_forests;
  bool has_networks;
  bool has_metrics;  // models of its own
  Result<std::unique_ptr<Scorer>> (*make_scorer)(const Model& model, const FeatureTable& table);
  Result<std::unique_ptr<PreparedPool>> (*prepare)(const Model& model, const FeatureTable& table,
                                                   ConfigWords configs);
};

// Errors: kUnsupported for a kind unknown to this version.
Result<const ModelKind*> kind_of(const Model& model);

}  // namespace foretune
