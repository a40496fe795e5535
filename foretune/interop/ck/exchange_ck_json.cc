// Reads CK Tile's benchmark results as JSON: one run, a batch, or many runs between other output.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/ck/exchange_ck.h"
#include "foretune/interop/ck/internal/ck_rows.h"
#include "foretune/interop/tables/exchange_json.h"

namespace foretune::dataset_internal {
namespace {

// The number of bytes inspected to detect a format.
constexpr std::size_t kHeadBytes = std::size_t{64} << 10U;

std::optional<double> number_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr || value->is_null()) {
    return std::nullopt;
  }
  // NaN and infinity come as strings: the key exists, but its number is invalid.
  return value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::optional<bool> flag_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

// Returns the sizes of a convolution, by their names as they are or in lower case; nothing for what
// is none. A required size that is missing becomes one that no convolution has.
std::optional<ConvSizes> conv_sizes_of(const Json& object) {
  const auto size_at = [&](std::string_view name) {
    const auto size = integer_at(object, std::string(name).c_str());
    return size ? size : integer_at(object, to_lower(name).c_str());
  };
  if (!size_at("Hi")) {
    return std::nullopt;
  }
  ConvSizes sizes;
  for (const CkConvSize& known : ck_conv_sizes()) {
    std::int64_t& size = sizes.*known.size;
    size = size_at(known.name).value_or(known.required ? -1 : size);
  }
  return sizes;
}

// The name of a kernel, under any of the names that programs give it.
std::optional<std::string> kernel_name_at(const Json& object) {
  for (const char* const key : {"name", "kernel_name", "kernel"}) {
    if (auto name = text_at(object, key)) {
      return name;
    }
  }
  return std::nullopt;
}

// The first number that is there.
std::optional<double> first_number_at(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* const key : keys) {
    if (const auto number = number_at(object, key)) {
      return number;
    }
  }
  return std::nullopt;
}

CkGemmDims dims_of(const Json& object) {
  return {integer_at(object, "m").value_or(0), integer_at(object, "n").value_or(0),
          integer_at(object, "k").value_or(0)};
}

// Converts one run as a benchmark program prints it, or as the worker that runs convolutions does.
CkRun run_of(const Json& object) {
  static const Json kNothing = Json::object();
  const Json* problem = member(object, "problem");
  const Json* result = member(object, "perf_result");
  problem = problem == nullptr ? &kNothing : problem;
  result = result == nullptr ? &kNothing : result;
  CkRun run;
  run.kernel = kernel_name_at(object).value_or("");
  // StreamK's programs leave the operation out of the name.
  if (member(object, "reduction_strategy") != nullptr && !run.kernel.starts_with("gemm")) {
    run.kernel = concat("gemm_streamk_", run.kernel);
  }
  run.gemm = dims_of(*problem);
  run.conv = conv_sizes_of(*problem);
  run.direction = text_at(*problem, "direction").value_or("");
  run.split_k = integer_at(*problem, "split_k").value_or(1);
  run.dtype = text_at(*problem, "dtype_a").value_or(text_at(*problem, "dtype").value_or(""));
  run.output_dtype = text_at(*problem, "dtype_c").value_or("");
  run.layout = ck_layout_tag(text_at(*problem, "layout_a").value_or(""),
                             text_at(*problem, "layout_b").value_or(""),
                             text_at(*problem, "layout_c").value_or(""));
  run.figures.latency_ms = number_at(*result, "latency(ms)");
  run.figures.tflops = number_at(*result, "tflops(TFlops)");
  run.figures.gb_s = number_at(*result, "bandwidth(GB/s)");
  if (member(object, "perf_result") == nullptr) {
    run.figures.latency_ms = first_number_at(object, {"ms", "latency_ms", "avg_time_ms"});
    run.figures.tflops = number_at(object, "tflops");
    run.is_all_zero = integer_at(object, "non_zero").value_or(1) == 0;
  }
  run.is_valid = flag_at(object, "is_valid");
  run.is_valid = run.is_valid ? run.is_valid : flag_at(object, "ok");
  run.error = text_at(object, "error").value_or("");
  return run;
}

bool is_run(const Json& document) {
  const bool has_result = member(document, "perf_result") != nullptr ||
                          member(document, "problem") != nullptr ||
                          (member(document, "ok") != nullptr && member(document, "idx") != nullptr);
  return kernel_name_at(document) && has_result;
}

bool is_batch(const Json& document) {
  const Json* results = member(document, "results");
  return results != nullptr && results->is_array() &&
         (member(document, "metadata") != nullptr || member(document, "problem_sizes") != nullptr);
}

