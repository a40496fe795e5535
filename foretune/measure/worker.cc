#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/measure/measure.h"
#include "foretune/measure/wire.h"

namespace foretune {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitBadChannel = 3;
constexpr int kExitOrphaned = 4;

// The worker's side of the channel, which blocks: the worker has nothing else to do.
class WorkerChannel {
 public:
  WorkerChannel(int input, int output) : input_(input), output_(output) {}
  ~WorkerChannel() {
    if (owned_output_ >= 0) {
      ::close(owned_output_);
    }
  }
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  // Reserves the channel for frames: standard output of the process becomes standard error.
  void take_over_standard_output() {
    if (output_ != STDOUT_FILENO) {
      return;
    }
    owned_output_ = ::fcntl(output_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (owned_output_ >= 0) {
      output_ = owned_output_;
      ::dup2(STDERR_FILENO, STDOUT_FILENO);
    }
  }

  bool write(FrameKind kind, std::span<const std::byte> payload) {
    const std::vector<std::byte> bytes = encode_frame(kind, payload);
    std::span<const std::byte> rest = bytes;
    while (!rest.empty()) {
      const ssize_t count = ::write(output_, rest.data(), rest.size());
      if (count > 0) {
        rest = rest.subspan(static_cast<std::size_t>(count));
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  // Returns the next frame; nothing at the end of the channel or when it is damaged (then bad()).
  std::optional<Frame> read() {
    std::array<std::byte, 16384> chunk;
    for (;;) {
      Result<std::optional<Frame>> frame = take_frame(buffer_);
      if (!frame) {
        bad_ = true;
        return std::nullopt;
      }
      if (*frame) {
        return *std::move(frame);
      }
      const ssize_t count = ::read(input_, chunk.data(), chunk.size());
      if (count > 0) {
        buffer_.insert(buffer_.end(), chunk.begin(), chunk.begin() + count);
      } else if (count == 0 || errno != EINTR) {
        bad_ = !buffer_.empty();
        return std::nullopt;
      }
    }
  }
  [[nodiscard]] bool bad() const { return bad_; }

 private:
  int input_;
  int output_;
  int owned_output_ = -1;
  bool bad_ = false;
  std::vector<std::byte> buffer_;
};

// Makes the worker end with the program that measures: its work would disturb the next program's.
bool tie_life_to(std::int64_t parent) {
  if (parent <= 0) {
    return true;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  return ::getppid() == static_cast<pid_t>(parent);
}

// The family and the state with which a worker measures.
struct Bench {
  std::shared_ptr<const Family> family;
  std::unique_ptr<Measurer> measurer;
};

Result<Bench> set_up(const HelloMessage& hello, const FamilyFactory& factory,
                     WorkerChannel& channel) {
  FORETUNE_TRY(std::shared_ptr<const Family> family, factory(hello.family, hello.options));
  MeasureHooks hooks;
  hooks.on_stage = [&channel](std::size_t config, Stage stage) {
    const StageMessage message{static_cast<std::uint32_t>(config), stage};
    channel.write(FrameKind::kStage, encode(message));
  };
  hooks.on_data_ready = [&channel] { channel.write(FrameKind::kDataReady, {}); };
  auto measurer = make_local_measurer(family, hello.protocol, hello.context, hooks);
  return Bench{std::move(family), std::move(measurer)};
}

Result<std::vector<Measurement>> answer(const Frame& frame, Measurer& measurer) {
  if (frame.kind == FrameKind::kMeasure) {
    FORETUNE_TRY(const Request request, decode_request(frame.payload));
    std::vector<Measurement> one;
    one.push_back(measurer.measure(request));
    return one;
  }
  if (frame.kind == FrameKind::kCompare) {
    FORETUNE_TRY(const CompareMessage message, decode_compare(frame.payload));
    return measurer.compare(message.problem, message.configs, message.rounds);
  }
  return fail(ErrorCode::kCorrupt, "the worker was asked for something that it does not know");
}

}  // namespace

int run_worker(int input, int output, const FamilyFactory& factory) {
  WorkerChannel channel(input, output);
  channel.take_over_standard_output();
  const std::optional<Frame> greeting = channel.read();
  if (!greeting) {
    return channel.bad() ? kExitBadChannel : kExitDone;
  }
  const Result<HelloMessage> hello =
      greeting->kind == FrameKind::kHello
          ? decode_hello(greeting->payload)
          : Result<HelloMessage>(fail(ErrorCode::kCorrupt, "the worker was not greeted"));
  if (!hello) {
    channel.write(FrameKind::kError, encode(hello.error()));
    return kExitBadChannel;
  }
  if (!tie_life_to(hello->parent_process)) {
    return kExitOrphaned;
  }
  const Result<Bench> bench = set_up(*hello, factory, channel);
  if (!bench) {
    channel.write(FrameKind::kError, encode(bench.error()));
    return kExitDone;
  }
  channel.write(FrameKind::kReady, {});
  while (const std::optional<Frame> frame = channel.read()) {
    if (frame->kind == FrameKind::kDescribe) {
      const Result<Fingerprint> device = bench->family->read_device();
      const bool told = device ? channel.write(FrameKind::kDescription, encode_text(device->text()))
                               : channel.write(FrameKind::kError, encode(device.error()));
      if (!told) {
        return kExitBadChannel;
      }
      continue;
    }
    const Result<std::vector<Measurement>> measurements = answer(*frame, *bench->measurer);
    if (!measurements) {
      channel.write(FrameKind::kError, encode(measurements.error()));
      return kExitBadChannel;
    }
    if (!channel.write(FrameKind::kResult, encode_results(*measurements))) {
      return kExitBadChannel;
    }
  }
  return channel.bad() ? kExitBadChannel : kExitDone;
}

}  // namespace foretune
