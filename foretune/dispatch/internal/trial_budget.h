// How much time trials may take.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
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
    const double time = now_();
    saved_ = std::min(saved_ + share_ * (time - last_), share_);
    last_ = time;
    return saved_ > 0;
  }
  void spend(double seconds) {
    if (is_limited()) {
      const std::lock_guard lock(mutex_);
      saved_ -= seconds;
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
  double share_;
  std::function<double()> now_;
  ForkSafeMutex mutex_;
  double last_;
  double saved_ = 0;  // seconds; below 0: owed
};

}  // namespace foretune::dispatch_internal
