// Segments hold many rows by columns. Values that rarely differ (context, outcome, stage, flags,
// reason) are stored once per segment as a state; a row has the number of its state.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "foretune/dataset/internal/columns.h"
#include "foretune/dataset/quantise.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/storable.h"

namespace foretune::dataset_internal {
namespace {

struct RowState {
  std::uint16_t context = 0;
  Outcome outcome = Outcome::kOk;
  Stage stage = Stage::kNone;
  std::uint8_t flags = 0;
  std::uint32_t reason = 0;
  auto operator<=>(const RowState&) const = default;
};

// Gives every row the number of its state, and returns the states in order of appearance.
std::vector<RowState> number_states(std::span<const Dataset::Row> rows,
                                    std::span<std::uint32_t> numbers) {
  std::vector<RowState> states;
  std::map<RowState, std::uint32_t> number_of;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Dataset::Row& row = rows[i];
    const RowState state{row.context, row.outcome, row.stage, row.flags, row.reason};
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

void put_columns(ByteWriter& out, std::span<const Dataset::Row> rows) {
  std::vector<std::uint32_t> values(rows.size());
  const std::vector<RowState> states = number_states(rows, values);
  out.put_varint(states.size());
  for (const RowState& state : states) {
    out.put_varint(state.context);
    out.put(pack_outcome(state.outcome, state.stage), state.flags);
    out.put_varint(state.reason);
  }
  put_column(out, values);
  const auto put = [&](const auto& value_of) {
    std::transform(rows.begin(), rows.end(), values.begin(), value_of);
    put_column(out, values);
  };
  put([](const Dataset::Row& row) { return row.problem; });
  put([](const Dataset::Row& row) { return row.config; });
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

// Returns the entries of rows [begin, end). Entries are in the order of rows.
template <class Entry>
std::span<const Entry> entries_of(std::span<const Entry> entries, std::size_t begin,
                                  std::size_t end) {
  const auto by_row = [](const Entry& entry, std::size_t row) { return entry.row < row; };
  const auto first = std::lower_bound(entries.begin(), entries.end(), begin, by_row);
  return {first, std::lower_bound(first, entries.end(), end, by_row)};
}

tl::unexpected<Error> unreadable() {
  return fail(ErrorCode::kCorrupt, "a segment has another length than its content");
}

Result<std::vector<RowState>> get_states(ByteReader& reader, const Dataset& dataset) {
  const std::uint64_t count = reader.get_count(4);
  std::vector<RowState> states(count);
  for (RowState& state : states) {
    const std::uint64_t context = reader.get_varint();
    unpack_outcome(reader.get<std::uint8_t>(), state.outcome, state.stage);
    state.flags = reader.get<std::uint8_t>();
    const std::uint64_t reason = reader.get_varint();
    if (!reader.ok()) {
      return unreadable();
    }
    FORETUNE_TRY_STATUS(check_definitions(dataset, 0, 0, context, reason));
    if (!is_known(state.outcome) || !is_known(state.stage)) {
      const bool is_outcome = !is_known(state.outcome);
      return fail(ErrorCode::kCorrupt, "this version does not know the ",
                  is_outcome ? "outcome " : "stage ",
                  is_outcome ? static_cast<int>(state.outcome) : static_cast<int>(state.stage),
                  " of a row");
    }
    state.context = static_cast<std::uint16_t>(context);
    state.reason = static_cast<std::uint32_t>(reason);
  }
  return states;
}

// The readers of a segment's columns, in the order of the file.
struct SegmentColumns {
  SegmentColumns(ByteReader& reader, std::size_t rows)
      : numbers{ColumnReader(reader, rows), ColumnReader(reader, rows), ColumnReader(reader, rows),
                ColumnReader(reader, rows), ColumnReader(reader, rows), ColumnReader(reader, rows)},
        times(reader.get_bytes(rows * sizeof(float))) {}
  std::array<ColumnReader, 6> numbers;
  std::span<const std::byte> times;
};

// Number of rows assembled at a time, so that a piece of every column stays in the first cache.
constexpr std::size_t kPiece = 512;

// Fills `out`, the segment's rows from `first` on, and counts the ok rows without a time. Returns
// false when a value is out of range.
bool read_piece(SegmentColumns& columns, std::size_t first, const std::vector<RowState>& states,
                const Dataset& dataset, std::span<Dataset::Row> out, std::size_t& untimed) {
  std::array<std::array<std::uint32_t, kPiece>, 6>
      pieces;  // every value is written before it is read
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    columns.numbers.at(i).next(std::span(pieces.at(i)).first(out.size()));
  }
  const auto& [state, problem, config, samples, median, spread] = pieces;
  const std::size_t problems = dataset.problems().size();
  const std::size_t configs = dataset.configs().size();
  bool good = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (state[i] >= states.size()) {
      return false;
    }
    const RowState& shared = states[state[i]];
    Dataset::Row& row = out[i];
    row.problem = problem[i];
    row.config = config[i];
    row.context = shared.context;
    row.outcome = shared.outcome;
    row.stage = shared.stage;
    row.flags = shared.flags;
    row.reason = shared.reason;
    row.samples = static_cast<std::uint16_t>(samples[i]);
    std::memcpy(&row.time_ns, columns.times.data() + (first + i) * sizeof(float), sizeof(float));
    row.median_ns = decode_median(static_cast<std::uint16_t>(median[i]), row.time_ns);
    row.spread = decode_spread(static_cast<std::uint16_t>(spread[i]));
    // Checks like check_row(). A row without a time has no samples, median or spread either.
    const std::uint32_t beside = samples[i] | median[i] | spread[i];
    const bool is_timed = shared.outcome <= Outcome::kCensored &&
                          shared.stage != Stage::kEvaluate && row.time_ns > 0 &&
                          row.time_ns <= kLongestNs && beside < 0x10000U;
    const bool has_none = shared.outcome != Outcome::kCensored &&
                          std::bit_cast<std::uint32_t>(row.time_ns) == 0 && beside == 0;
    good = good && problem[i] < problems && config[i] < configs && (is_timed || has_none);
    untimed += has_none && shared.outcome == Outcome::kOk ? 1U : 0U;
  }
  return good;
}

// Reads the optional columns: metrics besides the time, and samples, each with its row.
Status get_sparse(ByteReader& reader, std::size_t first, std::uint64_t rows, Dataset& dataset) {
  const std::uint64_t extras = reader.get_count(kMinMetricBytes + 1);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < extras && reader.ok(); ++i) {
    const std::uint64_t row = reader.get_varint();
    if (row < last || row >= rows) {
      return fail(ErrorCode::kCorrupt, "a metric belongs to no row, or is out of order");
    }
    last = row;
    FORETUNE_TRY(Dataset::ExtraMetric metric, decode_metric(reader, dataset));
    metric.row = static_cast<RowIndex>(first + row);
    dataset.add_extra(metric);
  }
  const std::uint64_t sampled = reader.get_count(2 + sizeof(float));
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < sampled && reader.ok(); ++i) {
    const std::uint64_t row = reader.get_varint();
    if (row < next || row >= rows) {
      return fail(ErrorCode::kCorrupt, "samples belong to no row, or are out of order");
    }
    next = row + 1;
    const std::uint64_t count = reader.get_varint();
    FORETUNE_TRY(std::vector<float> samples_ns, decode_samples(reader, count));
    dataset.add_samples({static_cast<RowIndex>(first + row), std::move(samples_ns)});
  }
  return {};
}