void add_batch(const Json& document, CkCollector& collector) {
  static const Json kNothing = Json::object();
  const Json* metadata = member(document, "metadata");
  metadata = metadata == nullptr ? &kNothing : metadata;
  const Json& results = document["results"];
  std::size_t number = 0;
  for (const Json& kernel : results) {
    const std::string place = concat("result ", ++number);
    const Json* benchmarks = member(kernel, "benchmarks");
    if (benchmarks == nullptr || !benchmarks->is_array()) {
      collector.add_broken("a result without benchmarks", place);
      continue;
    }
    const Json* config = member(kernel, "kernel_config");
    std::size_t benchmark = 0;
    for (const Json& timed : *benchmarks) {
      CkRun run;
      run.kernel = kernel_name_at(timed).value_or(
          config == nullptr ? std::string() : text_at(*config, "name").value_or(""));
      run.dtype = text_at(*metadata, "dtype").value_or("");
      run.layout = text_at(*metadata, "layout").value_or("");
      run.arch = text_at(*metadata, "arch").value_or("");
      run.gemm = dims_of(timed);
      run.conv = conv_sizes_of(timed);
      run.direction = text_at(timed, "direction").value_or("");
      run.split_k = integer_at(timed, "split_k").value_or(1);
      run.figures.latency_ms = number_at(timed, "avg_time_ms");
      run.figures.tflops = number_at(timed, "tflops");
      run.is_valid = flag_at(timed, "is_valid");
      run.error = text_at(timed, "error").value_or("");
      collector.add(run, concat(place, ", benchmark ", ++benchmark));
    }
  }
}

struct LogShape {
  CkGemmDims dims;
  std::optional<ConvSizes> conv;
  std::string direction;
  std::string dtype;
  std::string layout;
  std::size_t line = 0;  // of the file; 0 before the first one
  bool has_runs = false;
};

// Returns the position where "Shape 3:" ends in a line; npos without it.
std::size_t end_of_shape_word(std::string_view line) {
  static constexpr std::string_view kWord = "Shape ";
  const std::size_t found = line.find(kWord);
  if (found == std::string_view::npos) {
    return found;
  }
  const std::size_t digits = found + kWord.size();
  const std::size_t end = line.find_first_not_of("0123456789", digits);
  return end != std::string_view::npos && end > digits && line[end] == ':' ? end + 1
                                                                           : std::string_view::npos;
}

LogShape shape_of(std::string_view line, std::size_t number) {
  LogShape out;
  out.line = number;
  Json sizes = Json::object();
  for (const std::string_view word : split_words(line.substr(end_of_shape_word(line)))) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "M") {
      out.dims.m = parse_int(value).value_or(0);
    } else if (key == "N") {
      out.dims.n = parse_int(value).value_or(0);
    } else if (key == "K") {
      out.dims.k = parse_int(value).value_or(0);
    } else if (key == "dtype") {
      out.dtype = value;
    } else if (key == "layout") {
      out.layout = value;
    } else if (key == "direction") {
      out.direction = value;
    }
    if (const auto size = parse_int(value)) {
      sizes[std::string(key)] = *size;
    }
  }
  out.conv = conv_sizes_of(sizes);
  return out;
}

// Finds the runs in a log. A run that is cut off by another one, a shape line or the end of the
// file is lost, but nothing after it is.
class LogReader {
 public:
  LogReader(std::string_view text, CkCollector& collector) : text_(text), collector_(collector) {}

