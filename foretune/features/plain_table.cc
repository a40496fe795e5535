#include "foretune/features/plain_table.h"

#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// A model has no more interaction columns than this many: the first sizes with every parameter.
constexpr std::size_t kMaxRatios = 96;

// Takes numbers that are 0 or negative, too.
double log2_of(std::int64_t value) {
  const auto size = static_cast<double>(value);
  return size < 0 ? -std::log2(1 - size) : std::log2(1 + size);
}

class PlainTable final : public FeatureTable {
 public:
  PlainTable(std::string name, const ProblemTypeInfo& type, const ConfigSchema& schema)
      : name_(std::move(name)), type_(type.schema.type), schema_(schema) {
    for (const ProblemField& field : type.schema.fields) {
      is_label_.push_back(!field.labels.empty());
      add(concat(is_label_.back() ? "" : "log2_", field.name), FeatureKind::kProblem,
          is_label_.back(), field.since);
    }
    for (const Parameter& parameter : schema_.parameters) {
      // Names of parameters may be those of fields.
      add(concat("config_", parameter.labels.empty() ? "log2_" : "", parameter.name),
          FeatureKind::kConfig, !parameter.labels.empty(), 1);
    }
    for (const DrawnSize& size : type.drawn_sizes) {
      for (std::size_t p = 0; p < schema_.parameters.size(); ++p) {
        if (schema_.parameters[p].labels.empty() && ratios_.size() < kMaxRatios) {
          ratios_.emplace_back(size.field, p);
          add(concat("log2_", type.schema.fields[size.field].name, "_over_",
                     schema_.parameters[p].name),
              FeatureKind::kInteraction, false, 1);
        }
      }
    }
  }

  std::string_view name() const override { return name_; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == type_ && schema.id() == schema_.id()
               ? Support::yes()
               : Support::no(name_, " describes configs of ", schema_.name, " v", schema_.version,
                             " for one type of problem");
  }

  void problem_row(const Problem& problem, const Hardware& /*hardware*/,
                   std::span<double> out) const override {
    FORETUNE_CHECK(out.size() == is_label_.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = is_label_[i] ? static_cast<double>(problem.field(i)) : log2_of(problem.field(i));
    }
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] =
          schema_.parameters[i].labels.empty() ? log2_of(words[i]) : static_cast<double>(words[i]);
    }
  }
  void interaction_columns(const Problem& problem, const Hardware& /*hardware*/,
                           ConfigWords configs, std::span<double> out,
                           std::size_t stride) const override {
    for (std::size_t r = 0; r < ratios_.size(); ++r) {
      const auto [field, parameter] = ratios_[r];
      const double size = log2_of(problem.field(field));
      for (std::size_t c = 0; c < configs.size(); ++c) {
        out[r * stride + c] = size - log2_of(configs[c][parameter]);
      }
    }
  }

 private:
  void add(std::string name, FeatureKind kind, bool is_categorical, std::uint32_t since) {
    names_.push_back(std::move(name));
    columns_.push_back(
        {.name = names_.back(),
         .kind = kind,
         .description = is_categorical ? "number of the label" : "log2 of one more than the number",
         .is_categorical = is_categorical,
         .since = since});
  }

  std::string name_;
  ProblemType type_;
  ConfigSchema schema_;
  std::vector<bool> is_label_;
  std::vector<std::pair<std::size_t, std::size_t>> ratios_;  // field, parameter
  std::deque<std::string> names_;                            // whose places stay
  std::vector<FeatureInfo> columns_;
};

}  // namespace

std::unique_ptr<const FeatureTable> make_plain_table(std::string name, const ProblemTypeInfo& type,
                                                     const ConfigSchema& schema) {
  FORETUNE_CHECK(schema.kind == SchemaKind::kParametric);
  return std::make_unique<PlainTable>(std::move(name), type, schema);
}

}  // namespace foretune
