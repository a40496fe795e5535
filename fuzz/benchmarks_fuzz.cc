// Any text: it is refused with one sentence, or it is a list of benchmarks, or one of LoopTune's,
// whose starts are legal and whose text form reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/check.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/loop/gym/loop_tool_benchmark.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretune;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (loop::gym::is_loop_tool(text)) {
    const auto one = loop::gym::parse_loop_tool(text, "x");
    if (one) {
      FORETUNE_CHECK(loop::check(one->computation, one->start()).has_value());
      const std::string line = loop::gym::to_text(std::span(&*one, 1));
      FORETUNE_CHECK(loop::gym::parse_benchmarks(line, "back").has_value());
    } else {
      FORETUNE_CHECK(one.error().message.find_first_of("\n\x1b") == std::string::npos);
    }
    return 0;
  }
  const auto benchmarks = loop::gym::parse_benchmarks(text, "x");
  if (!benchmarks) {
    const std::string& message = benchmarks.error().message;
    FORETUNE_CHECK(message.starts_with("x") &&
                   message.find_first_of("\n\x1b") == std::string::npos);
    return 0;
  }
  FORETUNE_CHECK(!benchmarks->empty());
  for (const loop::gym::Benchmark& benchmark : *benchmarks) {
    FORETUNE_CHECK(loop::check(benchmark.computation, benchmark.start()).has_value());
  }
  const std::string written = loop::gym::to_text(*benchmarks);
  const auto back = loop::gym::parse_benchmarks(written, "back");
  FORETUNE_CHECK(back && loop::gym::to_text(*back) == written);
  return 0;
}
