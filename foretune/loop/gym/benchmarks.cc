#include "foretune/loop/gym/benchmarks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/embedded_text.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/gym/loop_tool_benchmark.h"
#include "foretune/problem/nest_problems.h"

namespace foretune::loop::gym {
namespace {

constexpr std::string_view kHeader = "# foretune benchmarks 1";
constexpr std::size_t kMaxBenchmarks = 1000000;
// The most loops to permute: 7 have 5,040 orders.
constexpr std::size_t kMaxPermuted = 7;

// Messages quote words of a file, which must not contain control sequences for a terminal.
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
}

std::string with_single_blanks(std::string_view text) {
  std::string out;
  for (const std::string_view word : split_words(text)) {
    out += concat(out.empty() ? "" : " ", word);
  }
  return out;
}

Result<Benchmark> parse_line(std::string_view line) {
  if (!is_printable(line)) {
    return fail(ErrorCode::kInvalidArgument, "a byte that is no printable ASCII in ",
                foretune::quoted(line));
  }
  const std::size_t name_end = line.find_first_of(" \t");
  if (name_end == std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(line),
                " is a name without a computation: NAME COMPUTATION [; SCHEDULE]");
  }
  const std::string_view rest = trim(line.substr(name_end));
  const std::size_t computation_end = rest.find(';');
  Benchmark benchmark{
      .name = std::string(line.substr(0, name_end)), .computation = {}, .schedule = {}};
  FORETUNE_TRY(benchmark.computation,
               loop::parse_computation(with_single_blanks(rest.substr(0, computation_end))));
  if (computation_end != std::string_view::npos) {
    FORETUNE_TRY(benchmark.schedule, loop::parse_schedule(benchmark.computation,
                                                          trim(rest.substr(computation_end + 1))));
  }
  return benchmark;
}

using Sizes = std::vector<std::int64_t>;

Result<std::int64_t> parse_size(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 1 || *value > 1000000) {
    return fail(ErrorCode::kInvalidArgument, "'", text, "' is no size from 1 to 1000000");
  }
  return *value;
}

// `v`, `lo:hi`, `lo:hi:step`.
Status append_range(std::string_view text, Sizes& sizes) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) {
    return fail(ErrorCode::kInvalidArgument, "'", text, "' is no range: LOW:HIGH:STEP");
  }
  FORETUNE_TRY(const std::int64_t low, parse_size(parts[0]));
  std::int64_t high = low;
  std::int64_t step = 1;
  if (parts.size() > 1) {
    FORETUNE_TRY(high, parse_size(parts[1]));
  }
  if (parts.size() > 2) {
    FORETUNE_TRY(step, parse_size(parts[2]));
  }
  if (high < low) {
    return fail(ErrorCode::kInvalidArgument, "the range '", text, "' ends before it begins");
  }
  for (std::int64_t size = low; size <= high; size += step) {
    sizes.push_back(size);
  }
  return {};
}

// "64:128:16,3|5|7"
Result<std::vector<Sizes>> parse_dimensions(std::string_view option, std::string_view text,
                                            std::size_t count) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != count) {
    return fail(ErrorCode::kInvalidArgument, option, " takes ", count,
                " sizes or ranges joined by commas, and '", text, "' has ", parts.size());
  }
  std::vector<Sizes> dimensions;
  for (const std::string_view part : parts) {
    Sizes sizes;
    for (const std::string_view range : split(part, '|')) {
      if (const Status status = append_range(trim(range), sizes); !status) {
        return fail(status.error().code, option, ": ", status.error().message);
      }
    }
    // A list with two benchmarks of one name could not be read again.
    Sizes sorted = sizes;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      return fail(ErrorCode::kInvalidArgument, option, ": ", foretune::quoted(part), " has ",
                  *twice, " twice");
    }
    dimensions.push_back(std::move(sizes));
  }
  return dimensions;
}

class Generator {
 public:
  explicit Generator(const BenchmarkGenerator& options) : options_(options) {}

  Result<std::vector<Benchmark>> run() {
    if (options_.kind == "mm") {
      FORETUNE_TRY_STATUS(products());
    } else if (options_.kind == "conv") {
      FORETUNE_TRY_STATUS(convolutions());
    } else {
      return fail(ErrorCode::kInvalidArgument, "there is no kind '", options_.kind,
                  "' of benchmarks; there are mm and conv");
    }
    return std::move(out_);
  }

