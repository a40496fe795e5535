// A kind of models: how a linear model is stored, checked, asked and explained. In the tree it is a
// folder below foretune/model/ and a row of kinds.inc; a program or a plug-in registers it.
#include <cmath>
#include <memory>
#include <utility>

#include "examples/extending/model/ridge_body.h"
#include "foretune/model/model_columns.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/pool_columns.h"

namespace foretune {

const ModelKind& ridge_model_kind();

namespace {

const RidgeBody& ridge_of(const Model& model) {
  static const RidgeBody none;
  const auto* const body = body_as<RidgeBody>(model.body);
  return body == nullptr ? none : *body;
}

// A missing value says nothing.
double term(double slope, double value) { return std::isnan(value) ? 0 : slope * value; }

double dot(std::span<const double> slopes, std::span<const double> row) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    sum += term(slopes[i], row[i]);
  }
  return sum;
}

class RidgePool final : public PreparedPool {
 public:
  RidgePool(RidgeBody body, const FeatureTable& table, const Hardware& hardware,
            ConfigWords configs)
      : body_(std::move(body)),
        table_(table),
        hardware_(hardware),
        of_problem_(feature_count(table, FeatureKind::kProblem)),
        of_config_(feature_count(table, FeatureKind::kConfig)),
        of_both_(feature_count(table, FeatureKind::kInteraction)),
        list_(configs) {
    // All that depends on configs only is done once.
    std::vector<double> row(of_config_);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      table_.config_row(list_[i], row);
      config_sums_.push_back(dot(slopes(of_problem_, of_config_), row));
    }
  }

  std::size_t size() const override { return list_.size(); }
  std::size_t workspace_bytes() const override {
    return (of_problem_ + of_both_ * size() + 1) * sizeof(double);
  }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    void* start = workspace.data();
    std::size_t space = workspace.size();
    auto* const doubles =
        static_cast<double*>(std::align(alignof(double), sizeof(double), start, space));
    const std::span<double> row(doubles, of_problem_);
    const std::span<double> columns(doubles + of_problem_, of_both_ * size());
    table_.problem_row(problem, hardware_, row);
    table_.interaction_columns(problem, hardware_, list_.view(), columns, size());
    const double of_problem = body_.offset + dot(slopes(0, of_problem_), row);
    const std::span<const double> of_both = slopes(of_problem_ + of_config_, of_both_);
    for (std::size_t i = 0; i < size(); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < of_both_; ++c) {
        sum += term(of_both[c], columns[c * size() + i]);
      }
      scores[i] = of_problem + config_sums_[i] + sum;
    }
    for (double& deviation : uncertainty) {
      deviation = 0;
    }
  }

 private:
  // Owns what a ConfigWords only refers to.
  class OwnConfigs {
   public:
    explicit OwnConfigs(ConfigWords configs) {
      offsets_.push_back(0);
      for (std::size_t i = 0; i < configs.size(); ++i) {
        words_.insert(words_.end(), configs[i].begin(), configs[i].end());
        offsets_.push_back(words_.size());
      }
    }
    [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
    [[nodiscard]] std::span<const std::int32_t> operator[](std::size_t i) const {
      return std::span(words_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
    }
    [[nodiscard]] ConfigWords view() const {
      return {words_, size() == 0 ? 1 : words_.size() / size()};
    }

   private:
    std::vector<std::int32_t> words_;
    std::vector<std::size_t> offsets_;
  };

  [[nodiscard]] std::span<const double> slopes(std::size_t first, std::size_t count) const {
    return std::span(body_.slopes).subspan(first, count);
  }

  RidgeBody body_;
  const FeatureTable& table_;
  Hardware hardware_;
  std::size_t of_problem_;
  std::size_t of_config_;
  std::size_t of_both_;
  OwnConfigs list_;
  std::vector<double> config_sums_;
};

Result<std::unique_ptr<PreparedPool>> make_pool(const RidgeBody& body, const FeatureTable& table,
                                                const Hardware& hardware, ConfigWords configs) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  if (!configs.is_even()) {
    return fail(ErrorCode::kUnsupported, "models of kind 'ridge' score configs of one length");
  }
  return std::make_unique<RidgePool>(body, table, hardware, configs);
}

