// Reads the CSV of CK Tile's data sets: GEMMs by m, n and k, or grouped convolutions by their
// sizes.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/exchange_ck.h"
#include "foretune/interop/ck/internal/ck_rows.h"
#include "foretune/interop/tables/internal/csv_columns.h"

namespace foretune::dataset_internal {
namespace {

using Column = std::optional<std::size_t>;

class Header {
 public:
  explicit Header(const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) {
      names_.emplace_back(trim(cell));
    }
  }

  [[nodiscard]] std::size_t size() const { return names_.size(); }
  // Returns the column of the first name that exists.
  [[nodiscard]] Column find(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found != names_.end()) {
        return static_cast<std::size_t>(found - names_.begin());
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> names_;
};

std::string_view without_mark(std::string_view text) {
  static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  return text.substr(0, 3) == kByteOrderMark ? text.substr(3) : text;
}

struct Columns {
  explicit Columns(const Header& header)
      : kernel(header.find({"kernel_name", "kernel"})),
        latency(header.find({"latency_ms"})),
        tflops(header.find({"measured_tflops", "tflops"})),
        dtype(header.find({"dtype"})),
        layout(header.find({"layout"})),
        arch(header.find({"arch"})),
        is_valid(header.find({"is_valid"})),
        error(header.find({"error"})),
        split_k(header.find({"split_k"})),
        non_zero(header.find({"non_zero"})),
        is_conv(header.find({"Hi"}).has_value()),
        count(header.size()) {
    m = header.find({"m", "M"});
    n = header.find({"n", "N"});
    k = header.find({"k", "K"});
    for (const CkConvSize& size : ck_conv_sizes()) {
      conv.push_back(header.find({size.name}));
    }
  }

  // Returns the name of a missing column; empty when none is missing.
  [[nodiscard]] std::string missing() const {
    if (!kernel) {
      return "kernel_name";
    }
    if (!latency && !tflops) {
      return "latency_ms or measured_tflops";
    }
    if (!is_conv) {
      return m && n && k ? "" : "m, n or k";
    }
    for (std::size_t i = 0; i < conv.size(); ++i) {
      const CkConvSize& size = ck_conv_sizes()[i];
      if (size.required && !conv[i]) {
        return std::string(size.name);
      }
    }
    return {};
  }

  Column kernel, latency, tflops, dtype, layout, arch, is_valid, error, split_k, non_zero, m, n, k;
  std::vector<Column> conv;  // of each of ck_conv_sizes()
  bool is_conv = false;
  std::size_t count = 0;
};

// Reads the cells of one record by column, and remembers whether one was invalid.
class Cells {
 public:
  explicit Cells(const std::vector<std::string>& cells) : cells_(cells) {}

  [[nodiscard]] std::string_view text(const Column& column) const {
    return column ? trim(cells_[*column]) : std::string_view();
  }
  std::int64_t integer(const Column& column, std::int64_t otherwise) {
    const std::string_view cell = text(column);
    if (cell.empty()) {
      return otherwise;
    }
    const auto value = parse_int(cell);
    is_damaged_ = is_damaged_ || !value;
    return value.value_or(otherwise);
  }
  std::optional<double> number(const Column& column) {
    const std::string_view cell = text(column);
    if (cell.empty()) {
      return std::nullopt;
    }
    const auto value = parse_double(cell);
    is_damaged_ = is_damaged_ || !value;
    return value;
  }
  std::optional<bool> flag(const Column& column) {
    const std::string cell = to_lower(text(column));
    if (cell.empty()) {
      return std::nullopt;
    }
    const bool yes = cell == "true" || cell == "1";
    is_damaged_ = is_damaged_ || (!yes && cell != "false" && cell != "0");
    return yes;
  }
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 private:
  const std::vector<std::string>& cells_;
  bool is_damaged_ = false;
};

std::optional<CkRun> run_of(const Columns& columns, const std::vector<std::string>& record) {
  Cells cells(record);
  CkRun run;
  run.kernel = cells.text(columns.kernel);
  run.dtype = cells.text(columns.dtype);
  run.layout = cells.text(columns.layout);
  run.arch = cells.text(columns.arch);
  run.error = cells.text(columns.error);
  run.is_valid = cells.flag(columns.is_valid);
  run.figures.latency_ms = cells.number(columns.latency);
  run.figures.tflops = cells.number(columns.tflops);
  run.is_all_zero = cells.integer(columns.non_zero, 1) == 0;
  if (columns.is_conv) {
    ConvSizes& sizes = run.conv.emplace();
    for (std::size_t i = 0; i < columns.conv.size(); ++i) {
      const CkConvSize& column = ck_conv_sizes()[i];
      std::int64_t& size = sizes.*column.size;
      size = cells.integer(columns.conv[i], column.required ? -1 : size);
    }
  } else {
    run.gemm = {cells.integer(columns.m, 0), cells.integer(columns.n, 0),
                cells.integer(columns.k, 0)};
    run.split_k = cells.integer(columns.split_k, 1);
  }
  return cells.is_damaged() ? std::nullopt : std::optional(std::move(run));
}

}  // namespace

bool is_ck_csv(std::string_view text) {
  std::string_view line = without_mark(text);
  line = line.substr(0, std::min<std::size_t>(line.find('\n'), 16384));
  std::vector<std::string> cells;
  if (!next_csv_record(line, cells)) {
    return false;
  }
  const Columns columns{Header(cells)};
  return columns.missing().empty();
}

Result<Dataset> import_ck_csv(std::string_view text, const ImportFacts& facts,
                              ImportReport* report) {
  text = without_mark(text);
  std::vector<std::string> cells;
  if (text.empty() || !next_csv_record(text, cells)) {
    return fail(ErrorCode::kCorrupt, "the CSV has no line of column names");
  }
  const Columns columns{Header(cells)};
  if (const std::string missing = columns.missing(); !missing.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the CSV has no column ", missing);
  }
  CkCollector collector(facts);
  std::size_t number = 1;
  while (!text.empty()) {
    const std::string place = concat("record ", ++number);
    if (!next_csv_record(text, cells)) {
      collector.add_broken("a quote that is never closed", place);
      break;
    }
    if (cells.size() == 1 && trim(cells[0]).empty()) {
      continue;
    }
    if (cells.size() != columns.count) {
      collector.add_broken("another number of columns than the first line", place);
    } else if (const auto run = run_of(columns, cells)) {
      collector.add(*run, place);
    } else {
      collector.add_broken("a number or flag that is none", place);
    }
  }
  return collector.finish(report);
}

}  // namespace foretune::dataset_internal
