#include "foretune/features/feature_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"
#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/gemm/gemm_weights.h"
#include "foretune/problem/payload.h"

namespace foretune {

std::size_t feature_count(const FeatureTable& table, FeatureKind kind) {
  std::size_t count = 0;
  for (const FeatureInfo& column : table.columns()) {
    count += column.kind == kind ? 1U : 0U;
  }
  return count;
}

std::uint64_t feature_table_id(const FeatureTable& table) {
  std::uint64_t hash = hash64(table.name());
  if (!table.definition().empty()) {
    hash = hash64(table.definition(), hash);
  }
  for (const FeatureInfo& column : table.columns()) {
    if (column.since > 1) {
      continue;
    }
    hash = hash64(column.name, hash_combine(hash, static_cast<std::uint64_t>(column.kind)));
  }
  return hash;
}

void feature_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                 const Config& config, std::span<double> out) {
  const std::size_t of_problem = feature_count(table, FeatureKind::kProblem);
  const std::size_t of_config = feature_count(table, FeatureKind::kConfig);
  FORETUNE_CHECK(out.size() == table.columns().size());
  table.problem_row(problem, hardware, out.first(of_problem));
  table.config_row(config.words.view(), out.subspan(of_problem, of_config));
  table.interaction_columns(problem, hardware, ConfigWords::of_one(config.words.view()),
                            out.subspan(of_problem + of_config), 1);
}

std::vector<std::uint16_t> foreign_order(const FeatureTable& table) {
  const std::span<const FeatureInfo> columns = table.columns();
  if (columns.empty() || columns[0].foreign_position < 0) {
    return {};
  }
  std::vector<std::uint16_t> order(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    order[static_cast<std::size_t>(columns[i].foreign_position)] = static_cast<std::uint16_t>(i);
  }
  return order;
}

Result<std::vector<std::uint16_t>> find_columns(const FeatureTable& table,
                                                std::span<const std::string_view> names) {
  const std::span<const FeatureInfo> columns = table.columns();
  std::vector<std::uint16_t> out;
  std::vector<std::string> unknown;
  for (const std::string_view name : names) {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const FeatureInfo& info) { return info.name == name; });
    if (found == columns.end()) {
      unknown.push_back(quoted(name, 40));
    } else {
      out.push_back(static_cast<std::uint16_t>(found - columns.begin()));
    }
  }
  if (!unknown.empty()) {
    return fail(ErrorCode::kMismatch, "the feature table ", table.name(), " has no column ",
                join(unknown, ", "));
  }
  return out;
}

namespace {

std::vector<const FeatureTable*> built_in_tables() {
#define FORETUNE_FEATURE_TABLE(name) &features_internal::name##_table(),
  std::vector<const FeatureTable*> list{
#include "foretune/features/tables.inc"
  };
#undef FORETUNE_FEATURE_TABLE
  const std::span<const FeatureTable* const> of_fields = features_internal::fields_null_tables();
  list.insert(list.end(), of_fields.begin(), of_fields.end());
  list.push_back(&features_internal::sequence_words_table());
  return list;
}

Registry<FeatureTable>& tables() {
  static Registry<FeatureTable> all(built_in_tables());
  return all;
}

}  // namespace

std::span<const FeatureTable* const> feature_tables() { return tables().rows(); }

