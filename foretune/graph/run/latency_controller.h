// Chooses, call by call, which of several alternatives of one computation runs, so that calls take
// a wanted time on average while the machine becomes slower and faster.
//
//   FORETUNE_TRY(LatencyController controller,
//                LatencyController::create({{.expected_ns = 9e5, .quality = 91.9},
//                                           {.expected_ns = 4e5, .quality = 90.8}},
//                                          {.target_ns = 6e5}));
//   run(alternatives[controller.next()]);
//   controller.finished(elapsed_ns);
//
// The mean over a window of 1 s stays within 5 % of a target that the alternatives can reach: two
// of them take turns, the nearest ones below and above the target. A target below all of them gets
// the fastest, one above all gets the best. Decisions depend on the times alone; nothing is random.
//
// Two figures decide. The speed of the machine is the expected time of the calls over the time that
// they took, with a short memory. The debt is the sum of what calls took beyond the target; it
// corrects what the speed misses, so that errors do not add up.
//
// Time is counted in calls: pauses between them are not seen. Thread safety: belongs to one thread.
// Cost: next() reads a number; finished() takes some 10 ns for a handful of alternatives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::graph {

struct TimedAlternative {
  double expected_ns = 0;  // of a call while nothing else runs
  double quality = 0;      // more is better
};

struct LatencyOptions {
  double target_ns = 0;
  // The mean over so much time shall be right. Memories are shares of it.
  double window_ns = 1e9;
};

class LatencyController {
 public:
  // Errors: kInvalidArgument without alternatives, and for times that are not positive, qualities
  // that are no numbers.
  static Result<LatencyController> create(std::span<const TimedAlternative> alternatives,
                                          const LatencyOptions& options);

  // Returns the position of the alternative for the next call; the same until finished() is called.
  [[nodiscard]] std::size_t next() const { return front_[chosen_].position; }

  // Takes how long the call of next() took. Times below 0 and what is no number are ignored.
  void finished(double ns);

  // Forgets the debt, which belongs to the target before. Errors: kInvalidArgument for a time that
  // is not positive.
  Status set_target(double ns);

  [[nodiscard]] double target_ns() const { return target_ns_; }
  // Returns the time that calls take now over the expected one.
  [[nodiscard]] double slowdown() const { return 1 / speed_; }
  // Returns the positions of the alternatives that may be chosen, from the fastest to the best. One
  // that is slower and no better than another is left out, and so is one that is no better than
  // turns of two others in the same time.
  [[nodiscard]] std::vector<std::size_t> front() const;

 private:
  struct Point {
    double expected_ns = 0;
    double quality = 0;
    std::size_t position = 0;
  };
  LatencyController() = default;
  void observe_speed(double ns);
  void choose();

  std::vector<Point> front_;  // both figures grow
  double target_ns_ = 0;
  double window_ns_ = 0;
  double speed_ = 1;
  double burst_ns_ = 0;     // what a call may take beyond the usual and still count in full
  double debt_ns_ = 0;      // within limits, so that what could not be reached is forgotten
  double rest_ns_ = 0;      // what turns of the two neighbours still owe, in expected time
  std::size_t chosen_ = 0;  // in front_
};

}  // namespace foretune::graph
