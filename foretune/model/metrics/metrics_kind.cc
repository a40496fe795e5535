#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/internal/model_sections.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/pool_columns.h"

namespace foretune {
namespace {

using PoolResult = Result<std::unique_ptr<PreparedPool>>;

// ---- the file: files within the file ------------------------------------------------------------

constexpr std::size_t kMaxMetrics = 32;

// Sections of the whole that a metric's model has to the byte, so that they are written once.
SectionIds shared_sections(const Model& whole, const Model& part) {
  SectionIds out;
  for (const ModelSection& section : model_sections()) {
    if (section.share == nullptr || !has_section(section, whole) || !has_section(section, part)) {
      continue;
    }
    ByteWriter of_whole;
    ByteWriter of_part;
    section.put(of_whole, whole);
    section.put(of_part, part);
    if (std::equal(of_whole.bytes().begin(), of_whole.bytes().end(), of_part.bytes().begin(),
                   of_part.bytes().end())) {
      out.push_back(section.id);
    }
  }
  return out;
}

MetricModel get_metric_model(ByteReader& reader) {
  MetricModel out;
  out.metric.name = reader.get_string();
  out.metric.unit = reader.get_string();
  out.metric.direction = static_cast<Direction>(reader.get<std::uint8_t>());
  out.metric.stage = static_cast<MetricStage>(reader.get<std::uint8_t>());
  out.scale.kind = static_cast<ValueScale::Kind>(reader.get<std::uint8_t>());
  out.scale.offset = reader.get<double>();
  out.scale.reference = reader.get<double>();
  out.scale.step = reader.get<double>();
  return out;
}

void put_metrics(ByteWriter& writer, const Model& model) {
  writer.put_varint(metrics_of(model).size());
  for (const MetricModel& part : metrics_of(model)) {
    writer.put_string(part.metric.name);
    writer.put_string(part.metric.unit);
    writer.put(static_cast<std::uint8_t>(part.metric.direction),
               static_cast<std::uint8_t>(part.metric.stage),
               static_cast<std::uint8_t>(part.scale.kind), part.scale.offset, part.scale.reference,
               part.scale.step);
    const SectionIds shared = shared_sections(model, *part.model);
    writer.put_varint(shared.size());
    for (const std::uint32_t id : shared) {
      writer.put(id);
    }
    const std::vector<std::byte> bytes = file_bytes(*part.model, shared);
    writer.put(static_cast<std::uint64_t>(bytes.size()));
    writer.put_bytes(bytes);
  }
}

// The model of one metric: a file without the sections that it takes over from the whole.
Result<std::shared_ptr<const Model>> get_part(ByteReader& reader, const Model& whole) {
  auto part = std::make_shared<Model>();
  SectionIds taken_over(reader.get_count(sizeof(std::uint32_t)));
  for (std::uint32_t& id : taken_over) {
    id = reader.get<std::uint32_t>();
    const ModelSection* const section = find_model_section(id);
    if (section == nullptr || section->share == nullptr || !has_section(*section, whole)) {
      return fail(ErrorCode::kCorrupt, "it takes over a section that is not there");
    }
    section->share(whole, *part);
  }
  const std::span<const std::byte> bytes =
      reader.get_bytes(static_cast<std::size_t>(reader.get<std::uint64_t>()));
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "it is cut short");
  }
  FORETUNE_TRY_STATUS(read_file(bytes, taken_over, *part));
  if (part->kind == whole.kind) {
    return fail(ErrorCode::kCorrupt, "it is one of several metrics itself");
  }
  return part;
}

Result<std::shared_ptr<const ModelBody>> read_metrics(
    const Model& header, std::span<const std::span<const std::byte>> sections,
    const ColumnMap& columns) {
  FORETUNE_TRY(const std::vector<Forest> forests, read_forests(sections[0], columns));
  if (!forests.empty()) {
    return fail(ErrorCode::kCorrupt, "the model has forests, which its kind does not have");
  }
  ByteReader reader(sections[1]);
  constexpr std::size_t kMinBytes = 44;
  const std::uint64_t count = reader.get_count(kMinBytes);
  if (count > kMaxMetrics) {
    return fail(ErrorCode::kCorrupt, "it claims ", count, " metrics");
  }
  std::vector<MetricModel> metrics;
  for (std::uint64_t i = 0; i < count; ++i) {
    MetricModel metric = get_metric_model(reader);
    auto part = get_part(reader, header);
    if (!part) {
      return fail_because(part.error(), "its section 'metrics': the model of metric ", i);
    }
    metric.model = *std::move(part);
    metrics.push_back(std::move(metric));
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'metrics' is damaged");
  }
  return std::make_shared<const MetricsBody>(std::move(metrics));
}

