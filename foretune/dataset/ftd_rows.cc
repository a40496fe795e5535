#include "foretune/dataset/ftd_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "foretune/base/text.h"
#include "foretune/dataset/ftd_columns.h"
#include "foretune/dataset/quantise.h"

namespace foretune::ftd {
namespace {

void put_metric(ByteWriter& out, const MetricValue& value) {
  out.put(static_cast<std::uint8_t>(value.metric));
  out.put(value.value);
  out.put(value.spread);
  out.put_varint(value.samples);
}

MetricValue get_metric(ByteReader& in) {
  MetricValue value;
  value.metric = static_cast<MetricId>(in.get<std::uint8_t>());
  value.value = in.get<double>();
  value.spread = in.get<double>();
  const std::uint64_t samples = in.get_varint();
  if (samples > 0xffffffffU || !check_extra(value)) {
    in.fail();
  }
  value.samples = static_cast<std::uint32_t>(samples);
  return value;
}
constexpr std::size_t kMinMetricBytes = 18;

void put_floats(ByteWriter& out, std::span<const float> values) {
  out.put_varint(values.size());
  out.put_bytes(std::as_bytes(values));
}

std::vector<float> get_floats(ByteReader& in) {
  const std::uint64_t count = in.get_count(sizeof(float));
  const std::span<const std::byte> raw = in.get_bytes(count * sizeof(float));
  std::vector<float> values(raw.size() / sizeof(float));
  if (!raw.empty()) {
    std::memcpy(values.data(), raw.data(), raw.size());
  }
  if (values.empty() || !std::all_of(values.begin(), values.end(),
                                     [](float value) { return std::isfinite(value); })) {
    in.fail();
  }
  return values;
}

template <class Entry>
auto entries_of(std::span<const Entry> entries, RowIndex first, std::size_t count) {
  const auto by_row = [](const Entry& entry, std::size_t row) { return entry.row < row; };
  const auto begin = std::lower_bound(entries.begin(), entries.end(), std::size_t{first}, by_row);
  const auto end = std::lower_bound(begin, entries.end(), first + count, by_row);
  return std::span<const Entry>(begin, end);
}

// Whether a row may stand in a data set that defines so many values.
Status check_ids(const Dataset& dataset, std::uint64_t problem, std::uint64_t config,
                 std::uint64_t context, std::uint64_t reason) {
  const auto unknown = [](std::string_view what, std::uint64_t id, std::size_t count) {
    return fail(ErrorCode::kCorrupt, "a row names ", what, " ", id, ", but only ", count,
                " are defined");
  };
  if (problem >= dataset.problems().size()) {
    return unknown("problem", problem, dataset.problems().size());
  }
  if (config >= dataset.configs().size()) {
    return unknown("config", config, dataset.configs().size());
  }
  if (context >= dataset.contexts().size()) {
    return unknown("context", context, dataset.contexts().size());
  }
  if (reason >= dataset.reason_count()) {
    return unknown("reason", reason, dataset.reason_count());
  }
  return {};
}

tl::unexpected<Error> unreadable() {
  return fail(ErrorCode::kCorrupt, "its contents cannot be read");
}

Status decode_row(ByteReader& in, Dataset& dataset) {
  const std::uint64_t problem = in.get_varint();
  const std::uint64_t config = in.get_varint();
  const std::uint64_t context = in.get_varint();
  Dataset::Row row;
  row.outcome = static_cast<Outcome>(in.get<std::uint8_t>());
  row.stage = static_cast<Stage>(in.get<std::uint8_t>());
  row.flags = in.get<std::uint8_t>();
  const std::uint64_t reason = in.get_varint();
  row.time_ns = in.get<float>();
  row.median_ns = decode_median(in.get<std::uint16_t>(), row.time_ns);
  row.spread = decode_spread(in.get<std::uint16_t>());
  row.samples = in.get<std::uint16_t>();
  if (!in.ok()) {
    return unreadable();
  }
  FORETUNE_TRY_STATUS(check_ids(dataset, problem, config, context, reason));
  row.problem = static_cast<std::uint32_t>(problem);
  row.config = static_cast<std::uint32_t>(config);
  row.context = static_cast<std::uint16_t>(context);
  row.reason = static_cast<std::uint32_t>(reason);
  if (const Status status = check_row(row); !status) {
    return fail(ErrorCode::kCorrupt, status.error().message);
  }
  const auto index = static_cast<RowIndex>(dataset.size());
  dataset.add_row(row);
  const std::uint64_t extras = in.get_count(kMinMetricBytes);
  for (std::uint64_t i = 0; i < extras && in.ok(); ++i) {
    dataset.add_extra({index, get_metric(in)});
  }
  if (in.get<std::uint8_t>() != 0) {
    dataset.add_samples({index, get_floats(in)});
  }
  return in.ok() ? Status() : unreadable();
}

// What few rows differ in, kept once per segment.
struct RowState {
  std::uint32_t context = 0;
  Outcome outcome = Outcome::kOk;
  Stage stage = Stage::kNone;
  std::uint8_t flags = 0;
  std::uint32_t reason = 0;
  auto operator<=>(const RowState&) const = default;
};

RowState state_of(const Dataset::Row& row) {
  return {row.context, row.outcome, row.stage, row.flags, row.reason};
}

// Gives every row the number of its state; the states come out in order of appearance.
std::vector<RowState> number_states(std::span<const Dataset::Row> rows,
                                    std::vector<std::uint32_t>& numbers) {
  std::vector<RowState> states;
  std::map<RowState, std::uint32_t> number_of;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowState state = state_of(rows[i]);
    if (states.empty() || states[last] != state) {
      const auto [found, is_new] =
          number_of.emplace(state, static_cast<std::uint32_t>(states.size()));
      if (is_new) {
        states.push_back(state);
      }
      last = found->second;
    }
    numbers[i] = last;
  }
  return states;
}

Result<std::vector<RowState>> get_states(ByteReader& in, const Dataset& dataset) {
  const std::uint64_t count = in.get_count(5);
  std::vector<RowState> states(count);
  for (RowState& state : states) {
    const std::uint64_t context = in.get_varint();
    state.outcome = static_cast<Outcome>(in.get<std::uint8_t>());
    state.stage = static_cast<Stage>(in.get<std::uint8_t>());
    state.flags = in.get<std::uint8_t>();
    const std::uint64_t reason = in.get_varint();
    if (!in.ok() || context >= dataset.contexts().size() || reason >= dataset.reason_count() ||
        state.outcome > Outcome::kWrongResult || state.stage > Stage::kVerify) {
      return unreadable();
    }
    state.context = static_cast<std::uint32_t>(context);
    state.reason = static_cast<std::uint32_t>(reason);
  }
  return states;
}

// The columns of a segment while it is read.
struct SegmentReader {
  SegmentReader(ByteReader& in, std::size_t rows)
      : problem(in, rows),
        config(in, rows),
        state(in, rows),
        samples(in, rows),
        median(in, rows),
        spread(in, rows),
        time_ns(in.get_bytes(rows * sizeof(float))) {}
  ColumnReader problem;
  ColumnReader config;
  ColumnReader state;
  ColumnReader samples;
  ColumnReader median;
  ColumnReader spread;
  std::span<const std::byte> time_ns;
};

// So many rows are put together at a time that a column's piece stays in the first cache.
constexpr std::size_t kPiece = 1024;

// Fills `out`, whose rows are the segment's from `first` on. False for values out of range.
bool read_piece(SegmentReader& in, std::size_t first, const std::vector<RowState>& states,
                const Dataset& dataset, std::span<Dataset::Row> out) {
  std::array<std::array<std::uint32_t, kPiece>, 6> pieces;  // NOLINT: filled before it is read
  std::size_t next = 0;
  for (ColumnReader* column :
       {&in.problem, &in.config, &in.state, &in.samples, &in.median, &in.spread}) {
    column->next(std::span(pieces.at(next++)).first(out.size()));
  }
  const auto& [problem, config, state, samples, median, spread] = pieces;
  const std::size_t problems = dataset.problems().size();
  const std::size_t configs = dataset.configs().size();
  bool good = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (problem[i] >= problems || config[i] >= configs || state[i] >= states.size()) {
      return false;
    }
    const RowState& shared = states[state[i]];
    Dataset::Row& row = out[i];
    row.problem = problem[i];
    row.config = config[i];
    row.context = static_cast<std::uint16_t>(shared.context);
    row.outcome = shared.outcome;
    row.stage = shared.stage;
    row.flags = shared.flags;
    row.reason = shared.reason;
    row.samples = static_cast<std::uint16_t>(samples[i]);
    std::memcpy(&row.time_ns, in.time_ns.data() + (first + i) * sizeof(float), sizeof(float));
    row.median_ns = decode_median(static_cast<std::uint16_t>(median[i]), row.time_ns);
    row.spread = decode_spread(static_cast<std::uint16_t>(spread[i]));
    const bool timed = shared.outcome <= Outcome::kCensored;
    good &= timed ? row.time_ns > 0 && row.time_ns <= kMaxTimeNs
                  : row.time_ns == 0 && (samples[i] | spread[i]) == 0;
    good &= ((samples[i] | median[i] | spread[i]) >> 16U) == 0;
  }
  return good;
}

