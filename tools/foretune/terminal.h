// What the user sees: results on standard output, remarks and progress on standard error. Colours
// only on a terminal, never with NO_COLOR or --no-color; one rewritten progress line on a terminal,
// a plain line now and then elsewhere.
// Thread safety: used by the main thread; stop_requested() may be asked anywhere.
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

bool output_has_color();               // of standard output
void print(std::string_view text);     // standard output, as it is
void remark(std::string_view text);    // standard error, a line; silent with --quiet
void warn(std::string_view text);      // standard error, a line, even with --quiet
int report_error(const Error& error);  // one sentence, returns the exit code

// A progress line that knows whether it may be redrawn.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // Whether it is time to draw again; asks the clock only.
  bool due();
  void show(std::string_view text);
  void clear();

 private:
  bool interactive_;
  bool drawn_ = false;
  double last_s_ = -1e9;
};

double monotonic_s();
std::string duration_text(double seconds);  // "45 s", "3 min 20 s"
std::string time_text(double nanoseconds);  // "812 ns", "3.52 us", "1.24 ms"
std::string clip(std::string_view text, std::size_t width);

// From the first Ctrl-C (or SIGTERM) on: finish the measurement, keep everything, end with 130. A
// second one ends at once.
const std::atomic<bool>& stop_flag();
void install_signal_handlers();

}  // namespace foretune::cli
