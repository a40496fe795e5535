// Measurers for tests: one returns a time for every config without running anything, one passes
// every call to another.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretune/measure/measure.h"

namespace foretune::testing_support {

// Times depend on the config alone: from 10 to 1000 us by its hash; one in `refuse_one_in` fails,
// 0: none.
class HashMeasurer final : public Measurer {
 public:
  explicit HashMeasurer(std::size_t refuse_one_in = 0) : refuse_one_in_(refuse_one_in) {}

  Measurement measure(const Request& request) override {
    ++calls_;
    Measurement out{.problem = request.problem, .config = request.config, .context = context_};
    const std::size_t hash = std::hash<Config>()(request.config);
    if (refuse_one_in_ > 0 && hash % refuse_one_in_ == 0) {
      out.outcome = Outcome::kPrepareFailed;
      out.reason = "too many registers";
      return out;
    }
    out.metrics = {{kTimeNs, 1e6 / static_cast<double>(1 + hash % 100), 0, 1}};
    return out;
  }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int /*rounds*/) override {
    compared_ = configs.size();
    std::vector<Measurement> out;
    for (const Config& config : configs) {
      out.push_back(measure({.problem = problem, .config = config}));
    }
    return out;
  }
  const Context& context() const override { return context_; }

  [[nodiscard]] std::size_t calls() const { return calls_; }
  // Configs of the last comparison.
  [[nodiscard]] std::size_t compared() const { return compared_; }

 private:
  Context context_{.threads = 1};
  std::size_t refuse_one_in_;
  std::size_t calls_ = 0;
  std::size_t compared_ = 0;
};

// Passes every call on; a test overrides what shall differ.
class ForwardingMeasurer : public Measurer {
 public:
  explicit ForwardingMeasurer(std::unique_ptr<Measurer> measurer)
      : measurer_(std::move(measurer)) {}
  Measurement measure(const Request& request) override { return measurer_->measure(request); }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return measurer_->compare(problem, configs, rounds);
  }
  const Context& context() const override { return measurer_->context(); }

 private:
  std::unique_ptr<Measurer> measurer_;
};

}  // namespace foretune::testing_support