// The optional columns: metrics beside the time, and samples, each with the distance to the row
// before.
Status get_sparse(ByteReader& in, RowIndex first, std::size_t rows, Dataset& dataset) {
  const std::uint64_t extras = in.get_count(kMinMetricBytes + 1);
  std::uint64_t row = 0;
  for (std::uint64_t i = 0; i < extras && in.ok(); ++i) {
    row += std::min<std::uint64_t>(in.get_varint(), rows);
    const MetricValue value = get_metric(in);
    if (row >= rows) {
      return unreadable();
    }
    dataset.add_extra({static_cast<RowIndex>(first + row), value});
  }
  const std::uint64_t lists = in.get_count(1 + 1 + sizeof(float));
  row = 0;
  for (std::uint64_t i = 0; i < lists && in.ok(); ++i) {
    const std::uint64_t distance = std::min<std::uint64_t>(in.get_varint(), rows);
    row += distance;
    if (row >= rows || (i > 0 && distance == 0)) {
      return unreadable();
    }
    dataset.add_samples({static_cast<RowIndex>(first + row), get_floats(in)});
  }
  return in.ok() ? Status() : unreadable();
}

Status decode_segment(ByteReader& in, std::size_t rows, Dataset& dataset) {
  FORETUNE_TRY(const std::vector<RowState> states, get_states(in, dataset));
  SegmentReader columns(in, rows);
  if (!in.ok()) {
    return unreadable();
  }
  const auto first = static_cast<RowIndex>(dataset.size());
  const std::span<Dataset::Row> out = dataset.add_rows(rows);
  for (std::size_t done = 0; done < rows; done += kPiece) {
    const std::size_t count = std::min(kPiece, rows - done);
    if (!read_piece(columns, done, states, dataset, out.subspan(done, count))) {
      return fail(ErrorCode::kCorrupt, "a value among its rows ", done, " to ", done + count - 1,
                  " is out of range");
    }
  }
  return get_sparse(in, first, rows, dataset);
}

