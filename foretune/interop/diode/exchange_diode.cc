// torch-diode's documents (github.com/exclamaforte/diode, formats as read from its sources and its
// shipped sample): hardware -> operation -> solution, the keys of the last being JSON text of a
// shape. The older schema adds names and writes each config as JSON text. Times are milliseconds.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/exchange_json.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {

using dataset_internal::ImportCounter;
using dataset_internal::integer_at;
using dataset_internal::Json;
using dataset_internal::member;
using dataset_internal::text_at;

namespace {

struct DiodeParameter {
  std::string theirs;
  std::string ours;
  bool is_flag;
};

std::string upper(std::string text) {
  for (char& letter : text) {
    letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return text;
}

// Returns the parameters of diode-triton before the type of the sums. Their documents have the
// flags in capitals.
const std::vector<DiodeParameter>& diode_parameters() {
  static const std::vector<DiodeParameter> kParameters = [] {
    std::vector<DiodeParameter> out;
    for (const Parameter& parameter : diode_triton_schema().parameters) {
      const bool is_flag = !parameter.labels.empty();
      out.push_back({is_flag ? upper(parameter.name) : parameter.name, parameter.name, is_flag});
    }
    out.pop_back();
    return out;
  }();
  return kParameters;
}

const Parameter& accumulator_parameter() { return diode_triton_schema().parameters.back(); }

struct DtypeName {
  const char* theirs;
  DataType ours;
};
constexpr std::array<DtypeName, 7> kDtypes{{{"float32", DataType::kF32},
                                            {"float16", DataType::kF16},
                                            {"bfloat16", DataType::kBf16},
                                            {"float64", DataType::kF64},
                                            {"float8_e4m3fn", DataType::kF8e4m3},
                                            {"float8_e5m2", DataType::kF8e5m2},
                                            {"int8", DataType::kI8}}};

std::optional<DataType> dtype_at(const Json& object, const char* key) {
  // Their MessagePack wraps data types.
  const Json* value = member(object, key);
  const auto wrapped = value == nullptr ? std::nullopt : text_at(*value, "__torch_dtype__");
  const auto text = wrapped ? wrapped : text_at(object, key);
  if (!text) {
    return std::nullopt;
  }
  static constexpr std::string_view kPrefix = "torch.";
  const std::string_view name = std::string_view(*text).substr(0, kPrefix.size()) == kPrefix
                                    ? std::string_view(*text).substr(kPrefix.size())
                                    : std::string_view(*text);
  for (const DtypeName& known : kDtypes) {
    if (name == known.theirs) {
      return known.ours;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace dataset_internal {

bool is_transposed(const Json& shape, const Problem& problem) {
  const Json* size = member(shape, "out_size");
  if (size == nullptr || !size->is_array() || size->size() != 3) {
    return false;
  }
  const std::int64_t m = problem.field(static_cast<std::size_t>(GemmField::kM));
  const std::int64_t n = problem.field(static_cast<std::size_t>(GemmField::kN));
  return m != n && integer_of((*size)[1]) == std::optional(n) &&
         integer_of((*size)[2]) == std::optional(m);
}
// They draw an operation per shape whatever its batch is, so a batch
// above 1 is what makes it a bmm. Their operations are called as ours.
Result<Problem> diode_problem(const Json& shape, std::string_view operation) {
  if (!shape.is_object()) {
    return fail(ErrorCode::kCorrupt, "a shape that is not an object");
  }
  const auto m = integer_at(shape, "M");
  const auto n = integer_at(shape, "N");
  const auto k = integer_at(shape, "K");
  const auto batch = integer_at(shape, "B");
  const auto dtype = dtype_at(shape, "M_dtype");
  if (!m || !n || !k || (member(shape, "B") != nullptr && !batch)) {
    return fail(ErrorCode::kCorrupt, "a shape without M, N or K, or with a B that is no integer");
  }
  if (!dtype) {
    return fail(ErrorCode::kUnsupported, "a shape of a data type that is not known here");
  }
  if (member(shape, "K_dtype") != nullptr && dtype_at(shape, "K_dtype") != dtype) {
    return fail(ErrorCode::kUnsupported, "a shape whose matrices have different data types");
  }
  const auto known = parse_gemm_operation(operation);
  if (!known) {
    return fail(ErrorCode::kUnsupported,
                "an operation that is not known here: ", operation.substr(0, 40));
  }
  GemmOperation parsed = *known;
  if (batch.value_or(1) > 1) {
    parsed = GemmOperation::kBmm;
  }
  auto gemm = GemmProblem::create({.m = *m,
                                   .n = *n,
                                   .k = *k,
                                   .batch = batch.value_or(1),
                                   .operation = parsed,
                                   .dtype = *dtype});
  if (!gemm) {
    return fail(ErrorCode::kCorrupt, "a shape with sizes out of range");
  }
  return gemm->to_problem();
}

}  // namespace dataset_internal

namespace {

Result<Config> config_of(const Json& given, std::uint64_t schema_id) {
  Json parsed;
  const Json* json = &given;
  if (given.is_string()) {
    auto text = dataset_internal::parse_json(given.get<std::string>());
    if (text) {
      parsed = *std::move(text);
    }
    json = &parsed;
  }
  if (!json->is_object()) {
    return fail(ErrorCode::kCorrupt, "a config that is not an object");
  }
  Config config{.schema = schema_id, .words = {}};
  for (const DiodeParameter& parameter : diode_parameters()) {
    if (parameter.is_flag) {
      const Json* flag = member(*json, parameter.theirs.c_str());
      config.words.push_back(flag != nullptr && flag->is_boolean() && flag->get<bool>() ? 1 : 0);
      continue;
    }
    const auto value = integer_at(*json, parameter.theirs.c_str());
    if (!value || *value < 0 || *value > (1 << 20)) {
      return fail(ErrorCode::kCorrupt, "a config without a sensible ", parameter.theirs);
    }
    config.words.push_back(static_cast<std::int32_t>(*value));
  }
  const std::vector<std::string>& accumulators = accumulator_parameter().labels;
  const std::string name = text_at(*json, "ACC_TYPE").value_or(accumulators[0]);
  const auto known = std::find(accumulators.begin(), accumulators.end(), name);
  if (known == accumulators.end()) {
    return fail(ErrorCode::kUnsupported, "a config of an accumulator type that is not known here");
  }
  config.words.push_back(static_cast<std::int32_t>(known - accumulators.begin()));
  return config;
}

// Milliseconds, or infinity for a config that failed when it ran.
std::optional<double> time_ms_of(const Json& timed) {
  const auto found = timed.find("time");
  if (found == timed.end()) {
    return std::nullopt;
  }
  if (found->is_number()) {
    return found->get<double>();
  }
  return *found == "Infinity" ? std::optional(std::numeric_limits<double>::infinity())
                              : std::nullopt;
}

class DiodeImporter {
 public:
  explicit DiodeImporter(Dataset& dataset)
      : dataset_(dataset), schema_id_(dataset.header().config_schema.id()) {}

  void import_hardware(const std::string& device, const Json& hardware) {
    context_ = {.machine = dataset_.header().fingerprint.digest(), .device = device};
    const Json* operations = member(hardware, "operation");
    if (operations == nullptr || !operations->is_object()) {
      counter.drop("hardware without operations");
      return;
    }
    for (const auto& [operation, content] : operations->items()) {
      const Json* solutions = member(content, "solution");
      if (solutions == nullptr || !solutions->is_object()) {
        counter.drop("an operation without solutions", operation);
        continue;
      }
      for (const auto& [key, solution] : solutions->items()) {
        import_solution(operation, key, solution);
      }
    }
  }

  ImportCounter counter;

 private:
  void import_solution(const std::string& operation, const std::string& key, const Json& solution) {
    const Json* configs = member(solution, "timed_configs");
    if (configs == nullptr || !configs->is_array()) {
      counter.drop("a solution without timed configs", operation);
      return;
    }
    const Result<Json> shape = dataset_internal::parse_json(key);
    const Result<Problem> problem = shape ? dataset_internal::diode_problem(*shape, operation)
                                          : tl::unexpected<Error>(shape.error());
    const bool transposed = problem && dataset_internal::is_transposed(*shape, *problem);
    for (const Json& timed : *configs) {
      counter.read();
      const std::string place = concat(operation, ", timing ", counter.report().rows_read);
      const Status added =
          problem ? import_timing(*problem, timed) : Status(tl::unexpected<Error>(problem.error()));
      if (!added) {
        counter.drop(added.error().message, place);
        continue;
      }
      counter.keep();
      if (transposed) {
        counter.note(dataset_internal::kTransposedNote, place);
      }
    }
  }

  Status import_timing(const Problem& problem, const Json& timed) {
    const auto config_json = timed.is_object() ? timed.find("config") : timed.end();
    if (!timed.is_object() || config_json == timed.end()) {
      return fail(ErrorCode::kCorrupt, "a timing without a config");
    }
    FORETUNE_TRY(Config config, config_of(*config_json, schema_id_));
    const auto time_ms = time_ms_of(timed);
    const bool failed = time_ms && std::isinf(*time_ms);
    if (!time_ms || !(*time_ms > 0) || (!failed && !(*time_ms < kLongestMs))) {
      return fail(ErrorCode::kCorrupt, "a timing without a time");
    }
    Measurement out{.problem = problem,
                    .config = std::move(config),
                    .context = context_,
                    .outcome = Outcome::kOk,
                    .stage = Stage::kNone,
                    .flags = kFlagImported,
                    .reason = {},
                    .metrics = {},
                    .samples_ns = {}};
    if (failed) {
      out.outcome = Outcome::kPrepareFailed;
      out.stage = Stage::kRun;
      out.reason = "its time is infinite: it failed where it was measured";
    } else {
      if (static_cast<float>(*time_ms * 1e6) == 0) {
        return fail(ErrorCode::kCorrupt, "a timing without a time");
      }
      out.metrics.push_back({kTimeNs, *time_ms * 1e6, 0, 1});
    }
    dataset_.add(out);
    return {};
  }

  static constexpr double kLongestMs = 1e24;
  Dataset& dataset_;
  std::uint64_t schema_id_;
  Context context_;
};

}  // namespace

namespace dataset_internal {

bool is_diode_document(const Json& document) {
  const Json* hardware = member(document, "hardware");
  return hardware != nullptr && hardware->is_object();
}

Result<Dataset> import_diode_document(const Json& document, const ImportFacts& facts,
                                      ImportReport* report) {
  const Json& hardware = document["hardware"];
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = facts.family;
  header.role = facts.role;
  header.config_schema = diode_triton_schema();
  header.fingerprint.device = hardware.empty() ? "unknown" : hardware.begin().key();
  if (const Status status = dataset_internal::check_header(header); !status) {
    return fail_because(status.error(), "the name of the hardware");
  }
  if (hardware.size() > dataset_internal::kMaxContexts) {
    return fail(ErrorCode::kCorrupt, "there are ", hardware.size(), " kinds of hardware");
  }
  Dataset dataset(std::move(header));
  DiodeImporter importer(dataset);
  for (const auto& [device, content] : hardware.items()) {
    importer.import_hardware(device, content);
  }
  FORETUNE_TRY_STATUS(importer.counter.finish(report));
  return dataset;
}

namespace {

// Positions of their parameters in our schema; nothing when one is missing.
std::optional<std::vector<std::size_t>> positions_in(const ConfigSchema& schema) {
  std::vector<std::size_t> out;
  for (const DiodeParameter& parameter : diode_parameters()) {
    const auto index = schema.find(parameter.ours);
    if (!index && !parameter.is_flag) {
      return std::nullopt;
    }
    out.push_back(index.value_or(schema.parameters.size()));
  }
  out.push_back(schema.find(accumulator_parameter().name).value_or(schema.parameters.size()));
  return out;
}

const char* their_dtype(DataType dtype) {
  for (const DtypeName& known : kDtypes) {
    if (known.ours == dtype) {
      return known.theirs;
    }
  }
  return nullptr;
}

Json shape_json(const GemmProblem& gemm) {
  const char* dtype = their_dtype(gemm.dtype());
  return {{"version", 1},
          {"B", gemm.batch()},
          {"M", gemm.m()},
          {"M_dtype", dtype},
          {"N", gemm.n()},
          {"K", gemm.k()},
          {"K_dtype", dtype},
          {"out_dtype", dtype},
          {"out_size", {gemm.batch(), gemm.m(), gemm.n()}},
          {"out_stride", {gemm.m() * gemm.n(), gemm.n(), 1}}};
}

Json config_json(const Config& config, const std::vector<std::size_t>& positions,
                 std::string_view operation) {
  Json out{{"version", 1}, {"name", concat(operation, "_config")}, {"grid", 1}};
  const auto word = [&](std::size_t i) {
    return positions[i] < config.words.size() ? config.words[positions[i]] : 0;
  };
  std::size_t i = 0;
  for (const DiodeParameter& parameter : diode_parameters()) {
    const std::int32_t value = word(i++);
    out[parameter.theirs] = parameter.is_flag ? Json(value != 0) : Json(value);
  }
  const std::vector<std::string>& accumulators = accumulator_parameter().labels;
  const auto accumulator = static_cast<std::size_t>(std::max(0, word(i)));
  out["ACC_TYPE"] = accumulators[std::min(accumulator, accumulators.size() - 1)];
  return out;
}

}  // namespace

Result<Json> export_diode_document(const Dataset& dataset, ImportReport* report) {
  const auto positions = positions_in(dataset.header().config_schema);
  if (dataset.header().problem_type != kGemmProblem || !positions) {
    return fail(ErrorCode::kUnsupported,
                "torch-diode's format holds Triton GEMM configs only, not ",
                dataset.header().config_schema.name);
  }
  Json out{{"version", 1}, {"hardware", Json::object()}};
  ImportCounter counter;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    const std::string place = concat("row ", i);
    counter.read();
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(dataset.problems()[row.problem]));
    if (row.outcome == Outcome::kCensored) {
      counter.drop("a bound, which their format cannot hold", place);
      continue;
    }
    if (their_dtype(gemm.dtype()) == nullptr) {
      counter.drop("a data type that they have no name for", place);
      continue;
    }
    if (!gemm.payload().is_zero()) {
      counter.drop("weights from a file, which their format cannot hold", place);
      continue;
    }
    counter.keep();
    const std::string_view name = to_string(gemm.operation());
    Json& hardware = out["hardware"][dataset.contexts()[row.context].device];
    hardware["version"] = 1;
    Json& operation = hardware["operation"][std::string(name)];
    operation["version"] = 1;
    Json& solution = operation["solution"][shape_json(gemm).dump()];
    solution["version"] = 1;
    solution["timed_configs"].push_back(
        {{"config", config_json(dataset.configs()[row.config], *positions, name)},
         {"time", row.is_timed() ? static_cast<double>(row.time_ns) * 1e-6
                                 : std::numeric_limits<double>::infinity()},
         {"version", 1}});
  }
  FORETUNE_TRY_STATUS(counter.finish(report));
  return out;
}

std::string diode_text(const Json& document) {
  // JSON has no infinity, so the library writes null, which stands nowhere else in the document.
  // A quote inside a string is written with a backslash, so no string looks like this.
  static constexpr std::string_view kNull = "\"time\":null";
  static constexpr std::string_view kInfinity = "\"time\":Infinity";
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  for (std::size_t begin = 0;;) {
    const std::size_t found = text.find(kNull, begin);
    out += text.substr(begin, found - begin);
    if (found == std::string::npos) {
      return out + "\n";
    }
    out += kInfinity;
    begin = found + kNull.size();
  }
}

}  // namespace dataset_internal

}  // namespace foretune
