#include "foretune/cluster/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

#include "foretune/base/descriptor.h"
#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune::cluster {
namespace {

// Shares of lease_s.
constexpr double kRenewEvery = 0.25;
constexpr double kHoldsFor = 0.75;
// Beginnings of lines in the file of a shard.
constexpr char kFailureMark = '!';
constexpr char kTakeoverMark = '>';

// Seconds of this machine's clock, which also runs while the machine is suspended.
double own_clock_s() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Sets the time of modification by the server's clock. Returns false when the file is gone. An
// open by name asks the server for the name; a cached handle would reach a renamed file.
Result<bool> touch(const std::filesystem::path& file) {
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!opened.ok()) {
    return errno == ENOENT || errno == ESTALE
               ? Result<bool>(false)
               : fail(ErrorCode::kIo, "cannot open ", file.string(), ": ", last_error());
  }
  constexpr timespec kNow{.tv_sec = 0, .tv_nsec = UTIME_NOW};
  constexpr timespec kTimes[2] = {kNow, kNow};  // NOLINT(modernize-avoid-c-arrays): futimens()
  if (::futimens(opened.get(), kTimes) != 0) {
    return errno == ENOENT || errno == ESTALE
               ? Result<bool>(false)
               : fail(ErrorCode::kIo, "cannot touch ", file.string(), ": ", last_error());
  }
  return true;
}

// Returns the time of modification, or nothing for a file that is gone.
Result<std::optional<double>> modified_s(const std::filesystem::path& file) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!opened.ok() || ::fstat(opened.get(), &status) != 0) {
    return errno == ENOENT || errno == ESTALE
               ? Result<std::optional<double>>(std::nullopt)
               : fail(ErrorCode::kIo, "cannot read ", file.string(), ": ", last_error());
  }
  return std::optional(seconds_of(status.st_mtim));
}

Status append_line(const std::filesystem::path& file, const std::string& line) {
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!opened.ok()) {
    return fail(ErrorCode::kIo, "cannot open ", file.string(), ": ", last_error());
  }
  const std::string text = line + "\n";
  return write_fully(opened.get(), std::as_bytes(std::span(text.data(), text.size())),
                     file.string());
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
  }
}

}  // namespace

Result<ShardHistory> read_history(const std::filesystem::path& file) {
  FORETUNE_TRY(const std::string text, read_text_file(file));
  ShardHistory history;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kFailureMark)) {
      ++history.failures;
      history.last_failure = std::string(line.substr(1));
      continue;
    }
    const bool is_takeover = line.starts_with(kTakeoverMark);
    const std::string name(line.substr(is_takeover ? 1 : 0));
    if (check_task_name(name)) {  // a kill may leave a torn line
      history.takeovers += is_takeover ? 1U : 0U;
      add_once(history.holders, name);
    }
  }
  return history;
}

Result<bool> rename_once(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) {
    return true;
  }
  const int number = errno;
  FORETUNE_TRY(const std::optional<double> exists, modified_s(to));
  if (exists) {
    return true;
  }
  if (number == ENOENT || number == ESTALE) {
    return false;
  }
  errno = number;
  return fail(ErrorCode::kIo, "cannot rename ", from.string(), " to ", to.string(), ": ",
              last_error());
}

Result<double> server_age_s(const std::filesystem::path& file, const std::filesystem::path& probe) {
  {
    const Descriptor made(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!made.ok()) {
      return fail(ErrorCode::kIo, "cannot create ", probe.string(), ": ", last_error());
    }
  }
  // The file is read first: a renewal in between makes it look younger than it is never.
  FORETUNE_TRY(const std::optional<double> then, modified_s(file));
  FORETUNE_TRY(const bool touched, touch(probe));
  FORETUNE_TRY(const std::optional<double> now, modified_s(probe));
  if (!then) {
    return -1.0;
  }
  if (!touched || !now) {
    return fail(ErrorCode::kIo, probe.string(), " was removed");
  }
  return std::max(0.0, *now - *then);
}

Lease::Lease(const RunFolder& run, const Shard& shard, std::filesystem::path file,
             std::vector<std::string> holders, bool was_taken_over, double valid_from_s)
    : folder_(run.path()),
      shard_(shard),
      file_(std::move(file)),
      holders_(std::move(holders)),
      was_taken_over_(was_taken_over),
      lease_s_(run.plan().lease_s),
      renewed_s_(valid_from_s) {}

Lease::~Lease() { stop_renewing(); }

bool Lease::holds() const {
  return !lost_.load() && own_clock_s() - renewed_s_.load() < kHoldsFor * lease_s_;
}

bool Lease::renew() {
  if (!holds()) {
    lost_ = true;
    return false;
  }
  const double before = own_clock_s();
  const Result<bool> touched = touch(file_);
  if (touched && *touched) {
    renewed_s_ = before;
  } else if (touched) {
    lost_ = true;
  }
  // A file server that does not answer may do so soon; until then the time runs out.
  return holds();
}

