#include "foretune/hardware/thread_waits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr const char* kThreads = "/proc/self/task";

std::uint64_t count_links() {
  struct stat folder{};
  return stat(kThreads, &folder) == 0 ? folder.st_nlink : 0;
}

// Parses "time on a core, time waiting for one, time slices", in ns; returns nothing for a thread
// that has ended.
std::optional<std::int64_t> waited_ns(const Descriptor& file) {
  std::array<char, 96> text{};
  const ssize_t length = pread(file.get(), text.data(), text.size(), 0);
  if (length <= 0) {
    return std::nullopt;
  }
  std::string_view rest(text.data(), static_cast<std::size_t>(length));
  rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  return parse_int(rest.substr(0, rest.find(' ')));
}

}  // namespace

ThreadWaits::ThreadWaits() {
  look_for_threads();
  for (auto& [number, thread] : threads_) {
    thread.waited_ns = waited_ns(thread.file).value_or(0);
  }
}

void ThreadWaits::look_for_threads() {
  links_ = count_links();
  std::error_code error;
  std::map<int, Thread> found;
  for (std::filesystem::directory_iterator at(kThreads, error), end; !error && at != end;
       at.increment(error)) {
    const auto number = static_cast<int>(parse_int(at->path().filename().string()).value_or(0));
    Thread thread;
    if (const auto known = threads_.find(number); known != threads_.end()) {
      thread = std::move(known->second);
    } else {
      // NOLINTNEXTLINE(*-vararg)
      thread.file = Descriptor(open((at->path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC));
    }
    if (thread.file.ok()) {
      found.emplace(number, std::move(thread));
    }
  }
  threads_ = std::move(found);
}

Waits ThreadWaits::read() {
  Waits out;
  if (!known()) {
    return out;
  }
  if (count_links() != links_) {
    look_for_threads();
  }
  for (auto at = threads_.begin(); at != threads_.end();) {
    Thread& thread = at->second;
    const std::optional<std::int64_t> now = waited_ns(thread.file);
    if (!now) {
      at = threads_.erase(at);
      continue;
    }
    const auto waited = static_cast<double>(std::max<std::int64_t>(0, *now - thread.waited_ns));
    thread.waited_ns = *now;
    out.longest_ns = std::max(out.longest_ns, waited);
    out.all_ns += waited;
    ++at;
  }
  return out;
}

}  // namespace foretune
