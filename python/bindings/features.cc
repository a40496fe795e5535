// Feature tables in Python: listed, computed, and defined by expressions or by functions
// (foretune.register_features), which are called with arrays.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/families/families.h"
#include "foretune/features/expression_table.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/config_words.h"
#include "foretune/space/schemas/triton.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using NamedLabels = std::vector<std::pair<std::string, std::vector<std::string>>>;
// Name, expression or kind, description, is_categorical, may_be_missing.
using Columns = std::vector<std::tuple<std::string, std::string, std::string, bool, bool>>;

constexpr std::array<std::string_view, 3> kKinds{"problem", "config", "both"};

ProblemType type_named(const std::string& name) {
  const ProblemSchema* const schema = find_problem_schema(name);
  if (schema == nullptr) {
    raise({ErrorCode::kNotFound, concat("there is no problem type ", quoted(name, 40))});
  }
  return schema->type;
}

std::vector<Parameter> parameters_of(const NamedLabels& given) {
  std::vector<Parameter> out;
  for (const auto& [name, labels] : given) {
    out.push_back({.name = name, .labels = labels});
  }
  return out;
}

nb::dict fields_of(const Problem& problem) {
  nb::dict out;
  const std::span<const ProblemField> fields = problem.schema().fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const nb::object name = nb::cast(std::string(fields[i].name));
    out[name] =
        fields[i].labels.empty() ? nb::cast(problem.field(i)) : nb::cast(problem.field_text(i));
  }
  return out;
}

nb::dict facts_of(const Hardware& hardware) {
  nb::dict out;
  for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
    const auto fact = static_cast<HardwareValue>(i);
    out[nb::cast(std::string(to_string(fact)))] = hardware.get(fact);
  }
  return out;
}

// A type of problems and a schema of configs that a table describes.
struct Fit {
  ProblemType type{};
  ConfigSchema schema;
};

std::atomic<bool> has_function_tables = false;

// Computes its columns by functions that foretune._features keeps, because they die with the
// interpreter and the list of tables outlives it.
class FunctionTable final : public FeatureTable {
 public:
  FunctionTable(std::string name, ProblemType type, std::vector<Parameter> parameters,
                const Columns& columns)
      : name_(std::move(name)), type_(type), parameters_(std::move(parameters)) {
    for (const auto& [title, kind, description, is_categorical, may_be_missing] : columns) {
      const std::string_view& kept_title = texts_.emplace_back(title);
      const std::string_view& kept_description = texts_.emplace_back(description);
      columns_.push_back(
          {.name = kept_title,
           .kind = kind == "problem" ? FeatureKind::kProblem : FeatureKind::kInteraction,
           .description = kept_description,
           .is_categorical = is_categorical,
           .may_be_missing = may_be_missing});
    }
    std::stable_sort(columns_.begin(), columns_.end(),
                     [](const auto& one, const auto& other) { return one.kind < other.kind; });
  }

  std::string_view name() const override { return name_; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == type_ && schema.kind == SchemaKind::kParametric &&
                   schema.parameters == parameters_
               ? Support::yes()
               : Support::no(name_, " describes other problems or configs than those of ",
                             schema.name);
  }
  [[nodiscard]] Fit own_fit() const { return {type_, {.name = "", .parameters = parameters_}}; }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    if (out.empty()) {
      return;
    }
    const auto ask = [&](const nb::object& features) {
      return features.attr("problem_values")(name_, fields_of(problem), facts_of(hardware));
    };
    call(ask, out, [&](std::span<const double> values) {
      std::copy(values.begin(), values.end(), out.begin());
    });
  }
  void config_row(std::span<const std::int32_t> /*words*/,
                  std::span<double> /*out*/) const override {}
  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const std::size_t columns = feature_count(*this, FeatureKind::kInteraction);
    if (columns == 0 || configs.empty()) {
      return;
    }
    std::vector<std::int32_t> words;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::span<const std::int32_t> config = configs[i];
      words.insert(words.end(), config.begin(), config.end());
    }
    const auto ask = [&](const nb::object& features) {
      return features.attr("pair_values")(
          name_, fields_of(problem), matrix(std::move(words), configs.size(), parameters_.size()),
          facts_of(hardware));
    };
    call(ask, out, [&](std::span<const double> values) {
      for (std::size_t i = 0; i < configs.size(); ++i) {
        for (std::size_t c = 0; c < columns; ++c) {
          out[c * stride + i] = values[i * columns + c];
        }
      }
    });
  }

 private:
  // Calls the module's function and takes the values it returns. After an exception all values are
  // 0, and no function is called again until the caller has raised it.
  template <class Ask, class Take>
  static void call(const Ask& ask, std::span<double> out, const Take& take) {
    const nb::gil_scoped_acquire acquired;
    if (!CallbackErrors::is_pending()) {
      try {
        const auto values =
            nb::cast<Doubles>(nb::object(ask(nb::module_::import_("foretune._features"))));
        take(std::span(values.data(), values.size()));
        return;
      } catch (...) {
        CallbackErrors::keep(std::current_exception());
      }
    }
    std::fill(out.begin(), out.end(), 0.0);
  }

  std::string name_;
  ProblemType type_;
  std::vector<Parameter> parameters_;
  std::deque<std::string> texts_;  // that columns_ refer to
  std::vector<FeatureInfo> columns_;
};

