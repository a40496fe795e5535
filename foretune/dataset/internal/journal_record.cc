#include "foretune/dataset/internal/journal_record.h"

#include <algorithm>
#include <optional>

#include "foretune/dataset/records.h"
#include "foretune/dataset/storable.h"

namespace foretune::dataset_internal {
namespace {

constexpr std::size_t kDefinitionBytes = std::size_t{64} << 20U;  // of one block of definitions

// Appends one block, or several where the definitions are very long.
template <class Items, class Encode>
void append_definitions(ByteWriter& out, BlockType type, const Items& items, std::size_t first,
                        const Encode& encode) {
  if (items.size() <= first) {
    return;
  }
  ByteWriter payload;
  for (std::size_t i = first; i < items.size(); ++i) {
    encode(payload, items[i]);
    if (payload.size() >= kDefinitionBytes && i + 1 < items.size()) {
      append_block(out, type, payload.bytes());
      payload = ByteWriter();
    }
  }
  append_block(out, type, payload.bytes());
}

// Fails unless the data set may have all of these metrics, including undeclared ones.
Status check_names(const Dataset& tables, std::span<const MetricValue> values) {
  std::size_t added = 0;
  for (const MetricValue& value : values) {
    if (!tables.find_metric(value.metric)) {
      FORETUNE_TRY_STATUS(check_metric_info(metric_info(value.metric)));
      ++added;
    }
  }
  if (added > 0 && tables.metric_count() + added > kMaxMetrics) {
    return fail(ErrorCode::kUnsupported, "a data set holds at most ", kMaxMetrics, " metrics");
  }
  return {};
}

// Returns the error that says why measurements of `wanted` do not belong with those of `in_file`,
// which has another digest.
Status other_machine(const Fingerprint& in_file, const Fingerprint& wanted) {
  const double cores = in_file.hardware.get(HardwareValue::kCores);
  Fingerprint limited = wanted;
  limited.hardware.set(HardwareValue::kCores, cores);
  if (limited.digest() == in_file.digest()) {
    return fail(ErrorCode::kMismatch, "it was measured with the threads of ", cores,
                cores == 1 ? " core" : " cores", " of this machine, not of ",
                wanted.hardware.get(HardwareValue::kCores));
  }
  return fail(ErrorCode::kMismatch, "it was measured on another machine (", in_file.device, ")");
}

}  // namespace

Defined Defined::all_of(const Dataset& dataset) {
  return {dataset.header().metrics.size(), dataset.problems().size(), dataset.configs().size(),
          dataset.contexts().size(), dataset.reason_count()};
}

void append_beginning(ByteWriter& out, const DatasetHeader& header) {
  append_preamble(out);
  ByteWriter payload;
  encode_header(payload, header);
  append_block(out, BlockType::kHeader, payload.bytes());
}

bool is_only_begun(std::span<const std::byte> file) {
  ByteWriter preamble;
  append_preamble(preamble);
  const std::size_t common = std::min(file.size(), preamble.size());
  if (!std::equal(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(common),
                  preamble.bytes().begin())) {
    return false;
  }
  if (file.size() < preamble.size()) {
    return true;
  }
  auto reader = BlockReader::create(file);
  if (!reader) {
    return false;
  }
  const auto first = reader->next();
  return first && !*first;
}

void append_new_definitions(ByteWriter& out, const Dataset& dataset, const Defined& defined) {
  append_definitions(out, BlockType::kMetrics, dataset.header().metrics, defined.metrics,
                     &encode_metric_info);
  append_definitions(out, BlockType::kProblems, dataset.problems(), defined.problems,
                     &encode_problem);
  append_definitions(out, BlockType::kConfigs, dataset.configs(), defined.configs, &encode_config);
  append_definitions(out, BlockType::kContexts, dataset.contexts(), defined.contexts,
                     &encode_context);
  append_definitions(out, BlockType::kReasons, dataset.reasons(), defined.reasons,
                     [](ByteWriter& to, const std::string& reason) { to.put_string(reason); });
}

void append_baselines(ByteWriter& out, const Dataset& dataset) {
  const bool has_metrics =
      std::any_of(dataset.baselines().begin(), dataset.baselines().end(),
                  [](const Dataset::Baseline& baseline) { return !baseline.metrics.empty(); });
  append_definitions(out, has_metrics ? BlockType::kMetricBaselines : BlockType::kBaselines,
                     dataset.baselines(), 0,
                     has_metrics ? &encode_metric_baseline : &encode_baseline);
}

void append_notes(ByteWriter& out, const Notes& notes) {
  ByteWriter payload;
  for (const auto& [name, text] : notes) {
    payload.put_string(name);
    payload.put_string(text);
  }
  append_block(out, BlockType::kNotes, payload.bytes());
}

Status check_measurement(const Dataset& tables, std::uint64_t schema_id,
                         const Measurement& measurement) {
  FORETUNE_TRY_STATUS(check_problem(tables.header(), measurement.problem));
  FORETUNE_TRY_STATUS(check_config(tables.header(), schema_id, measurement.config));
  FORETUNE_TRY_STATUS(check_context(measurement.context));
  if (tables.contexts().size() >= kMaxContexts && !tables.find_context(measurement.context)) {
    return fail(ErrorCode::kUnsupported, "a data set holds at most ", kMaxContexts, " contexts");
  }
  return check_names(tables, measurement.metrics);
}

Status append_row(ByteWriter& out, const Dataset& tables, RowIndex row, const Defined& defined) {
  const Dataset::Row& stored = tables.rows()[row];
  const std::span<const Dataset::ExtraMetric> extras = tables.extras(row);
  FORETUNE_TRY_STATUS(check_row(stored, !extras.empty()));
  for (const Dataset::ExtraMetric& extra : extras) {
    FORETUNE_TRY_STATUS(check_metric(tables, extra));
  }
  std::span<const float> samples_ns;
  // Samples are in the order of rows, and writers append the latest row.
  if (!tables.samples().empty() && tables.samples().back().row == row) {
    samples_ns = tables.samples().back().values_ns;
    FORETUNE_TRY_STATUS(check_samples(samples_ns));
  }
  append_new_definitions(out, tables, defined);
  ByteWriter payload;
  encode_row(payload, stored, extras, samples_ns);
  append_block(out, BlockType::kRow, payload.bytes());
  return {};
}

Status check_same(const DatasetHeader& in_file, const DatasetHeader& wanted) {
  if (in_file.family != wanted.family) {
    return fail(ErrorCode::kMismatch, "it holds measurements of family '", in_file.family,
                "', not '", wanted.family, "'");
  }
  if (in_file.problem_type != wanted.problem_type) {
    return fail(ErrorCode::kMismatch, "it holds problems of another type");
  }
  if (in_file.config_schema != wanted.config_schema) {
    return fail(ErrorCode::kMismatch, "its configs have another schema (",
                in_file.config_schema.name, " v", in_file.config_schema.version,
                ") than this version of the family (", wanted.config_schema.name, " v",
                wanted.config_schema.version, ")");
  }
  if (in_file.role != wanted.role) {
    return fail(ErrorCode::kMismatch, "it is a ", to_string(in_file.role), " set, not a ",
                to_string(wanted.role), " set");
  }
  if (in_file.fingerprint.digest() != wanted.fingerprint.digest()) {
    return other_machine(in_file.fingerprint, wanted.fingerprint);
  }
  return {};
}

}  // namespace foretune::dataset_internal
