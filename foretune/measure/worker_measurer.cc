#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/child_process.h"
#include "foretune/measure/measure.h"
#include "foretune/measure/wire.h"

namespace foretune {
namespace {

using Clock = std::chrono::steady_clock;

// Starting may mean opening a device, reading a data set or importing a Python package.
constexpr double kStartLimitSeconds = 60;
constexpr int kStartAttempts = 3;
// Making inputs and their reference happens once per problem and says nothing about a config.
constexpr double kDataLimitFactor = 10;

Clock::time_point deadline_in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.001, 1e6)));
}

std::string_view stage_text(Stage stage) {
  switch (stage) {
    case Stage::kPrepare:
      return "preparing";
    case Stage::kBind:
      return "binding the problem's data";
    case Stage::kRun:
      return "running";
    case Stage::kVerify:
      return "verifying";
    case Stage::kEvaluate:
      return "evaluating";
    case Stage::kNone:
      break;
  }
  return "starting";
}

// Returns the next frame; nothing when the worker ended. Errors: kIo, with the worker killed, when
// it takes too long, kCorrupt.
Result<std::optional<Frame>> await_frame(ChildProcess& child, std::vector<std::byte>& buffer,
                                         Clock::time_point deadline, const WorkerSetup& setup) {
  for (;;) {
    FORETUNE_TRY(std::optional<Frame> frame, take_frame(buffer));
    if (frame) {
      return frame;
    }
    switch (child.receive(buffer, deadline)) {
      case ChildProcess::Read::kData:
        continue;
      case ChildProcess::Read::kEnded:
        return std::optional<Frame>();
      case ChildProcess::Read::kTimedOut:
        child.kill();
        return fail(ErrorCode::kIo, setup.worker_command[0],
                    " did not get ready as a worker within ", kStartLimitSeconds, " s");
    }
  }
}

// Returns a worker that answered its greeting. `buffer` receives its further output.
Result<std::unique_ptr<ChildProcess>> start_worker(const WorkerSetup& setup,
                                                   const Protocol& protocol, const Context& context,
                                                   std::vector<std::byte>& buffer) {
  FORETUNE_TRY(std::unique_ptr<ChildProcess> child, ChildProcess::start(setup.worker_command));
  const HelloMessage hello{.parent_process = ::getpid(),
                           .family = setup.family,
                           .options = setup.family_options,
                           .protocol = protocol,
                           .context = context};
  const auto deadline = deadline_in(kStartLimitSeconds);
  if (child->send(encode_frame(FrameKind::kHello, encode(hello)), deadline)) {
    FORETUNE_TRY(const std::optional<Frame> frame, await_frame(*child, buffer, deadline, setup));
    if (frame && frame->kind == FrameKind::kReady) {
      return child;
    }
    if (frame && frame->kind == FrameKind::kError) {
      return tl::unexpected<Error>(decode_error(frame->payload));
    }
    if (frame) {
      return fail(ErrorCode::kCorrupt, setup.worker_command[0], " does not answer as a worker");
    }
  }
  return fail(ErrorCode::kIo, setup.worker_command[0], " as a worker ", child->obituary());
}

class WorkerMeasurer final : public Measurer {
 public:
  WorkerMeasurer(WorkerSetup setup, const Protocol& protocol, Context context)
      : setup_(std::move(setup)), protocol_(protocol), context_(std::move(context)) {
    context_.cache = protocol_.cache;
  }

  // Starts a worker when there is none.
  Status ready();
  Measurement measure(const Request& request) override;
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override;
  const Context& context() const override { return context_; }

 private:
  // Says how a request ended without a result.
  struct Failure {
    std::size_t config = 0;
    Outcome outcome = Outcome::kCrashed;
    Stage stage = Stage::kNone;
    std::string reason;
  };