class RidgeScorer final : public Scorer {
 public:
  RidgeScorer(RidgeBody body, const FeatureTable& table) : body_(std::move(body)), table_(table) {}
  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& hardware) const override {
    return make_pool(body_, table_, hardware, configs);
  }

 private:
  RidgeBody body_;
  const FeatureTable& table_;
};

void put(ByteWriter& writer, const Model& model) {
  const RidgeBody& body = ridge_of(model);
  writer.put(body.offset);
  writer.put_varint(body.slopes.size());
  for (const double slope : body.slopes) {
    writer.put(slope);
  }
}

Result<std::shared_ptr<const ModelBody>> read(const Model& /*header*/,
                                              std::span<const std::span<const std::byte>> sections,
                                              const ColumnMap& columns) {
  ByteReader reader(sections.front());
  RidgeBody body;
  body.offset = reader.get<double>();
  body.slopes.resize(reader.get_count(sizeof(double)));
  for (double& slope : body.slopes) {
    slope = reader.get<double>();
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'slopes' is damaged");
  }
  if (!columns.is_identity()) {
    return fail(ErrorCode::kMismatch, "the feature table got columns since it was trained");
  }
  return std::make_shared<const RidgeBody>(std::move(body));
}

Status check(const Model& model, const FeatureTable& table, bool /*was_just_read*/) {
  const RidgeBody& body = ridge_of(model);
  bool is_finite = std::isfinite(body.offset);
  for (const double slope : body.slopes) {
    is_finite = is_finite && std::isfinite(slope);
  }
  if (!is_finite || body.slopes.size() != table.columns().size()) {
    return fail(ErrorCode::kCorrupt, "the model has ", body.slopes.size(), " slopes for ",
                table.columns().size(), " columns, or one that is no number");
  }
  return {};
}

Result<std::unique_ptr<Scorer>> scorer(const Model& model, const FeatureTable& table) {
  return std::make_unique<RidgeScorer>(ridge_of(model), table);
}

Result<std::unique_ptr<PreparedPool>> prepare(const Model& model, const FeatureTable& table,
                                              ConfigWords configs) {
  return make_pool(ridge_of(model), table, model.fingerprint.hardware, configs);
}

// The sums of the pool, in its order.
double reference(const Model& model, std::span<const double> row, const Problem& problem) {
  const RidgeBody& body = ridge_of(model);
  const FeatureTable& table = **find_feature_table(model.feature_table);
  const std::span<const double> slopes(body.slopes);
  const std::size_t first = feature_count(table, FeatureKind::kProblem);
  const std::size_t count = feature_count(table, FeatureKind::kConfig);
  static_cast<void>(problem);
  return body.offset + dot(slopes, row.first(first)) +
         dot(slopes.subspan(first), row.subspan(first, count)) +
         dot(slopes.subspan(first + count), row.subspan(first + count));
}

ModelFacts describe(const Model& model) {
  ModelFacts facts;
  facts.add("slopes", concat(ridge_of(model).slopes.size(), " of a linear function"));
  facts.figures = {{"slopes", static_cast<double>(ridge_of(model).slopes.size())}};
  return facts;
}

void attribute(const Model& model, const Problem& /*problem*/, const Explained& out) {
  const RidgeBody& body = ridge_of(model);
  const std::size_t width = body.slopes.size();
  for (std::size_t i = 0; i < out.explained.size(); ++i) {
    for (std::size_t f = 0; f < width; ++f) {
      (*out.columns)[i][f] += term(body.slopes[f], out.rows[out.explained[i] * width + f]);
    }
  }
}

}  // namespace

const ModelKind& ridge_model_kind() {
  static const ModelKind kind{
      .name = "ridge",
      .description = "a linear function of the features",
      .sections = {{.id = section_id("XRDG"), .name = "slopes", .put = &put}},
      .read = &read,
      .check = &check,
      .make_scorer = &scorer,
      .prepare = &prepare,
      .reference_score = &reference,
      .describe = &describe,
      .attribute = &attribute};
  return kind;
}

}  // namespace foretune
