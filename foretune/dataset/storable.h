// Checks that a file can hold a data set. Writers refuse everything else, so that no reader ever
// refuses a written file; readers check the same. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/measurement.h"

namespace foretune::dataset_internal {

inline constexpr std::size_t kMaxNameBytes = 65536;                  // devices, labels, baselines
inline constexpr std::size_t kMaxTextBytes = std::size_t{8} << 20U;  // texts of the header
inline constexpr std::size_t kMaxSequenceWords = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxParameters = 4096;
inline constexpr std::size_t kMaxLabels = 65536;  // of one parameter
inline constexpr std::size_t kMaxContexts = 65534;
inline constexpr std::size_t kMaxRows = 0xfffffffeU;
// A longer time is a mistake. The median of a shorter one fits a float.
inline constexpr float kLongestNs = 1e30F;

Status check_header(const DatasetHeader& header);
Status check_problem(const DatasetHeader& header, const Problem& problem);
Status check_config(const DatasetHeader& header, std::uint64_t schema_id, const Config& config);
Status check_context(const Context& context);
// Checks outcome, stage and time: a censored row has a time, an ok row may lack it when it has
// other metrics, all other rows and those of a later stage have none.
Status check_row(const Dataset::Row& row, bool has_metrics);
Status check_metric(const Dataset& dataset, const Dataset::ExtraMetric& metric);
Status check_samples(std::span<const float> samples_ns);
Status check_baseline(const Dataset& dataset, const Dataset::Baseline& baseline);
Status check_notes(const Notes& notes);

// Checks everything, also that all references exist and that entries are in the order of rows.
Status check_dataset(const Dataset& dataset);

}  // namespace foretune::dataset_internal