  Status start_once();
  // Sends one request and fills `measurements`; a failure ends the worker.
  std::optional<Failure> ask(FrameKind kind, std::span<const std::byte> payload,
                             std::span<Measurement> measurements);
  std::optional<Failure> await_result(std::span<Measurement> measurements, StageMessage& last);
  Failure end_worker(Outcome outcome, const StageMessage& last, std::string reason);
  Failure bury_worker(const StageMessage& last);
  static void apply(const Failure& failure, Measurement& measurement) {
    refuse(measurement, failure.outcome, failure.stage, failure.reason);
  }

  WorkerSetup setup_;
  Protocol protocol_;
  Context context_;
  std::unique_ptr<ChildProcess> child_;
  std::vector<std::byte> buffer_;
};

Status WorkerMeasurer::start_once() {
  buffer_.clear();
  FORETUNE_TRY(child_, start_worker(setup_, protocol_, context_, buffer_));
  return {};
}

Status WorkerMeasurer::ready() {
  if (child_) {
    return {};
  }
  Status started;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    started = start_once();
    // Only a refusal of the system may be different next time.
    if (started || started.error().code != ErrorCode::kIo) {
      break;
    }
  }
  return started;
}

WorkerMeasurer::Failure WorkerMeasurer::end_worker(Outcome outcome, const StageMessage& last,
                                                   std::string reason) {
  child_->kill();
  child_.reset();
  return Failure{last.config, outcome, last.stage, std::move(reason)};
}

WorkerMeasurer::Failure WorkerMeasurer::bury_worker(const StageMessage& last) {
  const std::string end = child_->obituary();
  return end_worker(Outcome::kCrashed, last,
                    concat("the worker ", end, " (while ", stage_text(last.stage), ")"));
}

std::optional<WorkerMeasurer::Failure> WorkerMeasurer::await_result(
    std::span<Measurement> measurements, StageMessage& last) {
  auto deadline = deadline_in(kDataLimitFactor * protocol_.time_limit_s);
  for (;;) {
    const Result<std::optional<Frame>> taken = take_frame(buffer_);
    if (!taken) {
      return end_worker(Outcome::kCrashed, last, taken.error().message);
    }
    if (!*taken) {
      switch (child_->receive(buffer_, deadline)) {
        case ChildProcess::Read::kData:
          continue;
        case ChildProcess::Read::kEnded:
          return bury_worker(last);
        case ChildProcess::Read::kTimedOut:
          return end_worker(Outcome::kTimedOut, last,
                            concat("not done after ", protocol_.time_limit_s, " s (while ",
                                   stage_text(last.stage), ")"));
      }
    }
    const Frame& frame = **taken;
    if (frame.kind == FrameKind::kResult) {
      const Status decoded = decode_results(frame.payload, measurements);
      if (!decoded) {
        return end_worker(Outcome::kCrashed, last, decoded.error().message);
      }
      return std::nullopt;
    }
    if (frame.kind == FrameKind::kStage) {
      const Result<StageMessage> stage = decode_stage(frame.payload);
      if (!stage || stage->config >= measurements.size()) {
        return end_worker(Outcome::kCrashed, last, "the worker announced an unknown stage");
      }
      // One limit for one config's measurement; a comparison walks over its configs many times.
      if (measurements.size() > 1) {
        deadline = deadline_in(protocol_.time_limit_s *
                               (stage->stage == Stage::kPrepare ? kDataLimitFactor : 1));
      }
      last = *stage;
    } else if (frame.kind == FrameKind::kDataReady) {
      deadline = deadline_in(protocol_.time_limit_s);
    } else {
      return end_worker(Outcome::kCrashed, last, decode_error(frame.payload).message);
    }
  }
}

