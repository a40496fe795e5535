#include "foretune/families/command/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/descriptor.h"
#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using End = ProcessEnd::Kind;

#ifdef FORETUNE_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

class SubprocessTest : public testing::Test {
 protected:
  // A script of the shell, which is the program here and gets its text as one word.
  ProcessEnd shell(const std::string& script, const ProcessLimits& limits = {.time_s = 30}) {
    return run({"/bin/sh", "-c", script}, limits);
  }
  ProcessEnd run(const std::vector<std::string>& words, const ProcessLimits& limits = {}) {
    auto end = run_process(words, folder.path(), limits);
    EXPECT_TRUE(end) << (end ? "" : end.error().message);
    return end ? *std::move(end) : ProcessEnd();
  }
  testing_support::TemporaryFolder folder;
};

TEST_F(SubprocessTest, KeepsOutputErrorsAndExitCode) {
  const ProcessEnd end = shell("echo one; echo two >&2; exit 3");
  EXPECT_EQ(end.kind, End::kExited);
  EXPECT_EQ(end.code, 3);
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.output, "one\n");
  EXPECT_EQ(end.errors, "two\n");
  EXPECT_EQ(end.text(), "ended with exit code 3: two");
  EXPECT_GT(end.wall_ns, 1e5);
  EXPECT_TRUE(shell("true").is_good());
}

TEST_F(SubprocessTest, WordsReachTheProgramAsTheyAre) {
  const std::string hostile = "$(touch injected) `touch injected`; touch injected #'\"\\ \n*";
  EXPECT_EQ(run({"printf", "%s|", hostile, "", "b"}).output, hostile + "||b|");
  EXPECT_FALSE(std::filesystem::exists(folder / "injected"));
}

TEST_F(SubprocessTest, RunsInItsFolderWithNothingToRead) {
  EXPECT_EQ(shell("pwd; cat; touch here").output,
            std::filesystem::canonical(folder.path()).string() + "\n");
  EXPECT_TRUE(std::filesystem::exists(folder / "here"));
}

TEST_F(SubprocessTest, InheritsNoFileOfOurs) {
  EXPECT_EQ(
      shell("for f in /proc/self/fd/*; do basename $f; done | sort -n | head -4 | tr '\\n' ' '")
          .output.substr(0, 6),
      "0 1 2 ");
  const Descriptor ours(::dup(0));  // without O_CLOEXEC
  EXPECT_EQ(shell(concat("test -e /proc/self/fd/", ours.get(), " && echo there")).output, "");
}

TEST_F(SubprocessTest, SaysWhichSignalEndedIt) {
  const ProcessEnd end = shell("echo dying >&2; kill -SEGV $$");
  EXPECT_EQ(end.kind, End::kSignalled);
  EXPECT_EQ(end.text(), "was ended by SIGSEGV: dying");
}

// The program's children die with it: who waits for a minute would otherwise still be there.
TEST_F(SubprocessTest, KillsTheWholeGroupThatTakesTooLong) {
  const auto begin = std::chrono::steady_clock::now();
  const ProcessEnd end = shell("sleep 77 & echo $!; echo late >&2; wait", {.time_s = 0.3});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(end.kind, End::kTimedOut);
  EXPECT_EQ(end.text(), "took longer than 0.3 s: late");
  const auto child = parse_int(trim(end.output));
  ASSERT_TRUE(child) << end.output;
  // A zombie whose new parent has not come by yet counts as gone.
  std::string state;
  for (int i = 0; i < 200; ++i) {
    const auto status = read_text_file(concat("/proc/", *child, "/status"));
    state = status ? *status : std::string();
    if (state.empty() || state.find("State:\tZ") != std::string::npos) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  FAIL() << state;
}

TEST_F(SubprocessTest, DoesNotWaitForWhatTheProgramLeftBehind) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(shell("sleep 60 & echo done").output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(SubprocessTest, NoticesTheEndOfWhoClosedItsOutput) {
  const ProcessEnd end = shell("exec >&- 2>&-; sleep 0.2; exit 4");
  EXPECT_EQ(end.code, 4);
  EXPECT_GT(end.wall_ns, 1.5e8);
}

TEST_F(SubprocessTest, StopsWhoWritesTooMuch) {
  const ProcessEnd end = shell("yes", {.time_s = 30, .output_bytes = 5000});
  EXPECT_EQ(end.kind, End::kTooMuchOutput);
  EXPECT_EQ(end.output.size(), 5000U);
  EXPECT_EQ(end.text(), "wrote more than 5000 bytes");
  // Exactly as much is fine, and errors do not count: their beginning is kept.
  EXPECT_TRUE(run({"printf", "%s", std::string(5000, 'x')}, {.output_bytes = 5000}).is_good());
  const ProcessEnd loud = shell("yes | head -c 300000 >&2; echo done");
  EXPECT_TRUE(loud.is_good());
  EXPECT_EQ(loud.errors.size(), 4096U);
}

TEST_F(SubprocessTest, TimesOutWhoShoutsForEver) {
  EXPECT_EQ(shell("yes >&2", {.time_s = 0.3}).kind, End::kTimedOut);
}

TEST_F(SubprocessTest, LimitsMemoryFromTheFirstInstruction) {
  if (kIsSanitized) {
    GTEST_SKIP() << "the shadow memory of a sanitizer is address space, too";
  }
  const std::string script = "ulimit -v";
  EXPECT_EQ(shell(script, {.memory_bytes = std::int64_t{512} << 20U}).output, "524288\n");
  EXPECT_EQ(shell(script).output, "unlimited\n");
  // dd takes its whole block at once.
  const std::vector<std::string> block = {"dd", "if=/dev/zero", "of=/dev/null", "bs=256M",
                                          "count=1"};
  EXPECT_TRUE(run(block, {.memory_bytes = std::int64_t{1024} << 20U}).is_good());
  const ProcessEnd end = run(block, {.memory_bytes = std::int64_t{64} << 20U});
  EXPECT_EQ(end.kind, End::kExited);
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.text(), HasSubstr("memory"));
}

TEST_F(SubprocessTest, SignalsOfOursAreItsOwnAgain) {
  // The shell cannot reset what was ignored when it began.
  struct sigaction ignored{};
  struct sigaction before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGTERM, &ignored, &before), 0);
  const ProcessEnd end = shell("kill -TERM $$; sleep 1");
  ASSERT_EQ(::sigaction(SIGTERM, &before, nullptr), 0);
  EXPECT_EQ(end.text(), "was ended by SIGTERM");
}

TEST_F(SubprocessTest, SaysWhatCannotBeStarted) {
  const auto reason = [&](const std::vector<std::string>& words) {
    const auto end = run_process(words, folder.path(), {});
    return end ? std::string("started") : end.error().message;
  };
  EXPECT_EQ(reason({"foretune-no-such-program"}),
            "foretune-no-such-program cannot be started: No such file or directory");
  EXPECT_THAT(reason({"/"}), StartsWith("/ cannot be started: "));
  EXPECT_EQ(reason({}), "a command has no word that names its program");
  EXPECT_EQ(reason({""}), "a command has no word that names its program");
  const auto nowhere = run_process({"true"}, folder / "absent", {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
}

TEST_F(SubprocessTest, ManyAtOnceDoNotMixTheirOutput) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = concat("thread ", t, " run ", i);
        const auto end = run_process({"echo", text}, folder.path(), {});
        wrong[t] += end && end->is_good() && end->output == text + "\n" ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace foretune::command_internal