 private:
  Status products() {
    FORETUNE_TRY(const std::vector<Sizes> a, parse_dimensions("dimA", options_.dim_a, 2));
    FORETUNE_TRY(const std::vector<Sizes> b, parse_dimensions("dimB", options_.dim_b, 2));
    if (a[1] != b[0]) {
      return fail(ErrorCode::kInvalidArgument,
                  "the columns of A and the rows of B are not the same list of sizes");
    }
    FORETUNE_TRY_STATUS(check_product({a[0].size(), b[1].size(), a[1].size()}));
    for (const std::int64_t m : a[0]) {
      for (const std::int64_t n : b[1]) {
        for (const std::int64_t k : a[1]) {
          FORETUNE_TRY_STATUS(
              add(concat("mm", m, "_", n, "_", k), concat("mm m=", m, " n=", n, " k=", k)));
        }
      }
    }
    return {};
  }

  Status convolutions() {
    FORETUNE_TRY(const std::vector<Sizes> a, parse_dimensions("dimA", options_.dim_a, 4));
    FORETUNE_TRY(const std::vector<Sizes> b, parse_dimensions("dimB", options_.dim_b, 4));
    if (a[1] != b[1]) {
      return fail(ErrorCode::kInvalidArgument,
                  "the channels of images and of kernels are not the same list of sizes");
    }
    if (a[2].size() != a[3].size() || b[2].size() != b[3].size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "heights and widths go in pairs, so their lists have the same length");
    }
    FORETUNE_TRY_STATUS(
        check_product({a[0].size(), a[1].size(), a[2].size(), b[0].size(), b[2].size()}));
    for (const std::int64_t batch : a[0]) {
      for (const std::int64_t channels : a[1]) {
        for (std::size_t image = 0; image < a[2].size(); ++image) {
          for (const std::int64_t out : b[0]) {
            for (std::size_t kernel = 0; kernel < b[2].size(); ++kernel) {
              FORETUNE_TRY_STATUS(add(
                  concat("conv", batch, "_", channels, "_", pair(a[2][image], a[3][image]), "_",
                         out, "_", pair(b[2][kernel], b[3][kernel])),
                  concat("conv b=", batch, " c=", channels, " h=", a[2][image], " w=", a[3][image],
                         " o=", out, " r=", b[2][kernel], " s=", b[3][kernel])));
            }
          }
        }
      }
    }
    return {};
  }

  static std::string pair(std::int64_t height, std::int64_t width) {
    return height == width ? concat(height) : concat(height, "x", width);
  }

  static Status check_count(std::size_t count) {
    if (count > kMaxBenchmarks) {
      return fail(ErrorCode::kInvalidArgument, "these would be ", count,
                  " benchmarks, more than a million");
    }
    return {};
  }

  // The product of five lists of a million sizes each overflows 64 bits.
  static Status check_product(std::initializer_list<std::size_t> factors) {
    std::size_t count = 1;
    for (const std::size_t factor : factors) {
      if (factor > kMaxBenchmarks / count) {
        return fail(ErrorCode::kInvalidArgument, "these would be more than a million benchmarks");
      }
      count *= factor;
    }
    return {};
  }

  Status add(const std::string& name, const std::string& text) {
    FORETUNE_TRY(
        loop::Computation computation,
        loop::parse_computation(options_.words.empty() ? text : concat(text, " ", options_.words)));
    Benchmark benchmark{.name = name, .computation = std::move(computation), .schedule = {}};
    if (!options_.permute) {
      out_.push_back(std::move(benchmark));
      return {};
    }
    return add_orders(benchmark);
  }

  // Adds all orders of the loops. Loops of one round stay outside, in their order.
  Status add_orders(const Benchmark& plain) {
    std::vector<std::size_t> order;
    for (std::size_t v = 0; v < plain.computation.vars.size(); ++v) {
      if (plain.computation.vars[v].extent > 1) {
        order.push_back(v);
      }
    }
    if (order.size() > kMaxPermuted) {
      return fail(ErrorCode::kInvalidArgument, plain.name, " has ", order.size(),
                  " loops, and more than ", kMaxPermuted, " have too many orders");
    }
    do {
      FORETUNE_TRY_STATUS(check_count(out_.size() + 1));
      Benchmark permuted = plain;
      permuted.name += '.';
      loop::Nest nest = loop::Nest::plain(plain.computation);
      const std::size_t outside = nest.loops.size() - order.size();
      for (std::size_t i = 0; i < order.size(); ++i) {
        permuted.name += plain.computation.vars[order[i]].name;
        const auto at = std::find_if(nest.loops.begin(), nest.loops.end(),
                                     [&](const loop::Loop& loop) { return loop.var == order[i]; });
        const int from = static_cast<int>(at - nest.loops.begin());
        const int to = static_cast<int>(outside + i);
        if (from != to) {
          permuted.schedule.push_back(loop::Action::move(from, to));
          FORETUNE_TRY(nest, loop::apply(plain.computation, nest, permuted.schedule.back()));
        }
      }
      out_.push_back(std::move(permuted));
    } while (std::next_permutation(order.begin(), order.end()));
    return {};
  }

  const BenchmarkGenerator& options_;
  std::vector<Benchmark> out_;
};

