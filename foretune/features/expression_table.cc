#include "foretune/features/expression_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/space/expression.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr std::string_view kColumn = "column ";
constexpr std::string_view kCode = "code ";
constexpr std::string_view kMark = " # ";
constexpr std::size_t kMaxText = std::size_t{1} << 20U;
constexpr std::size_t kMaxColumns = 4096;
constexpr std::size_t kMaxKept = std::size_t{16} << 20U;  // bytes of texts

Result<ExpressionColumn> parse_column(std::string_view rest, bool is_categorical) {
  const std::size_t blank = rest.find(' ');
  const std::size_t mark = rest.find(kMark);
  if (blank == std::string_view::npos || mark == std::string_view::npos || mark <= blank) {
    return fail(ErrorCode::kCorrupt,
                "a column has a name, an expression and, after ' # ', a description");
  }
  return ExpressionColumn{.name = std::string(rest.substr(0, blank)),
                          .expression = std::string(rest.substr(blank + 1, mark - blank - 1)),
                          .description = std::string(rest.substr(mark + kMark.size())),
                          .is_categorical = is_categorical};
}

FeatureKind kind_of(const Expression& expression) {
  if (expression.parameters().empty()) {
    return FeatureKind::kProblem;
  }
  return expression.uses_problem() || expression.uses_hardware() ? FeatureKind::kInteraction
                                                                 : FeatureKind::kConfig;
}

class ExpressionTable final : public FeatureTable {
 public:
  static Result<std::unique_ptr<const FeatureTable>> create(const ExpressionFeatures& features) {
    auto table = std::unique_ptr<ExpressionTable>(new ExpressionTable(features));
    FORETUNE_TRY_STATUS(table->compile());
    return table;
  }

  std::string_view name() const override { return features_.name; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  std::string_view definition() const override { return definition_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    if (type != features_.problem_type) {
      return Support::no(features_.name, " describes ",
                         find_problem_schema(features_.problem_type)->name, " problems only");
    }
    if (schema.kind == SchemaKind::kParametric && schema.parameters == features_.parameters) {
      return Support::yes();
    }
    return Support::no(features_.name, " describes configs of other parameters than those of ",
                       schema.name);
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = value(i, {}, problem.fields(), hardware);
    }
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = value(of_problem_ + i, words, {}, {});
    }
  }
  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    for (std::size_t c = of_problem_ + of_config_; c < columns_.size(); ++c) {
      const std::span<double> column = out.subspan((c - of_problem_ - of_config_) * stride);
      for (std::size_t i = 0; i < configs.size(); ++i) {
        column[i] = value(c, configs[i], problem.fields(), hardware);
      }
    }
  }

 private:
  explicit ExpressionTable(const ExpressionFeatures& features)
      : features_(features), definition_(features.text()) {}

  Status compile() {
    const ProblemSchema* const problem = find_problem_schema(features_.problem_type);
    const ConfigSchema schema{.name = features_.name, .parameters = features_.parameters};
    std::vector<std::pair<Expression, const ExpressionColumn*>> compiled;
    for (const ExpressionColumn& column : features_.columns) {
      auto expression = Expression::parse(column.expression, schema, *problem, Arithmetic::kReal);
      if (!expression) {
        return fail_because(expression.error(), "the column ", column.name);
      }
      compiled.emplace_back(*std::move(expression), &column);
    }
    std::stable_sort(compiled.begin(), compiled.end(), [](const auto& one, const auto& other) {
      return kind_of(one.first) < kind_of(other.first);
    });
    for (auto& [expression, column] : compiled) {
      columns_.push_back(
          {.name = column->name,
           .kind = kind_of(expression),
           .description = column->description.empty() ? column->expression : column->description,
           .is_categorical = column->is_categorical});
      expressions_.push_back(std::move(expression));
    }
    of_problem_ = feature_count(*this, FeatureKind::kProblem);
    of_config_ = feature_count(*this, FeatureKind::kConfig);
    return {};
  }

  double value(std::size_t column, std::span<const std::int32_t> words,
               std::span<const std::int64_t> fields, const Hardware& hardware) const {
    const double out = expressions_[column].evaluate_real(words, fields, hardware);
    return std::isfinite(out) ? out : 0;
  }

  ExpressionFeatures features_;
  std::string definition_;
  std::vector<FeatureInfo> columns_;  // refer to texts of features_
  std::vector<Expression> expressions_;
  std::size_t of_problem_ = 0;
  std::size_t of_config_ = 0;
};

}  // namespace