void Lease::start_renewing() {
  renewer_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> pause(kRenewEvery * lease_s_);
    while (!wake_.wait_for(lock, pause, [this] { return stopping_; })) {
      lock.unlock();
      const bool is_held = renew();
      lock.lock();
      if (!is_held) {
        return;
      }
    }
  });
}

void Lease::stop_renewing() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (renewer_.joinable()) {
    renewer_.join();
  }
}

Result<bool> Lease::move_to(const std::string& state, const std::string& name) {
  stop_renewing();
  if (!holds()) {
    lost_ = true;
    // The shard is left to whoever finds the lease expired.
    return false;
  }
  FORETUNE_TRY(const bool moved, rename_once(file_, folder_ / state / name));
  lost_ = true;
  return moved;
}

Result<bool> Lease::finish() { return move_to("done", file_.filename().string()); }

Result<bool> Lease::give_back() { return move_to("todo", shard_.name); }

Result<bool> Lease::fail_shard(const std::string& reason) {
  stop_renewing();
  if (!holds()) {
    lost_ = true;
    return false;
  }
  std::string line = concat(kFailureMark, reason);
  std::replace(line.begin(), line.end(), '\n', ' ');
  FORETUNE_TRY_STATUS(append_line(file_, line));
  FORETUNE_TRY(const ShardHistory history, read_history(file_));
  return history.failures >= kMaxFailures ? move_to("failed", file_.filename().string())
                                          : give_back();
}

// Makes leases of the shards of a run.
class Claims {
 public:
  Claims(const RunFolder& run, const std::string& task) : run_(run), task_(task) {}

  Result<std::unique_ptr<Lease>> from_todo() {
    FORETUNE_TRY(const std::vector<std::string> names, run_.names("todo"));
    // Every task begins elsewhere, so that few want the same.
    const std::size_t first = names.empty() ? 0 : hash64(task_) % names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[(first + i) % names.size()];
      FORETUNE_TRY(std::unique_ptr<Lease> lease, take(run_.path() / "todo" / name, name, ""));
      if (lease != nullptr) {
        return lease;
      }
    }
    return std::unique_ptr<Lease>();
  }

  Result<std::unique_ptr<Lease>> from_expired() {
    FORETUNE_TRY(const std::vector<std::string> names, run_.names("leased"));
    const std::filesystem::path probe = run_.path() / "tasks" / concat(task_, ".clock");
    for (const std::string& name : names) {
      const auto [shard, holder] = split_lease(name);
      const std::filesystem::path file = run_.path() / "leased" / name;
      FORETUNE_TRY(const double age, server_age_s(file, probe));
      if (age <= run_.plan().lease_s) {
        continue;
      }
      if (holder == task_) {
        // A rename to its own name would succeed for two.
        FORETUNE_TRY([[maybe_unused]] const bool moved,
                     rename_once(file, run_.path() / "todo" / shard));
        continue;
      }
      FORETUNE_TRY(std::unique_ptr<Lease> lease, take(file, shard, holder));
      if (lease != nullptr) {
        return lease;
      }
    }
    return std::unique_ptr<Lease>();
  }

 private:
  // Renames `file` to a lease of this task, unless another one is faster.
  Result<std::unique_ptr<Lease>> take(const std::filesystem::path& file, const std::string& name,
                                      const std::string& holder) {
    const Shard* const shard = run_.find(name);
    if (shard == nullptr) {
      return fail(ErrorCode::kCorrupt, file.string(), " is no shard of the plan");
    }
    // Renaming keeps the file's time, and a lease must be fresh from its first moment.
    const double before = own_clock_s();
    FORETUNE_TRY(const bool touched, touch(file));
    if (!touched) {
      return std::unique_ptr<Lease>();
    }
    const std::filesystem::path leased = run_.path() / "leased" / concat(name, ".", task_);
    FORETUNE_TRY(const bool taken, rename_once(file, leased));
    if (!taken) {
      return std::unique_ptr<Lease>();
    }
    FORETUNE_TRY(ShardHistory history, read_history(leased));
    std::string lines;
    // Its last holder may have died before it wrote its name.
    if (!holder.empty() && std::find(history.holders.begin(), history.holders.end(), holder) ==
                               history.holders.end()) {
      lines = concat(holder, "\n");
      history.holders.push_back(holder);
    }
    lines += holder.empty() ? task_ : concat(kTakeoverMark, task_);
    FORETUNE_TRY_STATUS(append_line(leased, lines));
    std::unique_ptr<Lease> lease(
        new Lease(run_, *shard, leased, std::move(history.holders), !holder.empty(), before));
    lease->start_renewing();
    return lease;
  }

  const RunFolder& run_;
  const std::string& task_;
};

Result<std::unique_ptr<Lease>> claim_shard(const RunFolder& run, const std::string& task) {
  FORETUNE_TRY_STATUS(check_task_name(task));
  Claims claims(run, task);
  FORETUNE_TRY(std::unique_ptr<Lease> lease, claims.from_todo());
  if (lease != nullptr) {
    return lease;
  }
  return claims.from_expired();
}

}  // namespace foretune::cluster