// ---- scoring ------------------------------------------------------------------------------------

// A column for each metric, each scored by a model of its own.
class MetricsPool final : public PreparedPool {
 public:
  explicit MetricsPool(std::vector<std::unique_ptr<PreparedPool>> parts)
      : parts_(std::move(parts)) {}

  std::size_t size() const override { return parts_.front()->size(); }
  std::size_t column_count() const override { return parts_.size(); }
  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const std::unique_ptr<PreparedPool>& part : parts_) {
      bytes = std::max(bytes, part->workspace_bytes());
    }
    return bytes;
  }
  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    parts_.front()->score(problem, workspace, scores, uncertainty);
  }
  void score_column(std::size_t column, const Problem& problem, std::span<std::byte> workspace,
                    std::span<double> scores,
                    std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(column < parts_.size());
    parts_[column]->score(problem, workspace, scores, uncertainty);
  }

 private:
  std::vector<std::unique_ptr<PreparedPool>> parts_;
};

class MetricsScorer final : public Scorer {
 public:
  explicit MetricsScorer(std::vector<std::unique_ptr<Scorer>> parts) : parts_(std::move(parts)) {}
  PoolResult prepare(ConfigWords configs, const Hardware& hardware) const override {
    std::vector<std::unique_ptr<PreparedPool>> pools;
    for (const std::unique_ptr<Scorer>& part : parts_) {
      FORETUNE_TRY(pools.emplace_back(), part->prepare(configs, hardware));
    }
    return std::make_unique<MetricsPool>(std::move(pools));
  }

 private:
  std::vector<std::unique_ptr<Scorer>> parts_;
};

// Each a model of its own for the same problems and configs.
Status check_metrics(const Model& model, const FeatureTable& /*table*/, bool was_just_read) {
  const std::vector<MetricModel>& metrics = metrics_of(model);
  if (metrics.empty()) {
    return fail(ErrorCode::kCorrupt, "a model of kind '", model.kind, "' has 0 metrics");
  }
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const MetricModel& part = metrics[i];
    FORETUNE_TRY_STATUS(check_metric_info(part.metric));
    FORETUNE_TRY_STATUS(part.scale.validate());
    for (std::size_t j = 0; j < i; ++j) {
      if (metrics[j].metric.name == part.metric.name) {
        return fail(ErrorCode::kCorrupt, "the model has the metric ", part.metric.name, " twice");
      }
    }
    if (part.metric.direction > Direction::kMaximise ||
        part.metric.stage > MetricStage::kEvaluation) {
      return fail(ErrorCode::kUnsupported, "the metric ", part.metric.name,
                  " has a direction or a stage that this version does not know");
    }
    if (part.model == nullptr || part.model->kind == model.kind || part.model->target != "log") {
      return fail(ErrorCode::kCorrupt, "the metric ", part.metric.name,
                  " has no model of its value");
    }
    const Model& own = *part.model;
    if (own.family != model.family || own.problem_type != model.problem_type ||
        own.config_schema != model.config_schema) {
      return fail(ErrorCode::kMismatch, "the model of ", part.metric.name,
                  " is for other problems or configs than the whole");
    }
    Status status = check_header(own).map([](const auto&) {});
    if (status) {
      status = check_body(own, was_just_read);
    }
    if (!status) {
      return fail_because(status.error(), "the model of ", part.metric.name);
    }
  }
  return {};
}

Status check_has_metrics(const Model& model) {
  return metrics_of(model).empty() ? fail(ErrorCode::kCorrupt, "the model has no metrics")
                                   : Status();
}

