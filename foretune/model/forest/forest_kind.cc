#include <algorithm>
#include <array>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/model/attribution.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/forest_scorer.h"
#include "foretune/model/forest/internal/forest_coding.h"

namespace foretune {

const std::vector<Forest>& forests_of(const Model& model) { return parts_of<Forest>(model.body); }

void put_forests(ByteWriter& writer, const std::vector<Forest>& forests) {
  writer.put_varint(forests.size());
  for (const Forest& forest : forests) {
    put_forest(writer, forest);
  }
}

Result<std::vector<Forest>> read_forests(std::span<const std::byte> section,
                                         const ColumnMap& columns) {
  ByteReader reader(section);
  std::vector<Forest> forests;
  const std::uint64_t count = reader.get_count(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    FORETUNE_TRY(Forest forest, get_forest(reader));
    FORETUNE_TRY_STATUS(columns.apply(forest));
    forests.push_back(std::move(forest));
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'forests' is damaged");
  }
  return forests;
}

Status check_forests(const std::vector<Forest>& forests, const FeatureTable& table,
                     bool was_just_read) {
  if (forests.empty()) {
    return fail(ErrorCode::kCorrupt, "the model has no forest");
  }
  for (std::size_t i = 0; i < forests.size(); ++i) {
    if (!was_just_read) {
      if (const Status status = forests[i].validate(); !status) {
        return fail_because(status.error(), "forest ", i);
      }
    }
    if (forests[i].feature_count != table.columns().size()) {
      return fail(ErrorCode::kMismatch, "forest ", i, " has ", forests[i].feature_count,
                  " features, the feature table ", table.name(), " has ", table.columns().size());
    }
  }
  return {};
}

double reference_score(const std::vector<Forest>& forests, std::span<const double> row) {
  double sum = 0;
  for (const Forest& forest : forests) {
    sum += predict_reference(forest, row);
  }
  return sum / static_cast<double>(forests.size());
}

ModelFacts facts_of(const std::vector<Forest>& forests) {
  std::size_t trees = 0;
  std::size_t splits = 0;
  for (const Forest& forest : forests) {
    trees += forest.trees.size();
    splits += forest.feature.size();
  }
  ModelFacts facts;
  facts.add("forests", concat(forests.size(), " with ", count_of(trees, "tree"), " and ",
                              count_of(splits, "split")));
  facts.figures = {{"forests", static_cast<double>(forests.size())},
                   {"trees", static_cast<double>(trees)},
                   {"splits", static_cast<double>(splits)}};
  return facts;
}

void attribute(const std::vector<Forest>& forests, double share, const Explained& out) {
  for (const Forest& forest : forests) {
    const std::vector<Attribution> parts = attribute_paths(forest, out.rows, out.explained);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t f = 0; f < parts[i].of_feature.size(); ++f) {
        (*out.columns)[i][f] +=
            share * parts[i].of_feature[f] / static_cast<double>(forests.size());
      }
    }
  }
}

const ModelKind& forest_model_kind() {
  static const ModelKind kind{
      .name = "gbdt",
      .description = "gradient-boosted regression trees",
      .sections = {{.id = section_id("TREE"),
                    .name = "forests",
                    .put = [](ByteWriter& writer,
                              const Model& model) { put_forests(writer, forests_of(model)); }}},
      .read = [](const Model& /*header*/, std::span<const std::span<const std::byte>> sections,
                 const ColumnMap& columns) -> Result<std::shared_ptr<const ModelBody>> {
        FORETUNE_TRY(std::vector<Forest> forests, read_forests(sections.front(), columns));
        return std::make_shared<const ForestBody>(std::move(forests));
      },
      .check =
          [](const Model& model, const FeatureTable& table, bool was_just_read) {
            return check_forests(forests_of(model), table, was_just_read);
          },
      .make_scorer = [](const Model& model,
                        const FeatureTable& table) -> Result<std::unique_ptr<Scorer>> {
        return forest_scorer(forests_of(model), table, model.residual_std);
      },
      .prepare =
          [](const Model& model, const FeatureTable& table, ConfigWords configs) {
            return prepare_forests(forests_of(model), table, model.residual_std, configs,
                                   model.fingerprint.hardware);
          },
      .reference_score =
          [](const Model& model, std::span<const double> row, const Problem& /*problem*/) {
            return reference_score(forests_of(model), row);
          },
      .describe = [](const Model& model) { return facts_of(forests_of(model)); },
      .attribute = [](const Model& model, const Problem& /*problem*/,
                      const Explained& out) { attribute(forests_of(model), 1, out); }};
  return kind;
}

void set_forests(Model& model, std::vector<Forest> forests) {
  model.kind = forest_model_kind().name;
  model.body = std::make_shared<const ForestBody>(std::move(forests));
}

}  // namespace foretune
