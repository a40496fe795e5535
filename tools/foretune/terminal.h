// Output for the user: results on standard output, remarks and progress on standard error. Colours
// appear only on a terminal, never with NO_COLOR or --no-color. Progress is one rewritten line on a
// terminal, and a plain line now and then elsewhere.
// Thread safety: used by the main thread; any thread may read stop_flag().
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "foretune/base/quantities.h"
#include "foretune/base/result.h"

namespace foretune::cli {

struct TerminalOptions {
  bool quiet = false;
  bool color = true;
};
void configure_terminal(const TerminalOptions& options);

bool output_has_color();               // standard output
void print(std::string_view text);     // standard output, as it is
void remark(std::string_view text);    // standard error, a line; silent with --quiet
void warn(std::string_view text);      // standard error, a line, even with --quiet
int report_error(const Error& error);  // one sentence, returns the exit code

// A progress line that knows whether it may be redrawn. Lines on standard error clear it first.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // Returns true when it is time to draw again; only reads the clock.
  bool due();
  void show(std::string_view text);
  void clear();

 private:
  bool interactive_;
  double last_s_ = -1e9;
};

std::string duration_text(double seconds);  // "45 s", "3 min 20 s"
std::string time_text(double nanoseconds);  // "812 ns", "3.52 us", "1.24 ms"
std::string clip(std::string_view text, std::size_t width);

// Set from the first Ctrl-C (or SIGTERM) on: finish the measurement, keep everything, exit with
// 130. A second one exits at once.
const std::atomic<bool>& stop_flag();
void install_signal_handlers();

}  // namespace foretune::cli