// Checks that ok rows without a time, from `first` on, have a metric instead.
Status check_untimed(const Dataset& dataset, std::size_t first) {
  const auto extras = entries_of(dataset.extras(), first, dataset.size());
  std::size_t next = 0;
  for (std::size_t i = first; i < dataset.size(); ++i) {
    while (next < extras.size() && extras[next].row < i) {
      ++next;
    }
    const bool has_metrics = next < extras.size() && extras[next].row == i;
    const Status status = check_row(dataset.rows()[i], has_metrics);
    if (!status) {
      return fail(ErrorCode::kCorrupt, status.error().message);
    }
  }
  return {};
}

}  // namespace

void encode_segment(ByteWriter& out, const Dataset& dataset, std::size_t begin, std::size_t end,
                    bool keep_samples) {
  out.put_varint(end - begin);
  put_columns(out, dataset.rows().subspan(begin, end - begin));
  const auto extras = entries_of(dataset.extras(), begin, end);
  out.put_varint(extras.size());
  for (const Dataset::ExtraMetric& extra : extras) {
    out.put_varint(extra.row - begin);
    encode_metric(out, extra);
  }
  const auto samples = entries_of(dataset.samples(), begin, keep_samples ? end : begin);
  out.put_varint(samples.size());
  for (const Dataset::Samples& kept : samples) {
    out.put_varint(kept.row - begin);
    out.put_varint(kept.values_ns.size());
    out.put_bytes(std::as_bytes(std::span(kept.values_ns)));
  }
}

Status decode_segment(ByteReader& reader, Dataset& dataset) {
  // Times take 4 bytes a row, which bounds the number of rows.
  const std::uint64_t rows = reader.get_count(sizeof(float));
  if (!reader.ok() || rows > kMaxRows - dataset.size()) {
    return fail(ErrorCode::kCorrupt, "a segment claims more rows than it can hold");
  }
  FORETUNE_TRY(const std::vector<RowState> states, get_states(reader, dataset));
  SegmentColumns columns(reader, rows);
  if (!reader.ok()) {
    return unreadable();
  }
  const std::size_t first = dataset.size();
  const std::span<Dataset::Row> out = dataset.extend(rows);
  std::size_t untimed = 0;
  for (std::size_t done = 0; done < rows; done += kPiece) {
    const std::size_t count = std::min<std::size_t>(kPiece, rows - done);
    if (!read_piece(columns, done, states, dataset, out.subspan(done, count), untimed)) {
      return fail(ErrorCode::kCorrupt, "among rows ", done, " to ", done + count - 1,
                  " of a segment a value is out of range");
    }
  }
  FORETUNE_TRY_STATUS(get_sparse(reader, first, rows, dataset));
  if (untimed > 0) {
    FORETUNE_TRY_STATUS(check_untimed(dataset, first));
  }
  return reader.ok() && reader.at_end() ? Status() : Status(unreadable());
}

}  // namespace foretune::dataset_internal