Result<std::vector<Benchmark>> parse_file(std::string_view text,
                                          const std::filesystem::path& path) {
  if (!is_loop_tool(text)) {
    return parse_benchmarks(text, path.string());
  }
  Result<Benchmark> benchmark = parse_loop_tool(text, path.stem().string());
  if (!benchmark) {
    return fail_because(benchmark.error(), path.string());
  }
  std::vector<Benchmark> out;
  out.push_back(*std::move(benchmark));
  return out;
}

Result<std::vector<Benchmark>> read_folder(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  // This is not a range-for, because its increments throw.
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    const std::filesystem::path extension = it->path().extension();
    if (extension == ".txt" || (extension.empty() && it->is_regular_file())) {
      files.push_back(it->path());
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list ", path.string(), ": ", error.message());
  }
  std::sort(files.begin(), files.end());
  std::vector<Benchmark> all;
  std::unordered_set<std::string> names;
  for (const std::filesystem::path& file : files) {
    FORETUNE_TRY(const std::string text, read_text_file(file.string()));
    // Files of LoopTune's larger data sets have no extension, and neither has a LICENSE.
    if (file.extension().empty() && !is_loop_tool(text)) {
      continue;
    }
    FORETUNE_TRY(std::vector<Benchmark> some, parse_file(text, file));
    for (Benchmark& benchmark : some) {
      if (!names.insert(benchmark.name).second) {
        return fail(ErrorCode::kInvalidArgument, file.string(), ": another file of ", path.string(),
                    " has a '", benchmark.name, "', too");
      }
      all.push_back(std::move(benchmark));
    }
  }
  if (all.empty()) {
    return fail(ErrorCode::kNotFound, path.string(), " has no *.txt with benchmarks");
  }
  return all;
}

std::optional<std::string_view> embedded(std::string_view name) {
  for (const EmbeddedText& text : nest_benchmark_texts()) {
    if (text.name == name) {
      return text.text;
    }
  }
  return std::nullopt;
}

Result<std::vector<Benchmark>> one_of(std::string_view dataset, std::string_view name) {
  FORETUNE_TRY(std::vector<Benchmark> all, load_benchmarks(dataset));
  std::vector<std::string> names;
  for (Benchmark& benchmark : all) {
    if (benchmark.name == name) {
      return std::vector<Benchmark>{std::move(benchmark)};
    }
    names.push_back(benchmark.name);
  }
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kNotFound, dataset, " has no benchmark '", name, "'",
              near.empty() ? std::string() : concat("; did you mean '", near, "'?"));
}

// Finds a benchmark in the data sets that come with the library. They may have different benchmarks
// of the same name.
Result<std::vector<Benchmark>> one_of_all(std::string_view name) {
  std::vector<std::string> datasets;
  std::vector<std::string> names;
  std::vector<Benchmark> found;
  std::string_view found_in;
  for (const EmbeddedText& text : nest_benchmark_texts()) {
    datasets.emplace_back(text.name);
    FORETUNE_TRY(std::vector<Benchmark> all, parse_benchmarks(text.text, text.name));
    for (Benchmark& benchmark : all) {
      names.push_back(benchmark.name);
      if (benchmark.name != name) {
        continue;
      }
      if (found.empty()) {
        found_in = text.name;
        found.push_back(std::move(benchmark));
      } else if (to_text({&benchmark, 1}) != to_text(found)) {
        return fail(ErrorCode::kInvalidArgument, "'", name, "' means two benchmarks: name ",
                    found_in, "/", name, " or ", text.name, "/", name);
      }
    }
  }
  if (!found.empty()) {
    return found;
  }
  names.insert(names.begin(), datasets.begin(), datasets.end());
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kNotFound, "there is no file, data set or benchmark ",
              foretune::quoted(name),
              near.empty() ? concat("; there are ", join(datasets, ", "))
                           : concat("; did you mean '", near, "'?"));
}

}  // namespace