Status register_feature_table(std::unique_ptr<const FeatureTable> table) {
  const std::string name(table->name());
  return tables().add(std::move(table),
                      [&](const FeatureTable& known) { return known.name() == name; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a feature table ", quoted(name, 40),
                    " already");
}

Result<const FeatureTable*> find_feature_table(std::string_view name) {
  std::vector<std::string> names;
  for (const FeatureTable* table : feature_tables()) {
    if (table->name() == name) {
      return table;
    }
    names.emplace_back(table->name());
  }
  return fail(ErrorCode::kNotFound, "there is no feature table '", name.substr(0, 60),
              "' in this version (known: ", join(names, ", "), ")");
}

namespace features_internal {

GemmView GemmView::of(const Problem& problem, const Hardware& hardware) {
  const auto field = [&](GemmField index) {
    return static_cast<double>(problem.field(static_cast<std::size_t>(index)));
  };
  const auto operation =
      static_cast<GemmOperation>(problem.field(static_cast<std::size_t>(GemmField::kOperation)));
  GemmView view;
  view.m = field(GemmField::kM);
  view.n = field(GemmField::kN);
  view.k = field(GemmField::kK);
  view.batch = field(GemmField::kBatch);
  const auto dtype =
      static_cast<DataType>(problem.field(static_cast<std::size_t>(GemmField::kDtype)));
  view.bytes_per_element = foretune::bytes_per_element(dtype);
  view.on_matrix_units = dtype != DataType::kF32;
  view.is_addmm = has_bias(operation) ? 1 : 0;
  view.is_bmm = operation == GemmOperation::kBmm ? 1 : 0;
  const auto layout =
      static_cast<GemmLayout>(problem.field(static_cast<std::size_t>(GemmField::kLayout)));
  view.a_by_columns = foretune::a_by_columns(layout);
  view.b_by_columns = foretune::b_by_columns(layout);
  // Replaces unknown values by harmless ones: a ratio to 1 instead of a division by zero.
  const auto known = [&](HardwareValue value, double fallback) {
    const double number = hardware.get(value);
    return number > 0 ? number : fallback;
  };
  view.cores = known(HardwareValue::kCores, 1);
  view.vector_bytes = hardware.get(HardwareValue::kVectorBytes);
  view.l1_bytes = known(HardwareValue::kL1Bytes, 32.0 * 1024);
  view.l2_bytes = known(HardwareValue::kL2Bytes, 1024.0 * 1024);
  const double tensor = hardware.get(HardwareValue::kTensorPeakGflops);
  view.peak_flops_per_ns = tensor > 0 ? tensor : known(HardwareValue::kFmaPeakGflops, 50);
  view.shared_bytes = hardware.get(HardwareValue::kL1Bytes);
  view.threads_per_core = hardware.get(HardwareValue::kThreadsPerCore);
  view.register_file_bytes = hardware.get(HardwareValue::kRegisterFileBytes);
  view.bytes_per_ns = known(HardwareValue::kBandwidthGbs, 10);
  return view;
}

std::span<const FeatureInfo> gemm_problem_columns() {
  static constexpr std::array kColumns{
      of_problem("log2_m", "log2 of the rows of C"),
      of_problem("log2_n", "log2 of the columns of C"),
      of_problem("log2_k", "log2 of the depth"),
      of_problem("log2_batch", "log2 of the number of products"),
      of_problem("is_addmm", "1 when a bias is added"),
      of_problem("is_bmm", "1 for batched products"),
      of_problem("element_bytes", "bytes of an element"),
      of_problem("log2_flops", "log2 of 2 m n k batch"),
      of_problem("log2_intensity", "log2 of flops per byte of A, B and C"),
      of_problem("log2_m_over_n", "log2 of m / n"),
      of_problem("log2_k_over_mn", "log2 of k / sqrt(m n)"),
      of_problem("log2_b_over_l2", "log2 of the bytes of B over the L2 cache"),
      of_problem("log2_bytes_over_l2", "log2 of the bytes of A, B and C over the L2 cache"),
      of_problem("log2_roofline_ns",
                 "log2 of the roofline time in ns (Williams, Waterman and Patterson 2009)"),
      of_problem("cores", "cores or multiprocessors of the device"),
  };
  return kColumns;
}

void gemm_problem_row(const GemmView& view, std::span<double> out) {
  const double log2_m = std::log2(view.m);
  const double log2_n = std::log2(view.n);
  const double log2_k = std::log2(view.k);
  std::size_t i = 0;
  const auto put = [&](double value) { out[i++] = value; };
  put(log2_m);
  put(log2_n);
  put(log2_k);
  put(std::log2(view.batch));
  put(view.is_addmm);
  put(view.is_bmm);
  put(view.bytes_per_element);
  put(std::log2(view.flops()));
  put(std::log2(view.flops() / view.bytes()));
  put(log2_m - log2_n);
  put(log2_k - 0.5 * (log2_m + log2_n));
  put(std::log2(view.k * view.n * view.bytes_per_element / view.l2_bytes));
  put(std::log2(view.bytes() / view.l2_bytes));
  put(std::log2(std::max(view.flops() / view.peak_flops_per_ns, view.bytes() / view.bytes_per_ns)));
  put(view.cores);
}

std::span<const FeatureInfo> gemm_storage_columns() {
  static constexpr std::array kColumns{
      of_problem("a_by_columns", "1 when A is stored by columns"),
      of_problem("b_by_columns", "1 when B is stored by columns"),
      of_problem("on_matrix_units", "1 unless the type is f32"),
      of_problem("alignment_a",
                 "log2 of the largest power of 2, at most 2^14, that divides the bytes from one "
                 "row of A (column, where stored by columns) to the next"),
      of_problem("alignment_b", "the same of B"),
      of_problem("alignment_c", "the same of C"),
  };
  return kColumns;
}

// The largest alignment of rows and columns, as a power of 2.
constexpr int kMaxAlignment = 14;

void gemm_storage_row(const GemmView& view, std::span<double> out) {
  const auto alignment = [&view](double elements) {
    const auto bytes = static_cast<std::uint64_t>(elements * view.bytes_per_element);
    return static_cast<double>(std::min(std::countr_zero(bytes), kMaxAlignment));
  };
  out[0] = view.a_by_columns ? 1 : 0;
  out[1] = view.b_by_columns ? 1 : 0;
  out[2] = view.on_matrix_units ? 1 : 0;
  out[3] = alignment(view.a_by_columns ? view.m : view.k);
  out[4] = alignment(view.b_by_columns ? view.k : view.n);
  out[5] = alignment(view.n);
}

namespace {

constexpr FeatureInfo weights_column(std::string_view name, std::string_view description) {
  return {.name = name,
          .kind = FeatureKind::kProblem,
          .description = description,
          .since = 2,
          .may_be_missing = true};
}

}  // namespace

std::span<const FeatureInfo> gemm_weights_columns() {
  static constexpr std::array kColumns{
      weights_column("weights_zeros", "share of zeros in the file that B is; missing without one"),
      weights_column("weights_subnormals", "share of subnormal values there"),
      weights_column("weights_log2_largest", "log2 of the largest magnitude there"),
      weights_column("weights_log2_smallest", "log2 of the smallest magnitude there but zero"),
      FeatureInfo{.name = "weights_constant",
                  .kind = FeatureKind::kProblem,
                  .description = "1 when B may be packed once for many products",
                  .since = 2},
  };
  return kColumns;
}

void gemm_weights_row(const Problem& problem, std::span<double> out) {
  constexpr std::array kOrder{GemmWeightsValue::kZeros, GemmWeightsValue::kSubnormals,
                              GemmWeightsValue::kLog2Largest, GemmWeightsValue::kLog2Smallest};
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    out[i] = described_value(problem, static_cast<std::size_t>(kOrder[i]));
  }
  out[kOrder.size()] =
      static_cast<double>(problem.field(static_cast<std::size_t>(GemmField::kWeights)));
}

bool has_parameters(const ConfigSchema& schema, const ConfigSchema& expected) {
  return schema.kind == SchemaKind::kParametric &&
         std::equal(schema.parameters.begin(), schema.parameters.end(), expected.parameters.begin(),
                    expected.parameters.end(), [](const Parameter& one, const Parameter& other) {
                      return one.name == other.name;
                    });
}

std::vector<FeatureInfo> joined(std::initializer_list<std::span<const FeatureInfo>> parts) {
  std::vector<FeatureInfo> out;
  for (const std::span<const FeatureInfo> part : parts) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

namespace {

// Returns the columns beyond those of all GEMM tables.
std::span<const FeatureInfo> further_columns(GemmProblemColumns columns) {
  switch (columns) {
    case GemmProblemColumns::kWithStorage:
      return gemm_storage_columns();
    case GemmProblemColumns::kWithWeights:
      return gemm_weights_columns();
    case GemmProblemColumns::kCommon:
      break;
  }
  return {};
}

}  // namespace

GemmTable::GemmTable(std::string_view name, const ConfigSchema& schema,
                     std::span<const FeatureInfo> config_columns,
                     std::span<const FeatureInfo> interaction_columns,
                     GemmProblemColumns problem_columns)
    : name_(name),
      schema_(schema),
      problem_columns_(problem_columns),
      columns_(joined({gemm_problem_columns(), further_columns(problem_columns), config_columns,
                       interaction_columns})) {}

Support GemmTable::supports(ProblemType type, const ConfigSchema& schema) const {
  if (type != kGemmProblem) {
    return Support::no(name_, " describes gemm problems only");
  }
  if (has_parameters(schema, schema_)) {
    return Support::yes();
  }
  std::string expected;
  for (const Parameter& parameter : schema_.parameters) {
    expected += concat(expected.empty() ? "" : " ", parameter.name);
  }
  return Support::no(name_, " describes configs of the parameters ", expected, ", not those of ",
                     schema.name);
}

void GemmTable::problem_row(const Problem& problem, const Hardware& hardware,
                            std::span<double> out) const {
  const GemmView view = GemmView::of(problem, hardware);
  gemm_problem_row(view, out.first(gemm_problem_columns().size()));
  const std::span<double> further = out.subspan(gemm_problem_columns().size());
  if (problem_columns_ == GemmProblemColumns::kWithStorage) {
    gemm_storage_row(view, further);
  } else if (problem_columns_ == GemmProblemColumns::kWithWeights) {
    gemm_weights_row(problem, further);
  }
}

void GemmTable::interaction_columns(const Problem& problem, const Hardware& hardware,
                                    ConfigWords configs, std::span<double> out,
                                    std::size_t stride) const {
  const GemmView view = GemmView::of(problem, hardware);
  ColumnWriter writer(out, stride);
  candidates(view, configs, writer);
}

}  // namespace features_internal

}  // namespace foretune
