// Instructions of the hot paths, counted by callgrind: they repeat exactly where a clock does not.
// Valgrind knows no AVX-512, so the exact path that is counted is the one for AVX2, and the
// portable one; repeated problems and the fast model have one path for all CPUs.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr double kProblems = 10;
constexpr double kCandidates = 512;
constexpr double kTrees = 100;
// Counted with GCC 12 at -O2: 332, 9,469, 22.7 and 36.6. More than a tenth above is a change that
// should be known.
constexpr double kMaxCached = 365;
constexpr double kMaxFast = 10'400;
constexpr double kMaxExact = 25;     // per candidate and tree of 63 leaves
constexpr double kMaxPortable = 40;  // the same

std::string output_of(const std::string& command) {
  std::string out;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 512> buffer{};
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    out += buffer.data();
  }
  return out;
}

// Instructions inside of the driver's foretune_hot_path, or nothing when they were not counted.
std::optional<double> count_instructions(const std::string& mode, std::string& log) {
  log =
      output_of(concat("valgrind --tool=callgrind --callgrind-out-file=/dev/null "
                       "--toggle-collect=foretune_hot_path " FORETUNE_HOT_PATH_DRIVER " ",
                       mode, " 2>&1"));
  constexpr std::string_view kLabel = "Collected : ";
  const std::size_t at = log.find(kLabel);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(log).substr(at + kLabel.size());
  return parse_double(rest.substr(0, rest.find_first_not_of("0123456789")));
}

class HotPathTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(FORETUNE_SANITIZED) || !defined(__OPTIMIZE__)
    GTEST_SKIP() << "instructions are counted in optimised builds without sanitizers";
#endif
    if (output_of("valgrind --version 2>/dev/null").empty()) {
      GTEST_SKIP() << "valgrind is not installed";
    }
  }
};

// Expects the same number of instructions in every run, between these two for a problem.
void expect_instructions(const char* mode, double above, double below) {
  std::string log;
  const std::optional<double> first = count_instructions(mode, log);
  ASSERT_TRUE(first.has_value()) << log;
  ASSERT_GT(*first, above * kProblems) << log;
  EXPECT_LT(*first / kProblems, below);
  EXPECT_EQ(count_instructions(mode, log), first);
}

TEST_F(HotPathTest, ARepeatedProblemTakesFewInstructions) {
  expect_instructions("cached", 10, kMaxCached);
}

TEST_F(HotPathTest, AFastAnswerTakesFewInstructions) { expect_instructions("fast", 100, kMaxFast); }

TEST_F(HotPathTest, ANewProblemTakesFewInstructionsPerCandidateAndTree) {
  for (const auto& [mode, limit] :
       {std::pair("exact", kMaxExact), {"exact-portable", kMaxPortable}}) {
    std::string log;
    const std::optional<double> count = count_instructions(mode, log);
    ASSERT_TRUE(count.has_value()) << log;
    const double each = *count / (kProblems * kCandidates * kTrees);
    ASSERT_GT(each, 0.5) << log;
    EXPECT_LT(each, limit) << mode;
  }
}

}  // namespace
}  // namespace foretune
