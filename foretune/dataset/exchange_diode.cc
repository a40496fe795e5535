// torch-diode's documents (github.com/exclamaforte/diode, formats as read from its sources and its
// shipped sample): hardware -> operation -> solution, the keys of the last being JSON text of a
// shape. The older schema adds names and writes each config as JSON text. Times are milliseconds.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/exchange_io.h"
#include "foretune/dataset/exchange_json.h"
#include "foretune/problem/gemm.h"

namespace foretune {

using dataset_internal::ImportCounter;
using dataset_internal::Json;

namespace {

// Names in their documents, and of our parameters, in the order of our words.
struct DiodeParameter {
  const char* theirs;
  const char* ours;
  bool is_flag;
};
constexpr std::array<DiodeParameter, 9> kParameters{{{"block_m", "block_m", false},
                                                     {"block_n", "block_n", false},
                                                     {"block_k", "block_k", false},
                                                     {"group_m", "group_m", false},
                                                     {"num_stages", "num_stages", false},
                                                     {"num_warps", "num_warps", false},
                                                     {"EVEN_K", "even_k", true},
                                                     {"ALLOW_TF32", "allow_tf32", true},
                                                     {"USE_FAST_ACCUM", "use_fast_accum", true}}};
constexpr std::size_t kAccumulator = kParameters.size();
constexpr std::array<const char*, 4> kAccumulators{"tl.float32", "tl.float16", "tl.bfloat16",
                                                   "tl.int32"};

ConfigSchema diode_schema() {
  ConfigSchema schema{.name = "diode-triton", .version = 1, .parameters = {}};
  for (const DiodeParameter& parameter : kParameters) {
    schema.parameters.push_back(
        {parameter.ours, parameter.is_flag ? std::vector<std::string>{"no", "yes"}
                                           : std::vector<std::string>{}});
  }
  schema.parameters.push_back({"acc_type", {kAccumulators.begin(), kAccumulators.end()}});
  return schema;
}

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

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX)) {
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

std::optional<DataType> dtype_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    return std::nullopt;
  }
  std::string name = found->get<std::string>();
  if (name.rfind("torch.", 0) == 0) {
    name = name.substr(6);
  }
  for (const DtypeName& known : kDtypes) {
    if (name == known.theirs) {
      return known.ours;
    }
  }
  return std::nullopt;
}

