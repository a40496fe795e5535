// How much time trials may take.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/fork.h"

namespace foretune::dispatch_internal {

// Allows trials a share of the time that passes. Time that they leave is saved, up to a second's
// worth of the share; time that they took too much is paid back before the next one.
class TrialBudget {
 public:
  // `share`: above 0; from 1 on there is no limit. `now` returns seconds.
  explicit TrialBudget(double share, std::function<double()> now = monotonic_s)
      : share_(share), now_(std::move(now)), last_(now_()) {}

  [[nodiscard]] bool is_limited() const { return share_ < 1; }
  // Returns true while trials have taken less than their share.
  [[nodiscard]] bool allows() {
    if (!is_limited()) {
      return true;
    }
    const std::lock_guard lock(mutex_);
    return save() > 0;
  }
  // Returns for how many seconds trials have been allowed, and seen to be, without spending any.
  // Time in which they pay back what they took does not count.
  [[nodiscard]] double idle_s() {
    const std::lock_guard lock(mutex_);
    return save() > 0 ? last_ - allowed_since_.value_or(last_) : 0;
  }
  void spend(double seconds) {
    if (is_limited()) {
      const std::lock_guard lock(mutex_);
      saved_ -= seconds;
      allowed_since_.reset();
    }
  }
  // Spends the time that `work` takes, and returns what it returns.
  template <class Work>
  auto spend_on(const Work& work) {
    const double begin = is_limited() ? now_() : 0;
    auto result = work();
    if (is_limited()) {
      spend(now_() - begin);
    }
    return result;
  }

 private:
  // Adds what the time since the last call has earned, and returns what is saved.
  double save() {
    const double time = now_();
    saved_ = std::min(saved_ + share_ * (time - last_), share_);
    last_ = time;
    if (saved_ > 0 && !allowed_since_) {
      allowed_since_ = time;
    }
    return saved_;
  }

  double share_;
  std::function<double()> now_;
  ForkSafeMutex mutex_;
  double last_;
  double saved_ = 0;  // seconds; below 0: owed
  std::optional<double> allowed_since_;
};

}  // namespace foretune::dispatch_internal