// Returns the fit of a table that was defined for certain parameters; nothing for other tables.
std::vector<Fit> own_fits(const FeatureTable& table) {
  if (const auto* const own = dynamic_cast<const FunctionTable*>(&table)) {
    return {own->own_fit()};
  }
  if (!table.definition().empty()) {
    if (auto features = ExpressionFeatures::parse(table.definition())) {
      return {
          {features->problem_type, {.name = "", .parameters = std::move(features->parameters)}}};
    }
  }
  return {};
}

// Returns the schemas of the families and of the formats that this build reads.
std::vector<ConfigSchema> known_schemas() {
  std::vector<ConfigSchema> out{ck_gemm_schema(), ck_grouped_conv_schema(), triton_gemm_schema()};
  for (const FamilyEntry* const entry : families()) {
    if (const auto family = create_detached_family(entry->name, {})) {
      out.push_back((*family)->info().config_schema);
    }
  }
  return out;
}

// Returns the combinations that the table describes, those of its own definition first.
std::vector<Fit> fits_of(const FeatureTable& table, std::span<const ConfigSchema> schemas) {
  std::vector<Fit> out = own_fits(table);
  for (const ProblemTypeInfo* const type : problem_types()) {
    for (const ConfigSchema& schema : schemas) {
      if (table.supports(type->schema.type, schema)) {
        out.push_back({type->schema.type, schema});
      }
    }
  }
  return out;
}

nb::dict describe(const FeatureTable& table, std::span<const ConfigSchema> schemas) {
  nb::dict out;
  out["name"] = std::string(table.name());
  out["id"] = feature_table_id(table);
  out["definition"] = std::string(table.definition());
  nb::list columns;
  for (const FeatureInfo& column : table.columns()) {
    columns.append(nb::make_tuple(
        std::string(column.name), std::string(kKinds[static_cast<std::size_t>(column.kind)]),
        std::string(column.description), column.is_categorical, column.may_be_missing));
  }
  out["columns"] = columns;
  nb::list expressions;
  if (const auto features = ExpressionFeatures::parse(table.definition())) {
    for (const ExpressionColumn& column : features->columns) {
      expressions.append(nb::make_tuple(column.name, column.expression));
    }
  }
  out["expressions"] = expressions;
  nb::list fits;
  for (const Fit& fit : fits_of(table, schemas)) {
    nb::list parameters;
    for (const Parameter& parameter : fit.schema.parameters) {
      parameters.append(parameter.name);
    }
    fits.append(nb::make_tuple(std::string(find_problem_schema(fit.type)->name), fit.schema.name,
                               parameters));
  }
  out["fits"] = fits;
  return out;
}

nb::list list_tables() {
  const std::vector<ConfigSchema> schemas = without_lock(&known_schemas);
  nb::list out;
  for (const FeatureTable* const table : feature_tables()) {
    out.append(describe(*table, schemas));
  }
  return out;
}

// Says for which device and configs features are computed: those of a data set or a model, a known
// device by its name, or this CPU without measured peaks.
struct Target {
  Fingerprint device;
  std::vector<ConfigSchema> schemas;
};

Target target_of(const nb::object& device) {
  if (nb::isinstance<Dataset>(device)) {
    const DatasetHeader& header = nb::cast<const Dataset&>(device).header();
    return {header.fingerprint, {header.config_schema}};
  }
  if (nb::isinstance<Model>(device)) {
    const auto& model = nb::cast<const Model&>(device);
    return {model.fingerprint, {model.config_schema}};
  }
  return {device.is_none() ? cpu_fingerprint(read_cpu_facts(), {})
                           : checked(known_device(nb::cast<std::string>(device))),
          without_lock(&known_schemas)};
}

// Parses the configs by the first schema that the table describes and that fits all of them.
Result<ConfigList> parse_configs(const FeatureTable& table, ProblemType type,
                                 std::span<const ConfigSchema> schemas,
                                 const std::vector<std::string>& texts) {
  tl::unexpected<Error> refusal =
      fail(ErrorCode::kMismatch, "the feature table ", table.name(), " describes no configs of ",
           find_problem_schema(type)->name, " problems that are known here");
  for (const Fit& fit : fits_of(table, schemas)) {
    if (fit.type != type) {
      continue;
    }
    ConfigList list(fit.schema);
    bool is_parsed = true;
    for (const std::string& text : texts) {
      const Result<Config> config = parse_config(fit.schema, text);
      if (!config) {
        refusal = tl::unexpected<Error>(config.error());
        is_parsed = false;
        break;
      }
      list.add(config->words.view());
    }
    if (is_parsed) {
      return list;
    }
  }
  return refusal;
}

