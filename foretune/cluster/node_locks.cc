#include "foretune/cluster/node_locks.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune::cluster {
namespace {

constexpr int kMaxCores = CPU_SETSIZE;

std::string lock_path(const std::string& name) {
  const char* const folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return concat(folder, "/foretune-", name, ".lock");
}

}  // namespace

Result<NodeLocks> NodeLocks::take(const std::vector<std::string>& names, const std::string& owner) {
  NodeLocks locks;
  for (const std::string& name : names) {
    const std::string path = lock_path(name);
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file.ok()) {
      return fail(ErrorCode::kIo, "cannot open ", path, ": ", last_error());
    }
    // Other users lock the same cores, whatever this one's umask.
    static_cast<void>(::fchmod(file.get(), 0666));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        return fail(ErrorCode::kIo, "cannot lock ", path, ": ", last_error());
      }
      const Result<std::string> holder = read_text_file(path);
      return fail(
          ErrorCode::kUnsupported, name, " of ", host_name(), " is in use by ",
          holder && !holder->empty() ? *holder : std::string("another task"),
          "; times measured beside it would be wrong (--share-cores measures all the same)");
    }
    if (::ftruncate(file.get(), 0) == 0) {
      FORETUNE_TRY_STATUS(
          write_fully(file.get(), std::as_bytes(std::span(owner.data(), owner.size())), path));
    }
    locks.files_.push_back(std::move(file));
  }
  return locks;
}

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < kMaxCores; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) {
        cores.push_back(core);
      }
    }
  }
  return cores;
}

Status use_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(static_cast<std::size_t>(core), &set);
  }
  if (cores.empty() || ::sched_setaffinity(0, sizeof(set), &set) != 0) {
    return fail(ErrorCode::kInvalidArgument, "this process cannot run on the cores ",
                cores_text(cores), ": ", last_error());
  }
  return {};
}

Result<std::vector<int>> parse_cores(std::string_view text) {
  std::vector<int> cores;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<std::uint64_t> first = parse_uint(part.substr(0, dash));
    const std::optional<std::uint64_t> last =
        dash == std::string_view::npos ? first : parse_uint(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= static_cast<std::uint64_t>(kMaxCores)) {
      return fail(ErrorCode::kInvalidArgument, "'", text, "' is not a list of cores, as in 0,2-4");
    }
    for (std::uint64_t core = *first; core <= *last; ++core) {
      cores.push_back(static_cast<int>(core));
    }
  }
  return cores;
}

std::string cores_text(const std::vector<int>& cores) {
  std::string out;
  for (const int core : cores) {
    out += concat(out.empty() ? "" : ",", core);
  }
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data())
                                                          : std::string("unknown");
}

}  // namespace foretune::cluster