// A shape of theirs as a problem. They draw an operation per shape whatever its batch is, so a batch
// above 1 is what makes it a bmm.
Result<Problem> problem_of(const Json& shape, std::string_view operation) {
  if (!shape.is_object()) {
    return fail(ErrorCode::kCorrupt, "a shape that is not an object");
  }
  const auto m = integer_at(shape, "M");
  const auto n = integer_at(shape, "N");
  const auto k = integer_at(shape, "K");
  const auto batch = integer_at(shape, "B");
  const auto dtype = dtype_at(shape, "M_dtype");
  if (!m || !n || !k) {
    return fail(ErrorCode::kCorrupt, "a shape without M, N or K");
  }
  if (!dtype) {
    return fail(ErrorCode::kUnsupported, "a shape of a data type that is not known here");
  }
  FORETUNE_TRY(GemmOperation parsed, parse_gemm_operation(operation));
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

Result<Config> config_of(const Json& given, std::uint64_t schema_id) {
  Json parsed;
  const Json* json = &given;
  if (given.is_string()) {
    parsed = Json::parse(given.get<std::string>(), nullptr, false);
    json = &parsed;
  }
  if (!json->is_object()) {
    return fail(ErrorCode::kCorrupt, "a config that is not an object");
  }
  Config config{.schema = schema_id, .words = {}};
  for (const DiodeParameter& parameter : kParameters) {
    const auto found = json->find(parameter.theirs);
    if (parameter.is_flag) {
      const bool set = found != json->end() && found->is_boolean() && found->get<bool>();
      config.words.push_back(set ? 1 : 0);
      continue;
    }
    const auto value = integer_at(*json, parameter.theirs);
    if (!value || *value < 0 || *value > (1 << 20)) {
      return fail(ErrorCode::kCorrupt, "a config without a sensible ", parameter.theirs);
    }
    config.words.push_back(static_cast<std::int32_t>(*value));
  }
  const auto accumulator = json->find("ACC_TYPE");
  const std::string name = accumulator != json->end() && accumulator->is_string()
                               ? accumulator->get<std::string>()
                               : std::string(kAccumulators[0]);
  const auto known = std::find(kAccumulators.begin(), kAccumulators.end(), name);
  if (known == kAccumulators.end()) {
    return fail(ErrorCode::kUnsupported, "a config of an accumulator type that is not known here");
  }
  config.words.push_back(static_cast<std::int32_t>(known - kAccumulators.begin()));
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
  return *found == "Infinity" ? std::optional(HUGE_VAL) : std::nullopt;
}

class DiodeImporter {
 public:
  explicit DiodeImporter(Dataset& dataset)
      : dataset_(dataset), schema_id_(dataset.header().config_schema.id()) {}

  void import_hardware(const std::string& device, const Json& hardware) {
    context_ = {.machine = dataset_.header().fingerprint.digest(), .device = device};
    const auto operations = hardware.find("operation");
    if (operations == hardware.end() || !operations->is_object()) {
      counter.drop("hardware without operations");
      return;
    }
    for (const auto& [operation, content] : operations->items()) {
      const auto solutions = content.find("solution");
      if (solutions == content.end() || !solutions->is_object()) {
        counter.drop("an operation without solutions");
        continue;
      }
      for (const auto& [key, solution] : solutions->items()) {
        import_solution(operation, key, solution);
      }
    }
  }

  ImportCounter counter;

 private:
  void import_solution(const std::string& operation, const std::string& key,
                       const Json& solution) {
    const auto configs = solution.find("timed_configs");
    if (configs == solution.end() || !configs->is_array()) {
      counter.drop("a solution without timed configs");
      return;
    }
    const Result<Problem> problem = problem_of(Json::parse(key, nullptr, false), operation);
    for (const Json& timed : *configs) {
      counter.read();
      const Status added = problem ? import_timing(*problem, timed)
                                   : Status(tl::unexpected<Error>(problem.error()));
      if (added) {
        counter.keep();
      } else {
        counter.drop(added.error().message);
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
    if (!time_ms || !(*time_ms > 0)) {
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
    if (std::isinf(*time_ms)) {
      out.outcome = Outcome::kPrepareFailed;
      out.stage = Stage::kRun;
      out.reason = "recorded as infinite";
    } else {
      out.metrics.push_back({MetricId::kTimeNs, *time_ms * 1e6, 0, 1});
    }
    dataset_.add(out);
    return {};
  }

  Dataset& dataset_;
  std::uint64_t schema_id_;
  Context context_;
};

}  // namespace

namespace dataset_internal {

bool is_diode_document(const Json& document) {
  return document.is_object() && document.contains("hardware") && document["hardware"].is_object();
}

Result<Dataset> import_diode_document(const Json& document, ImportReport* report) {
  const Json& hardware = document["hardware"];
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = diode_schema();
  header.fingerprint.device = hardware.empty() ? "unknown" : hardware.begin().key();
  Dataset dataset(std::move(header));
  DiodeImporter importer(dataset);
  for (const auto& [device, content] : hardware.items()) {
    if (content.is_object()) {
      importer.import_hardware(device, content);
    }
  }
  importer.counter.write_to(report);
  return dataset;
}

namespace {

// Positions of their parameters in our schema; nothing when one is missing.
std::optional<std::vector<std::size_t>> positions_in(const ConfigSchema& schema) {
  std::vector<std::size_t> out;
  for (const DiodeParameter& parameter : kParameters) {
    const auto index = schema.find(parameter.ours);
    if (!index && !parameter.is_flag) {
      return std::nullopt;
    }
    out.push_back(index.value_or(schema.parameters.size()));
  }
  out.push_back(schema.find("acc_type").value_or(schema.parameters.size()));
  return out;
}

const char* their_dtype(DataType dtype) {
  for (const DtypeName& known : kDtypes) {
    if (known.ours == dtype) {
      return known.theirs;
    }
  }
  return "float32";
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

Json config_json(const Config& config, const std::vector<std::size_t>& positions) {
  Json out{{"version", 1}, {"name", "mm_config"}, {"grid", 1}};
  const auto word = [&](std::size_t i) {
    return positions[i] < config.words.size() ? config.words[positions[i]] : 0;
  };
  for (std::size_t i = 0; i < kParameters.size(); ++i) {
    if (kParameters.at(i).is_flag) {
      out[kParameters.at(i).theirs] = word(i) != 0;
    } else {
      out[kParameters.at(i).theirs] = word(i);
    }
  }
  const auto accumulator = static_cast<std::size_t>(std::max(0, word(kAccumulator)));
  out["ACC_TYPE"] = kAccumulators.at(std::min(accumulator, kAccumulators.size() - 1));
  return out;
}

}  // namespace

Result<Json> export_diode_document(const Dataset& dataset) {
  const auto positions = positions_in(dataset.header().config_schema);
  if (dataset.header().problem_type != ProblemType::kGemm || !positions) {
    return fail(ErrorCode::kUnsupported, "torch-diode's format holds Triton GEMM configs only, not ",
                dataset.header().config_schema.name);
  }
  Json out{{"version", 1}, {"hardware", Json::object()}};
  for (const Dataset::Row& row : dataset.rows()) {
    const bool failed = row.outcome != Outcome::kOk;
    if (row.outcome == Outcome::kCensored) {
      continue;  // their format has no bounds
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(dataset.problems()[row.problem]));
    Json& hardware = out["hardware"][dataset.contexts()[row.context].device];
    hardware["version"] = 1;
    Json& operation = hardware["operation"][std::string(to_string(gemm.operation()))];
    operation["version"] = 1;
    Json& solution = operation["solution"][shape_json(gemm).dump()];
    solution["version"] = 1;
    const Json time = failed ? Json("Infinity") : Json(static_cast<double>(row.time_ns) * 1e-6);
    solution["timed_configs"].push_back(
        {{"config", config_json(dataset.configs()[row.config], *positions)},
         {"time", time},
         {"version", 1}});
  }
  return out;
}

}  // namespace dataset_internal

namespace {

Result<std::vector<Problem>> shapes_of_document(const Json& document, ImportReport* report) {
  const auto operations = document.find("operations");
  if (operations == document.end() || !operations->is_object()) {
    return fail(ErrorCode::kCorrupt, "the shape set has no 'operations'");
  }
  std::vector<Problem> out;
  std::set<Problem> seen;
  ImportCounter counter;
  for (const auto& [operation, content] : operations->items()) {
    const auto shapes = content.find("shapes");
    if (shapes == content.end() || !shapes->is_array()) {
      return fail(ErrorCode::kCorrupt, "operation '", operation.substr(0, 40), "' has no 'shapes'");
    }
    for (const Json& shape : *shapes) {
      counter.read();
      const Result<Problem> problem = problem_of(shape, operation);
      if (!problem) {
        counter.drop(problem.error().message);
      } else if (!seen.insert(*problem).second) {
        counter.drop("a repeated shape");
      } else {
        counter.keep();
        out.push_back(*problem);
      }
    }
  }
  counter.write_to(report);
  return out;
}

// Lines of m,n,k[,batch[,op]], or problems in text form; a header line and # comments are allowed.
Result<std::vector<Problem>> shapes_of_lines(std::string_view text, ImportReport* report) {
  std::vector<Problem> out;
  std::set<Problem> seen;
  ImportCounter counter;
  std::size_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#' || (number == 1 && line.rfind("m,", 0) == 0)) {
      continue;
    }
    counter.read();
    Result<Problem> problem = Problem::parse(line);
    if (line.find(',') != std::string_view::npos) {
      const std::vector<std::string_view> parts = split(line, ',');
      if (parts.size() < 3) {
        return fail(ErrorCode::kCorrupt, "line ", number, ": m,n,k[,batch[,op]] was expected");
      }
      const std::string batch = parts.size() > 3 ? std::string(trim(parts[3])) : "1";
      const std::string operation = parts.size() > 4 ? std::string(trim(parts[4]))
                                    : batch == "1"   ? "mm"
                                                     : "bmm";
      problem = Problem::parse(concat("gemm m=", trim(parts[0]), " n=", trim(parts[1]),
                                      " k=", trim(parts[2]), " batch=", batch,
                                      " op=", operation));
    }
    if (!problem) {
      return fail_because(problem.error(), "line ", number);
    }
    if (!seen.insert(*problem).second) {
      counter.drop("a repeated shape");
    } else {
      counter.keep();
      out.push_back(*problem);
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kCorrupt, "there are no shapes");
  }
  counter.write_to(report);
  return out;
}

}  // namespace

Result<std::vector<Problem>> parse_shape_set(std::string_view text, ImportReport* report) {
  const std::string_view content = trim(text);
  if (!content.empty() && content.front() == '{') {
    FORETUNE_TRY(const Json document, dataset_internal::parse_document(bytes_of(text), false));
    return shapes_of_document(document, report);
  }
  return shapes_of_lines(text, report);
}

Result<std::vector<Problem>> read_shape_set(const std::filesystem::path& path,
                                            ImportReport* report) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_gzip(path));
  auto shapes = parse_shape_set(dataset_internal::text_of(bytes), report);
  if (!shapes) {
    return fail_because(shapes.error(), path.string());
  }
  return shapes;
}

}  // namespace foretune