loop::Nest Benchmark::start() const {
  const auto nest = loop::apply_all(computation, schedule);
  FORETUNE_CHECK(nest.has_value());
  return *nest;
}

Result<std::vector<Benchmark>> parse_benchmarks(std::string_view text, std::string_view source) {
  std::vector<Benchmark> out;
  std::unordered_set<std::string> names;
  std::size_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (number == 1 && line != kHeader) {
      return fail(ErrorCode::kInvalidArgument, source, " does not begin with '", kHeader, "'");
    }
    if (line.empty() || line.front() == '#') {
      continue;
    }
    auto benchmark = parse_line(line);
    if (!benchmark) {
      return fail(benchmark.error().code, source, ":", number, ": ", benchmark.error().message);
    }
    if (!names.insert(benchmark->name).second) {
      return fail(ErrorCode::kInvalidArgument, source, ":", number, ": '", benchmark->name,
                  "' is there twice");
    }
    out.push_back(*std::move(benchmark));
  }
  if (out.empty()) {
    return fail(ErrorCode::kInvalidArgument, source, " has no benchmark");
  }
  return out;
}

std::string to_text(std::span<const Benchmark> benchmarks) {
  std::size_t width = 0;
  for (const Benchmark& benchmark : benchmarks) {
    width = std::max(width, benchmark.name.size());
  }
  std::string out = concat(kHeader, "\n");
  for (const Benchmark& benchmark : benchmarks) {
    out += benchmark.name;
    out.append(width + 2 - benchmark.name.size(), ' ');
    out += benchmark.computation.name;
    if (!benchmark.schedule.empty()) {
      out += concat(" ; ", loop::to_text(benchmark.computation, benchmark.schedule));
    }
    out += '\n';
  }
  return out;
}

Result<std::vector<Benchmark>> generate_benchmarks(const BenchmarkGenerator& generator) {
  return Generator(generator).run();
}

std::vector<Benchmark> take_test_part(std::vector<Benchmark>& benchmarks, double share,
                                      std::uint64_t seed) {
  // Groups benchmarks by computation, in order of appearance.
  std::vector<std::string> computations;
  std::unordered_set<std::string> known;
  for (const Benchmark& benchmark : benchmarks) {
    if (known.insert(benchmark.computation.name).second) {
      computations.push_back(benchmark.computation.name);
    }
  }
  Rng rng(seed);
  rng.shuffle(std::span(computations));
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(computations.size());
  computations.resize(static_cast<std::size_t>(std::lround(wanted)));
  const std::unordered_set<std::string> drawn(computations.begin(), computations.end());
  std::vector<Benchmark> test;
  std::vector<Benchmark> rest;
  for (Benchmark& benchmark : benchmarks) {
    (drawn.contains(benchmark.computation.name) ? test : rest).push_back(std::move(benchmark));
  }
  benchmarks = std::move(rest);
  return test;
}

std::vector<DatasetInfo> benchmark_datasets() {
  std::vector<DatasetInfo> out;
  for (const EmbeddedText& text : nest_benchmark_texts()) {
    DatasetInfo info{.name = std::string(text.name), .count = 0, .what = {}};
    std::size_t number = 0;
    for (const std::string_view line : split(text.text, '\n')) {
      if (number++ > 0 && line.starts_with("# ") && info.what.empty()) {
        info.what = line.substr(2);
      }
      info.count += line.empty() || line.front() == '#' ? 0U : 1U;
    }
    out.push_back(std::move(info));
  }
  return out;
}

Result<std::vector<Benchmark>> load_benchmarks(std::string_view name) {
  if (const auto text = embedded(name)) {
    return parse_benchmarks(*text, name);
  }
  std::error_code error;
  const std::filesystem::path path(name);
  if (std::filesystem::is_directory(path, error)) {
    return read_folder(path);
  }
  if (std::filesystem::exists(path, error)) {
    FORETUNE_TRY(const std::string text, read_text_file(path.string()));
    return parse_file(text, path);
  }
  if (name.find_first_of(" =") != std::string_view::npos) {
    FORETUNE_TRY(loop::Computation computation, loop::parse_computation(name));
    std::vector<Benchmark> out;
    out.push_back(
        {.name = computation.name, .computation = std::move(computation), .schedule = {}});
    return out;
  }
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) {
    const std::string_view dataset = name.substr(0, slash);
    if (embedded(dataset) || std::filesystem::exists(dataset, error)) {
      return one_of(dataset, name.substr(slash + 1));
    }
  }
  return one_of_all(name);
}

}  // namespace foretune::loop::gym