Status decode_baselines(ByteReader& in, Dataset& dataset) {
  const std::uint64_t count = in.get_count(9);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    Dataset::Baseline baseline;
    const std::uint64_t problem = in.get_varint();
    baseline.name = in.get_string(kMaxNameBytes);
    baseline.time_ns = in.get<float>();
    if (!in.ok() || problem >= dataset.problems().size() ||
        !(baseline.time_ns > 0 && baseline.time_ns <= kMaxTimeNs)) {
      return unreadable();
    }
    baseline.problem = static_cast<std::uint32_t>(problem);
    dataset.add_baseline(std::move(baseline));
  }
  return in.ok() ? Status() : unreadable();
}

}  // namespace

std::vector<std::byte> encode_row(const Dataset& dataset, const Watermark& written) {
  const Dataset::Row& row = dataset.rows()[0];
  ByteWriter out;
  put_definitions(out, dataset, written, Watermark::of(dataset));
  out.put_varint(row.problem);
  out.put_varint(row.config);
  out.put_varint(row.context);
  out.put(static_cast<std::uint8_t>(row.outcome));
  out.put(static_cast<std::uint8_t>(row.stage));
  out.put(row.flags);
  out.put_varint(row.reason);
  out.put(row.time_ns);
  out.put(encode_median(row.median_ns, row.time_ns));
  out.put(encode_spread(row.spread));
  out.put(row.samples);
  const auto extras = entries_of(dataset.extras(), 0, 1);
  out.put_varint(extras.size());
  for (const Dataset::ExtraMetric& extra : extras) {
    put_metric(out, extra.value);
  }
  const auto samples = entries_of(dataset.samples(), 0, 1);
  out.put(static_cast<std::uint8_t>(samples.empty() ? 0 : 1));
  if (!samples.empty()) {
    put_floats(out, samples[0].values_ns);
  }
  return out.take();
}