std::string ExpressionFeatures::text() const {
  const ConfigSchema schema{.name = name, .parameters = parameters};
  std::string out = SpaceDefinition{
      .schema = schema,
      .problem_type = problem_type,
      .domains = {},
      .constraints = {},
      .canonical = {}}.text();
  for (const ExpressionColumn& column : columns) {
    out += concat(column.is_categorical ? kCode : kColumn, column.name, " ", column.expression,
                  kMark, column.description, "\n");
  }
  return out;
}

Result<ExpressionFeatures> ExpressionFeatures::parse(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail(ErrorCode::kCorrupt, "a feature table of ", text.size(),
                " bytes is over the limit of ", kMaxText);
  }
  ExpressionFeatures out;
  std::string of_space;
  for (const std::string_view line : split(text, '\n')) {
    const bool is_code = line.substr(0, kCode.size()) == kCode;
    if (!is_code && line.substr(0, kColumn.size()) != kColumn) {
      of_space += concat(line, "\n");
      continue;
    }
    FORETUNE_TRY(out.columns.emplace_back(),
                 parse_column(line.substr(is_code ? kCode.size() : kColumn.size()), is_code));
  }
  FORETUNE_TRY(SpaceDefinition space, SpaceDefinition::parse(of_space));
  if (!space.domains.empty() || !space.constraints.empty() || !space.canonical.empty() ||
      space.schema.version != 1) {
    return fail(ErrorCode::kCorrupt,
                "a feature table has names of parameters and columns, and nothing else");
  }
  out.name = std::move(space.schema.name);
  out.problem_type = space.problem_type;
  out.parameters = std::move(space.schema.parameters);
  return out;
}

Result<std::unique_ptr<const FeatureTable>> make_expression_table(
    const ExpressionFeatures& features) {
  if (find_problem_schema(features.problem_type) == nullptr || features.columns.empty() ||
      features.columns.size() > kMaxColumns) {
    return fail(ErrorCode::kInvalidArgument, "a feature table has a type of problem and 1 to ",
                kMaxColumns, " columns");
  }
  std::unordered_set<std::string_view> names;
  for (const ExpressionColumn& column : features.columns) {
    if (!names.insert(column.name).second) {
      return fail(ErrorCode::kInvalidArgument, "the feature table ", quoted(features.name, 40),
                  " has the column ", quoted(column.name, 40), " twice");
    }
  }
  const Result<ExpressionFeatures> again = ExpressionFeatures::parse(features.text());
  if (!again || *again != features) {
    return fail(ErrorCode::kInvalidArgument, "the feature table ", quoted(features.name, 40),
                " has a name with blanks or brackets, or a text with a line break or ' # '",
                again ? "" : concat(": ", again.error().message));
  }
  return ExpressionTable::create(features);
}

Result<const FeatureTable*> kept_expression_table(std::string_view text) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const FeatureTable>, std::less<>> kept;
  static std::size_t bytes = 0;
  const std::lock_guard lock(mutex);
  if (const auto found = kept.find(text); found != kept.end()) {
    return found->second.get();
  }
  if (text.size() > kMaxKept - bytes) {
    return fail(ErrorCode::kUnsupported, "the ", kept.size(),
                " feature tables of models in this process leave no room for another");
  }
  FORETUNE_TRY(const ExpressionFeatures features, ExpressionFeatures::parse(text));
  FORETUNE_TRY(std::unique_ptr<const FeatureTable> table, make_expression_table(features));
  bytes += text.size();
  return kept.emplace(text, std::move(table)).first->second.get();
}

}  // namespace foretune
