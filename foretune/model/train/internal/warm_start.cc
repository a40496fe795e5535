#include "foretune/model/train/internal/warm_start.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "foretune/interop/ck/ck_engine.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/combine_forests.h"

namespace foretune::train_internal {
namespace {

using Json = nlohmann::json;

// Facts about a model that only its card has. Cards of earlier versions lack them; the defaults are
// right for those models, which were regressions of a logarithm of time.
struct CardSays {
  std::string objective = "regression";
  bool log1p = false;
  double score_factor = 1;
};

Result<CardSays> read_card(const Model& model) {
  const Json card = Json::parse(model.card_json, nullptr, false);
  CardSays out;
  if (!card.is_object()) {
    return fail(ErrorCode::kCorrupt, "the model's card is no JSON object");
  }
  if (const auto found = card.find("objective"); found != card.end() && found->is_string()) {
    out.objective = found->get<std::string>();
  }
  if (const auto found = card.find("log1p"); found != card.end() && found->is_boolean()) {
    out.log1p = found->get<bool>();
  }
  if (const auto found = card.find("score_factor"); found != card.end() && found->is_number()) {
    out.score_factor = found->get<double>();
  }
  if (!std::isfinite(out.score_factor) || out.score_factor == 0) {
    return fail(ErrorCode::kCorrupt, "the model's card has a score factor of ", out.score_factor);
  }
  return out;
}

bool learns_log1p(const TrainOptions& options) {
  return options.log_transform && options.target != Target::kRelativeLog &&
         options.target != Target::kLog;
}

}  // namespace

TrainObjective objective_of(const Model& model) {
  const Result<CardSays> card = read_card(model);
  return card ? parse_objective(card->objective).value_or(TrainObjective::kRegression)
              : TrainObjective::kRegression;
}

Result<std::vector<Forest>> warm_forests(const Dataset& dataset, const FeatureTable& table,
                                         const TrainOptions& options) {
  const Model& model = *options.warm_start;
  const DatasetHeader& header = dataset.header();
  FORETUNE_TRY(const CardSays card, read_card(model));
  std::string differs;
  const auto same = [&](bool is_same, const std::string& what) {
    if (!is_same) {
      differs += concat(differs.empty() ? "" : "; ", what);
    }
  };
  const auto two = [](std::string_view what, std::string_view before, std::string_view now) {
    return concat(what, " ", quoted(before), " against ", quoted(now));
  };
  same(model.family == header.family, two("family", model.family, header.family));
  same(model.problem_type == header.problem_type &&
           model.problem_schema == find_problem_schema(header.problem_type)->id(),
       "another kind or version of problems");
  same(model.config_schema == header.config_schema,
       two("config schema", model.config_schema.name, header.config_schema.name));
  same(model.feature_table == table.name(),
       two("feature table", model.feature_table, table.name()));
  same(model.feature_table != table.name() || model.feature_table_id == feature_table_id(table),
       concat("the names of the columns of ", table.name()));
  same(ck_engine_name(table).empty() ||
           model.fingerprint.hardware == engine_fingerprint(table, header.fingerprint).hardware,
       concat("the numbers of the device that ", table.name(), " takes"));
  same(model.machines.empty() && dataset.told_apart().empty(),
       "a model of several machines is not continued");
  same(model.target == to_string(options.target),
       two("target", model.target, to_string(options.target)));
  same(card.log1p == learns_log1p(options), "one learned a logarithm of the target");
  same(card.objective == to_string(options.objective),
       two("objective", card.objective, to_string(options.objective)));
  same(forests_of(model).size() == options.forests,
       concat(forests_of(model).size(), " forests against ", options.forests));
  if (!differs.empty()) {
    return fail(ErrorCode::kMismatch, "the model cannot be continued, it differs: ", differs);
  }
  std::vector<Forest> out;
  for (const Forest& forest : forests_of(model)) {
    out.push_back(card.score_factor == 1 ? forest : scaled(forest, 1 / card.score_factor));
  }
  return out;
}

}  // namespace foretune::train_internal