std::optional<WorkerMeasurer::Failure> WorkerMeasurer::ask(FrameKind kind,
                                                           std::span<const std::byte> payload,
                                                           std::span<Measurement> measurements) {
  StageMessage last;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    const Status started = ready();
    if (!started) {
      return Failure{0, Outcome::kCrashed, Stage::kNone,
                     concat("no worker could be started: ", started.error().message)};
    }
    if (child_->send(encode_frame(kind, payload), deadline_in(protocol_.time_limit_s))) {
      std::optional<Failure> failure = await_result(measurements, last);
      // A worker that was gone before it began (killed while idle) says nothing about the config.
      if (!failure || failure->stage != Stage::kNone || attempt + 1 == kStartAttempts) {
        return failure;
      }
    } else {
      end_worker(Outcome::kCrashed, last, {});
    }
  }
  return Failure{0, Outcome::kCrashed, Stage::kNone, "the worker does not take requests"};
}

Measurement WorkerMeasurer::measure(const Request& request) {
  Measurement measurement = blank(request.problem, request.config);
  const std::optional<Failure> failure =
      ask(FrameKind::kMeasure, encode(request), std::span(&measurement, 1));
  if (failure) {
    apply(*failure, measurement);
    // The exception is a missing worker, which no config causes.
    if (!request.evaluate.empty() && failure->stage != Stage::kNone) {
      measurement.stage = Stage::kEvaluate;
    }
  }
  return measurement;
}

std::vector<Measurement> WorkerMeasurer::compare(const Problem& problem,
                                                 std::span<const Config> configs, int rounds) {
  std::vector<Measurement> measurements;
  std::vector<std::size_t> taking_part;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    measurements.push_back(blank(problem, configs[i]));
    taking_part.push_back(i);
  }
  // A config that ends the worker drops out; the others start again, interleaved among themselves.
  while (!taking_part.empty()) {
    CompareMessage message{.problem = problem, .configs = {}, .rounds = rounds};
    std::vector<Measurement> answers;
    for (const std::size_t i : taking_part) {
      message.configs.push_back(configs[i]);
      answers.push_back(blank(problem, configs[i]));
    }
    const std::optional<Failure> failure = ask(FrameKind::kCompare, encode(message), answers);
    if (!failure) {
      for (std::size_t i = 0; i < taking_part.size(); ++i) {
        measurements[taking_part[i]] = std::move(answers[i]);
      }
      break;
    }
    if (failure->stage == Stage::kNone) {  // no worker at all: no config's fault
      for (const std::size_t i : taking_part) {
        apply(*failure, measurements[i]);
      }
      break;
    }
    apply(*failure, measurements[taking_part[failure->config]]);
    measurements[taking_part[failure->config]].flags |= kFlagReference;
    taking_part.erase(taking_part.begin() + static_cast<std::ptrdiff_t>(failure->config));
  }
  return measurements;
}

}  // namespace

Result<std::unique_ptr<Measurer>> make_worker_measurer(const WorkerSetup& setup,
                                                       const Protocol& protocol,
                                                       const Context& context) {
  auto measurer = std::make_unique<WorkerMeasurer>(setup, protocol, context);
  FORETUNE_TRY_STATUS(measurer->ready());
  return std::unique_ptr<Measurer>(std::move(measurer));
}

Result<Fingerprint> describe_device(const WorkerSetup& setup) {
  std::vector<std::byte> buffer;
  FORETUNE_TRY(const std::unique_ptr<ChildProcess> child,
               start_worker(setup, Protocol{}, Context{}, buffer));
  const auto deadline = deadline_in(kStartLimitSeconds);
  if (child->send(encode_frame(FrameKind::kDescribe, {}), deadline)) {
    FORETUNE_TRY(const std::optional<Frame> frame, await_frame(*child, buffer, deadline, setup));
    if (frame && frame->kind == FrameKind::kDescription) {
      FORETUNE_TRY(const std::string text, decode_text(frame->payload));
      return Fingerprint::parse(text);
    }
    if (frame) {
      return tl::unexpected<Error>(decode_error(frame->payload));
    }
  }
  return fail(ErrorCode::kIo, "the worker that was asked for its device ", child->obituary());
}

}  // namespace foretune
