// Views the values of several configs, one config after another. All have the same length, like
// those of a parametric schema, or any length, like schedules.
//
//   const ConfigWords tiles(words, 3);           // words.size() / 3 configs
//   ConfigList list;                             // owns what it lists
//   list.add(config.words.view());
//   pool.prepare(list, hardware);                // a list is taken for its view
//
// Thread safety: plain values. Cost: a ConfigWords is a view and must not outlive its words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/space/config.h"

namespace foretune {

class ConfigWords {
 public:
  ConfigWords() = default;
  // Makes as many configs as there are whole ones.
  ConfigWords(std::span<const std::int32_t> words, std::size_t width)
      : words_(words), width_(width), size_(width == 0 ? 0 : words.size() / width) {}
  // Config i has the values [starts[i], starts[i + 1]): one start more than configs.
  ConfigWords(std::span<const std::int32_t> words, std::span<const std::uint32_t> starts)
      : words_(words), starts_(starts), size_(starts.empty() ? 0 : starts.size() - 1) {}

  // Makes a view of one config, which may have no values.
  static ConfigWords of_one(std::span<const std::int32_t> words) {
    ConfigWords out(words, words.size());
    out.size_ = 1;
    return out;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  std::span<const std::int32_t> operator[](std::size_t i) const {
    return starts_.empty() ? words_.subspan(i * width_, width_)
                           : words_.subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }
  [[nodiscard]] ConfigWords subspan(std::size_t first, std::size_t count) const {
    return starts_.empty() ? ConfigWords(words_.subspan(first * width_, count * width_), width_)
                           : ConfigWords(words_, starts_.subspan(first, count + 1));
  }

  // Returns true when all configs have the same length: then all values lie next to each other,
  // width() for each.
  [[nodiscard]] bool is_even() const { return starts_.empty(); }
  [[nodiscard]] std::size_t width() const {
    FORETUNE_DCHECK(is_even());
    return width_;
  }
  [[nodiscard]] std::span<const std::int32_t> words() const {
    FORETUNE_DCHECK(is_even());
    return words_;
  }

 private:
  std::span<const std::int32_t> words_;
  std::span<const std::uint32_t> starts_;  // empty where lengths are even
  std::size_t width_ = 0;
  std::size_t size_ = 0;
};

// Owns configs of one schema; their lengths are even when the schema has one length for all.
class ConfigList {
 public:
  explicit ConfigList(const ConfigSchema& schema)
      : is_even_(schema.kind == SchemaKind::kParametric), width_(schema.parameters.size()) {}
  // Copies the configs, whatever their schema: even where all have the same length.
  explicit ConfigList(std::span<const Config> configs)
      : is_even_(std::all_of(configs.begin(), configs.end(),
                             [&](const Config& config) {
                               return !config.words.empty() &&
                                      config.words.size() == configs.front().words.size();
                             })),
        width_(is_even_ && !configs.empty() ? configs.front().words.size() : 0) {
    for (const Config& config : configs) {
      add(config.words.view());
    }
  }
  // Copies the configs.
  explicit ConfigList(ConfigWords configs)
      : is_even_(configs.is_even()), width_(is_even_ ? configs.width() : 0) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      add(configs[i]);
    }
  }

  void reserve(std::size_t configs) { words_.reserve(configs * width_); }
  // Adds a config. Where lengths are even, `words` must have the length of all others.
  void add(std::span<const std::int32_t> words) {
    FORETUNE_DCHECK(!is_even_ || words.size() == width_);
    words_.insert(words_.end(), words.begin(), words.end());
    if (!is_even_) {
      starts_.push_back(static_cast<std::uint32_t>(words_.size()));
    }
  }
  [[nodiscard]] std::size_t size() const { return view().size(); }
  [[nodiscard]] ConfigWords view() const {
    return is_even_ ? ConfigWords(words_, width_) : ConfigWords(words_, std::span(starts_));
  }
  // Converts implicitly, so that a list can be passed wherever a view can.
  operator ConfigWords() const { return view(); }  // NOLINT(google-explicit-constructor)

 private:
  bool is_even_;
  std::size_t width_;
  std::vector<std::int32_t> words_;
  std::vector<std::uint32_t> starts_{0};
};

}  // namespace foretune
