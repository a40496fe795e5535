#include "foretune/model/forest/forest_engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "foretune/base/check.h"
#include "foretune/model/forest/internal/engine_values.h"

namespace foretune {
namespace {

template <class T>
T* at(std::byte* bytes, std::size_t offset) {
  return std::launder(reinterpret_cast<T*>(bytes + offset));
}

template <class T>
T* at(const std::byte* bytes, std::size_t offset) {
  return std::launder(reinterpret_cast<T*>(bytes + offset));
}

}  // namespace

void ForestEngine::begin(std::byte* codes) const {
  for (std::size_t i = 0; i < interaction_features_.size(); ++i) {
    new (codes + seen_offset_ + i * sizeof(Seen)) Seen{.low = UINT32_MAX, .high = 0};
  }
}

void ForestEngine::mark_missing(std::byte* codes, const Feature& feature, Seen& seen,
                                std::size_t first, std::size_t count, const double* values) const {
  std::array<std::uint64_t, kEngineBlockWords> nan{};
  std::array<std::uint64_t, kEngineBlockWords> zero{};
  for (std::size_t i = 0; i < count; ++i) {
    nan[i / 64] |= std::uint64_t{std::isnan(values[i])} << (i % 64);
    zero[i / 64] |= std::uint64_t{is_zero_or_nan(values[i])} << (i % 64);
  }
  for (std::size_t word = 0; word < kEngineBlockWords; ++word) {
    seen.any_nan = seen.any_nan || nan[word] != 0;
    seen.any_zero_or_nan = seen.any_zero_or_nan || zero[word] != 0;
  }
  if (feature.masks_nan) {
    std::memcpy(codes + feature.nan_offset + first / 8, nan.data(), sizeof(nan));
  }
  if (feature.masks_zero) {
    std::memcpy(codes + feature.zero_offset + first / 8, zero.data(), sizeof(zero));
  }
}

void ForestEngine::add_chunk(std::byte* codes, std::size_t first, std::size_t count,
                             const double* columns, std::size_t stride) const {
  FORETUNE_DCHECK(first % kEngineBlock == 0 && count > 0 && count <= kEngineBlock);
  for (std::size_t c = 0; c < interaction_features_.size(); ++c) {
    const Feature& feature = features_[interaction_features_[c]];
    if (feature.threshold_count == 0) {
      continue;
    }
    Seen& seen = *at<Seen>(codes, seen_offset_ + c * sizeof(Seen));
    const double* values = columns + c * stride;
    if (feature.masks_nan || feature.masks_zero) {
      mark_missing(codes, feature, seen, first, count, values);
    }
    const EngineRange range = kernels_->range(values, count);
    const auto low = static_cast<std::uint32_t>(
        count_below(feature.thresholds, feature.threshold_count, range.low));
    const auto high = static_cast<std::uint32_t>(
        count_below(feature.thresholds, feature.threshold_count, range.high));
    seen.low = std::min(seen.low, low);
    seen.high = std::max(seen.high, high);
    const double* thresholds = feature.thresholds.data() + low;
    std::byte* out = codes + feature.codes_offset + first * (feature.wide ? 2 : 1);
    if (feature.wide) {
      kernels_->quantise_words(values, count, thresholds, high - low, low,
                               at<std::uint16_t>(out, 0));
    } else if (low == high) {
      std::memset(out, static_cast<int>(low), count);
    } else {
      kernels_->quantise_bytes(values, count, thresholds, high - low, low,
                               at<std::uint8_t>(out, 0));
    }
    if (count < kEngineBlock) {
      const std::size_t width = feature.wide ? 2 : 1;
      std::memset(out + count * width, 0, (kEngineBlock - count) * width);
    }
  }
}

void ForestEngine::decide_problem_group(const Group& group, double value,
                                        std::uint8_t* states) const {
  const Feature& feature = features_[group.feature];
  std::uint8_t* out = states + group.first;
  if (is_missing(group.missing, value)) {
    std::fill_n(out, group.count, state_of(group.default_left));
    return;
  }
  if (group.missing == Forest::Missing::kCategorical) {
    for (std::uint32_t i = 0; i < group.count; ++i) {
      out[i] = state_of(contains(feature, predicates_[group.first + i].rank, value));
    }
    return;
  }
  const std::size_t code = count_below(feature.thresholds, feature.threshold_count, flushed(value));
  for (std::uint32_t i = 0; i < group.count; ++i) {
    out[i] = state_of(code <= predicates_[group.first + i].rank);
  }
}

void ForestEngine::decide_interaction_group(const Group& group, const Seen& seen,
                                            std::uint8_t* states) const {
  std::uint8_t* out = states + group.first;
  const bool some_missing = (group.missing == Forest::Missing::kNan && seen.any_nan) ||
                            (group.missing == Forest::Missing::kZero && seen.any_zero_or_nan);
  if (some_missing) {
    std::fill_n(out, group.count, kEngineVaries);
    return;
  }
  for (std::uint32_t i = 0; i < group.count; ++i) {
    const std::uint32_t rank = predicates_[group.first + i].rank;
    out[i] = rank < seen.low ? kEngineFalse : rank >= seen.high ? kEngineTrue : kEngineVaries;
  }
}

void ForestEngine::run_small(std::byte* scratch, const std::uint8_t* states,
                             const EngineColumn* columns) const {
  const EngineSmallQuery query{
      .cells = cells_.data(),
      .roots = roots_.data(),
      .tree_count = roots_.size(),
      .predicates = predicates_.data(),
      .first_config_predicate = first_config_predicate_,
      .config_predicates = static_cast<std::uint32_t>(config_bitsets_.size()),
      .predicate_count = static_cast<std::uint32_t>(predicates_.size()),
      .states = states,
      .config_words = small_config_words_.data(),
      .columns = columns,
      .all = small_all_.data(),
      .used_words = (candidates_ + 63) / 64,
      .words = at<std::uint64_t>(scratch, bit_space_offset_),
      .stack = scratch + small_stack_offset_,
      .table = at<double>(scratch, table_offset_),
      .sums = at<double>(scratch, sums_offset_)};
  kernels_->run_small[std::countr_zero(small_words_)](query);
}

void ForestEngine::run(const std::byte* codes, std::byte* scratch,
                       std::span<const double> problem_values) const {
  auto* states = at<std::uint8_t>(scratch, states_offset_);
  for (const Group& group : groups_) {
    const Feature& feature = features_[group.feature];
    if (feature.kind == FeatureKind::kProblem) {
      decide_problem_group(group, problem_values[feature.column], states);
    } else if (feature.kind == FeatureKind::kInteraction) {
      const Seen& seen = *at<const Seen>(codes, seen_offset_ + feature.column * sizeof(Seen));
      decide_interaction_group(group, seen, states);
    }
  }
  auto* columns = at<EngineColumn>(scratch, columns_offset_);
  for (std::size_t c = 0; c < interaction_features_.size(); ++c) {
    const Feature& feature = features_[interaction_features_[c]];
    const Seen& seen = *at<const Seen>(codes, seen_offset_ + c * sizeof(Seen));
    columns[c] = {.codes = at<const std::uint8_t>(codes, feature.codes_offset),
                  .is_nan = feature.masks_nan && seen.any_nan
                                ? at<const std::uint64_t>(codes, feature.nan_offset)
                                : nullptr,
                  .is_zero_or_nan = feature.masks_zero && seen.any_zero_or_nan
                                        ? at<const std::uint64_t>(codes, feature.zero_offset)
                                        : nullptr,
                  .wide = feature.wide};
  }
  double* sums = at<double>(scratch, sums_offset_);
  std::fill_n(sums, blocks_ * kEngineBlock, 0.0);
  if (small_words_ > 0) {
    run_small(scratch, states, columns);
    return;
  }
  const auto** bitsets = at<const std::uint64_t*>(scratch, bitsets_offset_);
  const std::size_t behind_config = first_config_predicate_ + config_bitsets_.size();
  std::copy(config_bitsets_.begin(), config_bitsets_.end(), bitsets + first_config_predicate_);
  std::copy(config_states_.begin(), config_states_.end(), states + first_config_predicate_);
  std::fill(bitsets + behind_config, bitsets + predicates_.size(), nullptr);
  EngineQuery query{.trees = trees_.data(),
                    .tree_count = trees_.size(),
                    .nodes = nodes_.data(),
                    .leaf_values = leaf_values_.data(),
                    .predicates = predicates_.data(),
                    .columns = columns,
                    .zeros = zeros_,
                    .ones = ones_,
                    .blocks = blocks_,
                    .bitsets = bitsets,
                    .states = states,
                    .next_bitset = at<std::uint64_t>(scratch, bit_space_offset_),
                    .temporaries = at<std::uint64_t>(scratch, temporaries_offset_),
                    .temporary_bits = static_cast<unsigned>(std::bit_width(max_leaves_ - 1)),
                    .values = at<EngineValue>(scratch, values_offset_),
                    .stack = at<std::uint16_t>(scratch, stack_offset_),
                    .postfix = at<std::uint32_t>(scratch, postfix_offset_),
                    .table = at<double>(scratch, table_offset_),
                    .sums = sums,
                    .roots = roots_.data(),
                    .predicate_of = predicate_of_.data(),
                    .outcomes = outcomes_.data(),
                    .trees_together = trees_together_,
                    .paths = nullptr,
                    .path_planes = nullptr};
  if (kernels_->uses_paths) {
    query.paths = new (scratch + paths_offset_) EnginePaths;
    query.path_planes = at<std::uint64_t>(scratch, path_planes_offset_);
    std::array<std::uint32_t*, 6> lists{};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      lists[i] = at<std::uint32_t>(scratch, path_lists_offset_[i]);
    }
    query.paths->node = lists[0];
    query.paths->predicate = lists[1];
    query.paths->code = lists[2];
    query.paths->child = lists[3];
    query.paths->leaf = lists[4];
    query.paths->leaf_code = lists[5];
  }
  kernels_->run(query);
}

}  // namespace foretune