  void run() {
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      read_line(begin, end);
      begin = end + 1;
    }
    cut_off();
    end_shape();
  }

 private:
  void read_line(std::size_t begin, std::size_t end) {
    const std::string_view line = trim(text_.substr(begin, end - begin));
    const bool is_shape = is_ck_shape_line(line);
    const bool starts_run = !line.empty() && line.front() == '{';
    if (is_shape || starts_run) {
      cut_off();
    }
    if (is_shape) {
      end_shape();
      shape_ = shape_of(line, line_);
      return;
    }
    // A JSON string cannot span lines.
    is_quoted_ = false;
    for (std::size_t at = begin; at < end; ++at) {
      if (depth_ == 0) {
        at = std::min(text_.find('{', at), end);
        if (at == end) {
          return;
        }
        block_begin_ = at;
        block_line_ = line_;
        block_at_line_start_ = starts_run && trim(text_.substr(begin, at - begin)).empty();
      }
      at += read_character(text_[at]);
      if (depth_ == 0) {
        end_block(text_.substr(block_begin_, at + 1 - block_begin_));
      }
    }
  }

  // Returns the number of following characters that belong to this one.
  std::size_t read_character(char c) {
    if (is_quoted_) {
      is_quoted_ = c != '"';
      return c == '\\' ? 1 : 0;
    }
    is_quoted_ = c == '"';
    depth_ += c == '{' ? 1U : 0U;
    depth_ -= c == '}' ? 1U : 0U;
    return 0;
  }

  // Braces within prose do not begin a run.
  [[nodiscard]] bool looks_like_run(std::string_view block) const {
    return block_at_line_start_ || block.find("\"perf_result\"") != std::string_view::npos;
  }

  void cut_off() {
    if (depth_ > 0 && looks_like_run(text_.substr(block_begin_))) {
      collector_.add_broken("a run that is cut off", concat("line ", block_line_));
      mark_shape();
    }
    depth_ = 0;
  }

  void end_block(std::string_view block) {
    if (!looks_like_run(block)) {
      return;
    }
    const std::string place = concat("line ", block_line_);
    mark_shape();
    const Result<Json> parsed = parse_json(block);
    if (!parsed) {
      collector_.add_broken("a run that is not JSON", place);
      return;
    }
    if (!is_run(*parsed)) {
      collector_.add_broken("an object that is no run of a benchmark", place);
      return;
    }
    CkRun run = run_of(*parsed);
    take_shape(*parsed, run, place);
    collector_.add(run, place);
  }

  // Takes the facts that the run itself lacks from the shape line before it.
  void take_shape(const Json& object, CkRun& run, const std::string& place) {
    if (shape_.line == 0) {
      return;
    }
    if (member(object, "problem") == nullptr) {
      run.gemm = shape_.dims;
      run.conv = shape_.conv;
      run.direction = shape_.direction;
      run.dtype = shape_.dtype;
      run.layout = shape_.layout;
    } else if (run.conv ? run.conv != shape_.conv : run.gemm != shape_.dims) {
      collector_.note("its sizes are not those of the shape line before it; its own are taken",
                      place);
    }
  }

  void mark_shape() { shape_.has_runs = true; }
  void end_shape() {
    if (shape_.line > 0 && !shape_.has_runs) {
      collector_.note("a shape without a single run", concat("line ", shape_.line));
    }
    shape_ = LogShape{};
  }

  std::string_view text_;
  CkCollector& collector_;
  LogShape shape_;
  std::size_t line_ = 0;
  std::size_t depth_ = 0;
  bool is_quoted_ = false;
  std::size_t block_begin_ = 0;
  std::size_t block_line_ = 0;
  bool block_at_line_start_ = false;
};

}  // namespace

bool is_ck_shape_line(std::string_view line) {
  const std::size_t end = end_of_shape_word(line);
  if (end == std::string_view::npos) {
    return false;
  }
  const std::string_view sizes = line.substr(end);
  return sizes.find("M=") != std::string_view::npos || sizes.find("Hi=") != std::string_view::npos;
}

std::optional<ExchangeFormat> detect_ck(std::string_view text) {
  std::string_view head = text.substr(0, kHeadBytes);
  const std::string_view trimmed = trim(head);
  const auto has = [head](std::string_view word) {
    return head.find(word) != std::string_view::npos;
  };
  // Inside a JSON string the quotes would have backslashes.
  const bool has_run = has("\"perf_result\"");
  if (!trimmed.empty() && trimmed.front() == '{' && has("\"problem_sizes\"") && !has_run) {
    return ExchangeFormat::kCkJson;
  }
  if (is_ck_csv(text)) {
    return ExchangeFormat::kCkCsv;
  }
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = trim(head.substr(0, end));
    if (is_ck_shape_line(line) || (has_run && !line.empty() && line.front() == '{')) {
      return ExchangeFormat::kCkLog;
    }
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return std::nullopt;
}

bool is_ck_document(const Json& document) { return is_batch(document) || is_run(document); }

Result<Dataset> import_ck_json(std::string_view text, const ImportFacts& facts,
                               ImportReport* report) {
  FORETUNE_TRY(const Json document, parse_json(text));
  CkCollector collector(facts);
  if (is_batch(document)) {
    add_batch(document, collector);
  } else if (is_run(document)) {
    collector.add(run_of(document), "the only run");
  } else {
    return fail(ErrorCode::kCorrupt,
                "the document is neither a run of CK Tile's benchmarks nor a batch of them");
  }
  return collector.finish(report);
}

Result<Dataset> import_ck_log(std::string_view text, const ImportFacts& facts,
                              ImportReport* report) {
  CkCollector collector(facts);
  LogReader(text, collector).run();
  return collector.finish(report);
}

}  // namespace foretune::dataset_internal
