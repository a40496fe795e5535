// Features of the simulated family for a problem type without a table of its own: the type's
// fields, the parameters, and how the parameters divide the sizes that the formula looks at.
#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/schemas/simulated.h"

namespace foretune::features_internal {
namespace {

constexpr std::size_t kMainSizes = 3;

class FieldsNullTable final : public FeatureTable {
 public:
  explicit FieldsNullTable(const ProblemTypeInfo& type)
      : type_(type), name_(concat(type.schema.name, "-null")) {
    const std::span<const ProblemField> fields = type.schema.fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool is_label = !fields[i].labels.empty();
      add(is_label ? std::string(fields[i].name) : concat("log2_", fields[i].name),
          FeatureKind::kProblem,
          is_label ? "number of the label" : "log2 of one more than the size",
          {.is_categorical = is_label, .since = fields[i].since});
    }
    add("log2_flops", FeatureKind::kProblem, "log2 of one more than the operations", {});
    for (const Parameter& block : null_schema().parameters) {
      add(concat("log2_", block.name), FeatureKind::kConfig, "log2 of the parameter", {});
    }
    for (std::size_t i = 0; i < kMainSizes; ++i) {
      add(concat("log2_", fields[main_size(i)].name, "_over_", null_schema().parameters[i].name),
          FeatureKind::kInteraction, "log2 of a size over a parameter", {});
    }
    // Later fields stand at the end of their kind.
    std::stable_sort(columns_.begin(), columns_.end(),
                     [](const FeatureInfo& a, const FeatureInfo& b) {
                       return std::pair(a.kind, a.since) < std::pair(b.kind, b.since);
                     });
  }

  std::string_view name() const override { return name_; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    if (type != type_.schema.type) {
      return Support::no(name_, " describes ", type_.schema.name, " problems");
    }
    return has_parameters(schema, null_schema())
               ? Support::yes()
               : Support::no(name_, " describes configs with block_m, block_n, block_k, unroll");
  }

  void problem_row(const Problem& problem, const Hardware& /*hardware*/,
                   std::span<double> out) const override {
    const std::span<const ProblemField> fields = type_.schema.fields;
    std::size_t place = 0;
    const auto put = [&](std::uint32_t since_from, std::uint32_t since_to) {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].since >= since_from && fields[i].since <= since_to) {
          const auto value = static_cast<double>(problem.field(i));
          out[place++] = fields[i].labels.empty() ? std::log2(value + 1) : value;
        }
      }
    };
    put(1, 1);
    const std::optional<ProblemWork> work = problem_work(problem);
    out[place++] = std::log2((work ? work->flops : 0) + 1);
    for (std::uint32_t since = 2; place < out.size(); ++since) {
      put(since, since);
    }
  }
  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    for (std::size_t i = 0; i < words.size(); ++i) {
      out[i] = std::log2(static_cast<double>(words[i]));
    }
  }
  void interaction_columns(const Problem& problem, const Hardware& /*hardware*/,
                           ConfigWords configs, std::span<double> out,
                           std::size_t stride) const override {
    for (std::size_t i = 0; i < kMainSizes; ++i) {
      const auto size = static_cast<double>(problem.field(main_size(i)));
      for (std::size_t c = 0; c < configs.size(); ++c) {
        out[i * stride + c] = std::log2(size / configs[c][i]);
      }
    }
  }

 private:
  struct Extra {
    bool is_categorical = false;
    std::uint32_t since = 1;
  };
  void add(std::string name, FeatureKind kind, std::string_view description, Extra extra) {
    names_.push_back(std::move(name));
    columns_.push_back({.name = names_.back(),
                        .kind = kind,
                        .description = description,
                        .is_categorical = extra.is_categorical,
                        .since = extra.since});
  }
  [[nodiscard]] std::size_t main_size(std::size_t i) const {
    return type_.drawn_sizes[std::min(i, type_.drawn_sizes.size() - 1)].field;
  }

  const ProblemTypeInfo& type_;
  std::string name_;
  std::deque<std::string> names_;  // whose places stay
  std::vector<FeatureInfo> columns_;
};

}  // namespace

std::span<const FeatureTable* const> fields_null_tables() {
  static const std::vector<std::unique_ptr<FieldsNullTable>> tables = [] {
    std::vector<std::unique_ptr<FieldsNullTable>> made;
    for (const ProblemTypeInfo* type : problem_types()) {
      if (!type->drawn_sizes.empty() &&
          concat(type->schema.name, "-null") != gemm_null_table().name()) {
        made.push_back(std::make_unique<FieldsNullTable>(*type));
      }
    }
    return made;
  }();
  static const std::vector<const FeatureTable*> pointers = [] {
    std::vector<const FeatureTable*> list;
    for (const auto& table : tables) {
      list.push_back(table.get());
    }
    return list;
  }();
  return pointers;
}

}  // namespace foretune::features_internal
