#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/function/function_body.h"
#include "foretune/model/internal/score_mean.h"
#include "foretune/model/internal/table_pool.h"

namespace foretune {
namespace {

// Infinite where there is no number.
void predict_or_infinity(const RowFunction& function, std::span<const float> inputs,
                         std::span<double> out) {
  const bool is_done = function.predict(inputs, out).has_value();
  for (double& value : out) {
    value = is_done && !std::isnan(value) ? value : std::numeric_limits<double>::infinity();
  }
}

class FunctionPool final : public TablePool {
 public:
  FunctionPool(const FunctionBody& body, const FeatureTable& table, const Hardware& hardware,
               double residual_std, ConfigWords configs)
      : TablePool(table, hardware, configs),
        inputs_(body.inputs),
        function_(body.function),
        residual_std_(residual_std),
        of_config_(feature_count(table, FeatureKind::kConfig)),
        of_both_(feature_count(table, FeatureKind::kInteraction)),
        config_columns_(config_columns(table, configs)),
        both_offset_(reserve(of_both_ * size() * sizeof(double))),
        values_offset_(reserve(inputs_.size() * size() * sizeof(float))) {}

 private:
  void score_candidates(const Problem& problem, std::span<const double> problem_row,
                        std::byte* base, std::span<double> scores,
                        std::span<double> uncertainty) const noexcept override {
    const std::span of_both(reinterpret_cast<double*>(base + both_offset_), of_both_ * size());
    interaction_columns(problem, configs(), of_both, size());
    const std::span values(reinterpret_cast<float*>(base + values_offset_),
                           inputs_.size() * size());
    const auto value_of = [&](std::size_t column, std::size_t i) {
      if (column < problem_columns()) {
        return problem_row[column];
      }
      column -= problem_columns();
      return column < of_config_ ? config_columns_[column * size() + i]
                                 : of_both[(column - of_config_) * size() + i];
    };
    for (std::size_t i = 0; i < size(); ++i) {
      for (std::size_t c = 0; c < inputs_.size(); ++c) {
        values[i * inputs_.size() + c] = inputs_[c].of(value_of(inputs_[c].column, i));
      }
    }
    predict_or_infinity(*function_, values, scores);
    std::fill(uncertainty.begin(), uncertainty.end(), residual_std_);
  }

  std::vector<NetworkInput> inputs_;
  std::shared_ptr<const RowFunction> function_;
  double residual_std_;
  std::size_t of_config_;
  std::size_t of_both_;
  std::vector<double> config_columns_;  // a value per candidate each
  std::size_t both_offset_;
  std::size_t values_offset_;
};

Status check_function(const Model& model, const FeatureTable& table, bool /*was_just_read*/) {
  const FunctionBody* const body = function_of(model);
  if (body == nullptr || body->function == nullptr || body->inputs.empty()) {
    return fail(ErrorCode::kCorrupt, "a model of kind '", model.kind, "' has no function");
  }
  for (const NetworkInput& input : body->inputs) {
    if (input.column >= table.columns().size() || !std::isfinite(input.mean) ||
        !std::isfinite(input.inverse_std)) {
      return fail(ErrorCode::kCorrupt, "the model has an input that does not fit the table");
    }
  }
  return {};
}

Result<std::unique_ptr<PreparedPool>> make_function_pool(const FunctionBody& body,
                                                         const FeatureTable& table,
                                                         const Hardware& hardware,
                                                         double residual_std, ConfigWords configs) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  return std::make_unique<FunctionPool>(body, table, hardware, residual_std, configs);
}

class FunctionScorer final : public Scorer {
 public:
  FunctionScorer(FunctionBody body, const FeatureTable& table, double residual_std)
      : body_(std::move(body)), table_(table), residual_std_(residual_std) {}
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& hardware) const override {
    return make_function_pool(body_, table_, hardware, residual_std_, configs);
  }

 private:
  FunctionBody body_;
  const FeatureTable& table_;
  double residual_std_;
};

double function_reference(const Model& model, std::span<const double> row,
                          const Problem& /*problem*/) {
  const FunctionBody& body = *function_of(model);
  std::vector<float> values;
  for (const NetworkInput& input : body.inputs) {
    values.push_back(input.of(row[input.column]));
  }
  double out = 0;
  predict_or_infinity(*body.function, values, std::span(&out, 1));
  return out;
}

}  // namespace

bool FunctionBody::equals(const ModelBody& other) const {
  const auto* const same = dynamic_cast<const FunctionBody*>(&other);
  return same != nullptr && same->name == name && same->inputs == inputs &&
         same->function == function;
}

const FunctionBody* function_of(const Model& model) { return body_as<FunctionBody>(model.body); }

const ModelKind& function_model_kind() {
  static const ModelKind kind{
      .name = "function",
      .description = "a function of the program that trained it",
      .check = &check_function,
      .make_scorer = [](const Model& model,
                        const FeatureTable& table) -> Result<std::unique_ptr<Scorer>> {
        FORETUNE_TRY_STATUS(check_function(model, table, false));
        FORETUNE_TRY_STATUS(check_residual(model.residual_std));
        return std::make_unique<FunctionScorer>(*function_of(model), table, model.residual_std);
      },
      .prepare =
          [](const Model& model, const FeatureTable& table, ConfigWords configs) {
            return make_function_pool(*function_of(model), table, model.fingerprint.hardware,
                                      model.residual_std, configs);
          },
      .reference_score = &function_reference,
      .describe =
          [](const Model& model) {
            ModelFacts facts;
            if (const FunctionBody* const body = function_of(model); body != nullptr) {
              facts.add("function", concat(body->name, " of ", body->inputs.size(), " inputs"));
              facts.figures = {{"inputs", static_cast<double>(body->inputs.size())}};
            }
            return facts;
          },
      .is_transient = true};
  return kind;
}

void set_function(Model& model, FunctionBody body) {
  model.kind = function_model_kind().name;
  model.body = std::make_shared<const FunctionBody>(std::move(body));
}

}  // namespace foretune