// Writes the rows of one problem with some configs, [configs][columns].
void write_rows(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                ConfigWords configs, std::span<float> out) {
  const std::size_t columns = table.columns().size();
  const std::size_t of_problem = feature_count(table, FeatureKind::kProblem);
  const std::size_t of_config = feature_count(table, FeatureKind::kConfig);
  const std::size_t count = configs.size();
  std::vector<double> row(of_problem + of_config);
  std::vector<double> both((columns - row.size()) * count);
  table.problem_row(problem, hardware, std::span(row).first(of_problem));
  table.interaction_columns(problem, hardware, configs, both, count);
  for (std::size_t i = 0; i < count; ++i) {
    table.config_row(configs[i], std::span(row).subspan(of_problem));
    for (std::size_t c = 0; c < columns; ++c) {
      out[i * columns + c] =
          static_cast<float>(c < row.size() ? row[c] : both[(c - row.size()) * count + i]);
    }
  }
}

Result<std::vector<float>> compute(const FeatureTable& table, const Target& target,
                                   const std::vector<std::string>& problems,
                                   const std::vector<std::string>& configs, bool is_pairs) {
  const Hardware hardware = engine_fingerprint(table, target.device).hardware;
  const std::size_t columns = table.columns().size();
  const std::size_t per_problem = is_pairs ? 1 : configs.size();
  std::vector<float> out(problems.size() * per_problem * columns);
  ConfigList parsed((ConfigSchema()));
  ProblemType parsed_for{};
  for (std::size_t p = 0; p < problems.size() && per_problem > 0; ++p) {
    FORETUNE_TRY(const Problem problem, Problem::parse(problems[p]));
    if (p == 0 || problem.type() != parsed_for) {
      FORETUNE_TRY(parsed, parse_configs(table, problem.type(), target.schemas, configs));
      parsed_for = problem.type();
    }
    const ConfigWords words = parsed;
    const ConfigWords asked = is_pairs ? ConfigWords::of_one(words[p]) : words;
    write_rows(table, problem, hardware, asked,
               std::span(out).subspan(p * per_problem * columns, per_problem * columns));
  }
  return out;
}

// Returns [problem, config, column], or [pair, column].
nb::object compute_features(const std::string& name, const std::vector<std::string>& problems,
                            const std::vector<std::string>& configs, const nb::object& device,
                            bool is_pairs) {
  const FeatureTable& table = *checked(find_feature_table(name));
  const Target target = target_of(device);
  std::vector<float> values =
      checked(with_callbacks([&] { return compute(table, target, problems, configs, is_pairs); }));
  const std::size_t columns = table.columns().size();
  return is_pairs ? nb::cast(matrix(std::move(values), problems.size(), columns))
                  : nb::cast(owned_array<3>(std::move(values),
                                            {problems.size(), configs.size(), columns}));
}

// Adds the table. One with the same definition is there already when a program defines it twice.
void add_table(std::unique_ptr<const FeatureTable> table) {
  const auto known = find_feature_table(table->name());
  if (!table->definition().empty() && known && (*known)->definition() == table->definition()) {
    return;
  }
  checked(register_feature_table(std::move(table)));
}

void register_expressions(const std::string& name, const std::string& problem_type,
                          const NamedLabels& parameters, const Columns& columns) {
  ExpressionFeatures features{.name = name,
                              .problem_type = type_named(problem_type),
                              .parameters = parameters_of(parameters),
                              .columns = {}};
  for (const auto& [title, expression, description, is_categorical, may_be_missing] : columns) {
    features.columns.push_back({.name = title,
                                .expression = expression,
                                .description = description,
                                .is_categorical = is_categorical});
  }
  add_table(checked(make_expression_table(features)));
}

void register_functions(const std::string& name, const std::string& problem_type,
                        const NamedLabels& parameters, const Columns& columns) {
  add_table(std::make_unique<const FunctionTable>(name, type_named(problem_type),
                                                  parameters_of(parameters), columns));
  has_function_tables.store(true, std::memory_order_release);
}

}  // namespace

bool may_call_python(const Model& model) {
  if (!has_function_tables.load(std::memory_order_acquire)) {
    return false;
  }
  const std::span<const FeatureTable* const> tables = feature_tables();
  return std::any_of(tables.begin(), tables.end(), [&](const FeatureTable* table) {
    return table->name() == model.feature_table &&
           dynamic_cast<const FunctionTable*>(table) != nullptr;
  });
}

void bind_features(nb::module_& module) {
  module.def("feature_tables", &list_tables);
  module.def("compute_features", &compute_features, nb::arg("name"), nb::arg("problems"),
             nb::arg("configs"), nb::arg("device").none(), nb::arg("is_pairs"));
  module.def("register_expressions", &register_expressions, nb::arg("name"),
             nb::arg("problem_type"), nb::arg("parameters"), nb::arg("columns"));
  module.def("register_functions", &register_functions, nb::arg("name"), nb::arg("problem_type"),
             nb::arg("parameters"), nb::arg("columns"));
}

}  // namespace foretune::python