namespace {

void put_columns(ByteWriter& out, std::span<const Dataset::Row> rows) {
  std::vector<std::uint32_t> values(rows.size());
  const auto put = [&](const auto& value_of) {
    std::transform(rows.begin(), rows.end(), values.begin(), value_of);
    put_column(out, values);
  };
  std::vector<std::uint32_t> numbers(rows.size());
  const std::vector<RowState> states = number_states(rows, numbers);
  out.put_varint(states.size());
  for (const RowState& state : states) {
    out.put_varint(state.context);
    out.put(static_cast<std::uint8_t>(state.outcome));
    out.put(static_cast<std::uint8_t>(state.stage));
    out.put(state.flags);
    out.put_varint(state.reason);
  }
  put([](const Dataset::Row& row) { return row.problem; });
  put([](const Dataset::Row& row) { return row.config; });
  put_column(out, numbers);
  put([](const Dataset::Row& row) { return std::uint32_t{row.samples}; });
  put([](const Dataset::Row& row) {
    return std::uint32_t{encode_median(row.median_ns, row.time_ns)};
  });
  put([](const Dataset::Row& row) { return std::uint32_t{encode_spread(row.spread)}; });
  std::vector<float> times(rows.size());
  std::transform(rows.begin(), rows.end(), times.begin(),
                 [](const Dataset::Row& row) { return row.time_ns; });
  out.put_bytes(std::as_bytes(std::span(times)));
}

}  // namespace

std::vector<std::byte> encode_segment(const Dataset& dataset, RowIndex first, std::size_t count,
                                      const Watermark& written, const Watermark& defined,
                                      const SegmentOptions& options) {
  ByteWriter out;
  put_definitions(out, dataset, written, defined);
  put_columns(out, dataset.rows().subspan(first, count));
  const auto extras = entries_of(dataset.extras(), first, count);
  out.put_varint(extras.size());
  RowIndex last = first;
  for (const Dataset::ExtraMetric& extra : extras) {
    out.put_varint(extra.row - last);
    put_metric(out, extra.value);
    last = extra.row;
  }
  const auto samples = entries_of(dataset.samples(), first, options.keep_samples ? count : 0);
  out.put_varint(samples.size());
  last = first;
  for (const Dataset::Samples& entry : samples) {
    out.put_varint(entry.row - last);
    put_floats(out, entry.values_ns);
    last = entry.row;
  }
  return out.take();
}

std::vector<std::byte> encode_baselines(const Dataset& dataset, const Watermark& written) {
  ByteWriter out;
  put_definitions(out, dataset, written, Watermark::of(dataset));
  out.put_varint(dataset.baselines().size());
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    out.put_varint(baseline.problem);
    out.put_string(baseline.name);
    out.put(baseline.time_ns);
  }
  return out.take();
}

Status decode_block(const Block& block, Dataset& dataset) {
  ByteReader in(block.payload);
  FORETUNE_TRY_STATUS(get_definitions(in, dataset));
  switch (block.kind) {
    case BlockKind::kRow:
      FORETUNE_TRY_STATUS(decode_row(in, dataset));
      break;
    case BlockKind::kSegment:
      FORETUNE_TRY_STATUS(decode_segment(in, block.rows, dataset));
      break;
    case BlockKind::kBaselines:
      FORETUNE_TRY_STATUS(decode_baselines(in, dataset));
      break;
  }
  if (!in.at_end()) {
    return fail(ErrorCode::kCorrupt, in.remaining(), " bytes follow its contents");
  }
  return {};
}

}  // namespace foretune::ftd