Result<std::unique_ptr<Scorer>> metrics_scorer(const Model& model, const FeatureTable& /*table*/) {
  FORETUNE_TRY_STATUS(check_has_metrics(model));
  std::vector<std::unique_ptr<Scorer>> parts;
  for (const MetricModel& part : metrics_of(model)) {
    FORETUNE_TRY(parts.emplace_back(), make_scorer(*part.model));
  }
  return std::make_unique<MetricsScorer>(std::move(parts));
}

PoolResult prepare_metrics(const Model& model, const FeatureTable& /*table*/, ConfigWords configs) {
  FORETUNE_TRY_STATUS(check_has_metrics(model));
  std::vector<std::unique_ptr<PreparedPool>> pools;
  for (const MetricModel& part : metrics_of(model)) {
    FORETUNE_TRY(pools.emplace_back(), prepare_checked(*part.model, configs));
  }
  return std::make_unique<MetricsPool>(std::move(pools));
}

std::shared_ptr<const ModelBody> with_pool_of(const Model& model) {
  std::vector<MetricModel> metrics = metrics_of(model);
  for (MetricModel& part : metrics) {
    Model own = *part.model;
    own.pool = model.pool;
    own.portfolio = model.portfolio;
    part.model = std::make_shared<const Model>(std::move(own));
  }
  return std::make_shared<const MetricsBody>(std::move(metrics));
}

// ---- for people ---------------------------------------------------------------------------------

ModelFacts describe_metrics(const Model& model) {
  ModelFacts facts;
  for (const MetricModel& part : metrics_of(model)) {
    const MetricInfo& metric = part.metric;
    facts.add("metric",
              concat(metric.name, metric.unit.empty() ? "" : concat(" (", metric.unit, ")"), ", ",
                     to_string(metric.direction), ": ", part.model->kind, " of ", part.scale.text(),
                     ", residual ", fixed(part.model->residual_std, 4)));
    const ModelFacts own = describe_model(*part.model);
    for (const auto& [name, text] : own.lines) {
      facts.add(concat("  ", name), text);
    }
    for (const auto& [name, value] : own.figures) {
      facts.figures.emplace_back(concat(metric.name, " ", name), value);
    }
  }
  return facts;
}

}  // namespace

bool MetricModel::operator==(const MetricModel& other) const {
  return metric == other.metric && scale == other.scale &&
         (model == other.model ||
          (model != nullptr && other.model != nullptr && *model == *other.model));
}

const std::vector<MetricModel>& metrics_of(const Model& model) {
  return parts_of<MetricModel>(model.body);
}

const ModelKind& metrics_model_kind() {
  static const ModelKind kind{
      .name = "metrics",
      .description = "a model for each of several metrics",
      // Readers of the first version ask every file for forests.
      .sections = {{.id = section_id("TREE"),
                    .name = "forests",
                    .put = [](ByteWriter& writer,
                              const Model& /*model*/) { put_forests(writer, {}); }},
                   {.id = section_id("METR"), .name = "metrics", .put = &put_metrics}},
      .read = &read_metrics,
      .check = &check_metrics,
      .make_scorer = &metrics_scorer,
      .prepare = &prepare_metrics,
      .reference_score =
          [](const Model& model, std::span<const double> row, const Problem& problem) {
            const Model& first = *metrics_of(model).front().model;
            const auto kind_of_first = find_model_kind(first.kind);
            FORETUNE_CHECK(kind_of_first.has_value());
            return (*kind_of_first)->reference_score(first, row, problem);
          },
      .describe = &describe_metrics,
      .columns =
          [](const Model& model) {
            std::vector<ScoreColumn> out;
            for (const MetricModel& part : metrics_of(model)) {
              out.push_back({.metric = part.metric, .scale = part.scale, .is_absolute = true});
            }
            return out;
          },
      .column_model = [](const Model& model, std::size_t column) -> const Model& {
        return column < metrics_of(model).size() ? *metrics_of(model)[column].model : model;
      },
      .with_pool = &with_pool_of};
  return kind;
}

void set_metrics(Model& model, std::vector<MetricModel> metrics) {
  model.kind = metrics_model_kind().name;
  model.body = std::make_shared<const MetricsBody>(std::move(metrics));
}

}  // namespace foretune
