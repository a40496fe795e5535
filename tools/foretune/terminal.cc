#include "tools/foretune/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "foretune/base/clock.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {
namespace {

struct State {
  bool quiet = false;
  bool color = true;
  bool has_line = false;  // a progress line is drawn
};
State& state() {
  static State value;
  return value;
}

std::atomic<bool>& stop_slot() {
  static std::atomic<bool> stop{false};
  return stop;
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

void write_all(std::FILE* stream, std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
}

void clear_line() {
  if (state().has_line) {
    write_all(stderr, "\r\033[K");
    state().has_line = false;
  }
}

void write_line(std::string_view text) {
  clear_line();
  write_all(stderr, concat(text, "\n"));
}

std::string colored(std::string_view code, std::string_view text) {
  if (!state().color || !is_terminal(STDERR_FILENO)) {
    return std::string(text);
  }
  return concat("\033[", code, "m", text, "\033[0m");
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) {
    return size.ws_col;
  }
  return 80;
}

extern "C" void handle_stop(int signal_number) {
  if (stop_slot().exchange(true)) {
    ::_exit(128 + signal_number);
  }
}

}  // namespace

void configure_terminal(const TerminalOptions& options) {
  // The only place that reads NO_COLOR (https://no-color.org); before any thread starts.
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  state().quiet = options.quiet;
  state().color = options.color && (no_color == nullptr || *no_color == '\0');
}

bool output_has_color() { return state().color && is_terminal(STDOUT_FILENO); }

void print(std::string_view text) { write_all(stdout, text); }

void remark(std::string_view text) {
  if (!state().quiet) {
    write_line(text);
  }
}

void warn(std::string_view text) { write_line(concat(colored("33", "warning:"), " ", text)); }

int report_error(const Error& error) {
  write_line(concat(colored("31", "foretune:"), " ", error.message));
  return exit_code(error);
}

ProgressLine::ProgressLine() : interactive_(is_terminal(STDERR_FILENO) && !state().quiet) {}

ProgressLine::~ProgressLine() { clear(); }

bool ProgressLine::due() {
  if (state().quiet) {
    return false;
  }
  return monotonic_s() - last_s_ >= (interactive_ ? 0.1 : 10.0);
}

void ProgressLine::show(std::string_view text) {
  last_s_ = monotonic_s();
  if (!interactive_) {
    write_all(stderr, concat(text, "\n"));
    return;
  }
  write_all(stderr, concat("\r\033[K", clip(text, terminal_width() - 1)));
  state().has_line = true;
}

void ProgressLine::clear() { clear_line(); }

std::string duration_text(double seconds) { return seconds_text(seconds); }

std::string time_text(double nanoseconds) { return nanoseconds_text(nanoseconds); }

std::string clip(std::string_view text, std::size_t width) {
  if (text.size() <= width) {
    return std::string(text);
  }
  return concat(text.substr(0, width > 3 ? width - 3 : 0), "...");
}

const std::atomic<bool>& stop_flag() { return stop_slot(); }

void install_signal_handlers() {
  struct sigaction action{};
  action.sa_handler = &handle_stop;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // A closed pipe is an error of a write, not the end of the program.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
}

}  // namespace foretune::cli
