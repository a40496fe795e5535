// Instructions of the hot path, counted by callgrind: they repeat exactly where a clock does not.
// Valgrind knows no AVX-512, so what is counted is the AVX2 path.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr double kProblems = 10;
constexpr double kCandidates = 512;
constexpr double kTrees = 100;
// Counted: 294 and 22, with GCC 12 at -O2. What is more is a change that should be known.
constexpr double kMaxCached = 400;
constexpr double kMaxPerCandidateAndTree = 30;

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

TEST_F(HotPathTest, ARepeatedProblemTakesFewInstructions) {
  std::string log;
  const std::optional<double> first = count_instructions("cached", log);
  ASSERT_TRUE(first.has_value()) << log;
  ASSERT_GT(*first, 10 * kProblems) << log;
  EXPECT_LT(*first / kProblems, kMaxCached);
  EXPECT_EQ(count_instructions("cached", log), first);
}

TEST_F(HotPathTest, ANewProblemTakesFewInstructionsPerCandidateAndTree) {
  std::string log;
  const std::optional<double> count = count_instructions("uncached", log);
  ASSERT_TRUE(count.has_value()) << log;
  const double each = *count / (kProblems * kCandidates * kTrees);
  ASSERT_GT(each, 0.5) << log;
  EXPECT_LT(each, kMaxPerCandidateAndTree);
}

}  // namespace
}  // namespace foretune
