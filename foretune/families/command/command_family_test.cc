// Families of shell scripts, from their file to measurements.
#include "foretune/families/command/command_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/features/feature_table.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem_type.h"
#include "foretune/problem/sampler.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class CommandFamilyTest : public testing::Test {
 protected:
  CommandFamilyTest() {
    protocol.windows = 2;
    protocol.max_windows = 2;
  }

  // The registries keep names for ever, so every family has its own. `NAME` stands for it.
  std::string unique(const std::string& text) {
    static int number = 0;
    name = concat("command-test-", ++number);
    type = name;
    std::replace(type.begin(), type.end(), '-', '_');
    return concat("name = \"", name, "\"\n", text);
  }
  std::shared_ptr<const Family> make(const std::string& text, FamilyOptions options = {}) {
    const std::filesystem::path path = folder / "family.toml";
    EXPECT_TRUE(write_text_file_atomically(path, unique(text)));
    const Status registered = register_command_family(path);
    EXPECT_TRUE(registered) << (registered ? "" : registered.error().message);
    options.fingerprint.hardware.set(HardwareValue::kCores, 2);
    auto made = create_family(name, options);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::shared_ptr<const Family>(*std::move(made)) : nullptr;
  }
  Problem problem(std::string_view fields = "") const {
    auto parsed = Problem::parse(concat(type, " ", fields));
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    return *std::move(parsed);
  }
  static Config config(const Family& family, std::string_view text) {
    auto parsed = parse_config(family.info().config_schema, text);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    return *std::move(parsed);
  }
  Measurement measure(const std::shared_ptr<const Family>& family, std::string_view text,
                      std::string_view fields = "", std::vector<std::string> evaluate = {}) {
    const auto measurer = make_local_measurer(family, protocol, {});
    return measurer->measure({.problem = problem(fields),
                              .config = config(*family, text),
                              .evaluate = std::move(evaluate)});
  }
  static std::string result_of(const Measurement& measurement) {
    return concat(to_string(measurement.outcome), " at ", to_string(measurement.stage), ": ",
                  measurement.reason);
  }
  std::string lines_of(const std::string& file) const {
    const auto text = read_text_file(folder / file);
    return text ? *text : std::string();
  }

  testing_support::TemporaryFolder folder;
  Protocol protocol;
  std::string name;
  std::string type;
};

TEST_F(CommandFamilyTest, IsAFamilyLikeAnyOther) {
  const auto family = make(R"toml(
description = "sleeps"
[problem]
n = {max = 100, draw = [10, 50]}
kind = {labels = ["a", "b"], default = "a"}
[parameters]
opt = {values = ["-O0", "-O2"], default = "-O2"}
k = [1, 2, 4]
[[constraints]]
expression = "k <= n && (opt != opt.O0 || kind == kind.a)"
reason = "it makes no sense"
[run]
command = ["true", "{opt}", "{k}"]
[metrics.wall_ms]
unit = "ms"
from = "wall"
)toml");
  const FamilyInfo& info = family->info();
  EXPECT_EQ(info.name, name);
  EXPECT_EQ(info.description, "sleeps");
  EXPECT_EQ(info.feature_table, name + "-plain");
  EXPECT_TRUE(find_feature_table(info.feature_table));
  EXPECT_FALSE(info.needs_worker);
  EXPECT_TRUE(known_problems(*family).empty());
  ASSERT_EQ(info.metrics.size(), 1U);
  EXPECT_EQ(to_text(info.config_schema, family->default_configs(problem("n=8")).at(0)),
            "opt=O2 k=1");
  const auto space = *family->space(problem("n=2 kind=b"));
  EXPECT_EQ(space->enumerable()->count(), 2U);
  EXPECT_THAT(space->why_not(config(*family, "opt=O0 k=1")).reason(), HasSubstr("makes no sense"));
  EXPECT_FALSE(family->supports(*Problem::parse("gemm m=1 n=1 k=1")));
  // Sizes are drawn within their bounds, each factor of two as often as the next.
  Rng rng(5);
  const auto drawn = sample_uniform(*find_problem_type(type), 30, {}, {}, rng);
  ASSERT_TRUE(drawn) << drawn.error().message;
  int small = 0;
  for (const Problem& shape : drawn->problems) {
    EXPECT_GE(shape.field(0), 10);
    EXPECT_LE(shape.field(0), 50);
    small += shape.field(0) <= 22 ? 1 : 0;
  }
  EXPECT_GT(small, 5);
  EXPECT_TRUE(sample_log_normal(*find_problem_type(type), 30, {}, {}, rng));

  const Measurement measured = measure(family, "opt=O2 k=2", "n=9");
  EXPECT_EQ(measured.outcome, Outcome::kOk) << measured.reason;
  const double time_ns = measured.find(kTimeNs)->value;
  EXPECT_GT(time_ns, 5e4);
  EXPECT_NEAR(measured.find("wall_ms")->value * 1e6, time_ns, 5e7);
}

TEST_F(CommandFamilyTest, TheTimeIsThatOfTheProcess) {
  const auto family = make(
      "parameters.ms = [20, 60]\n"
      "run.command = ['sh', '-c', 'sleep 0.0$1', 'x', '{ms}']\n");
  const double fast = measure(family, "ms=20").find(kTimeNs)->value;
  const double slow = measure(family, "ms=60").find(kTimeNs)->value;
  EXPECT_GT(fast, 2e7);
  EXPECT_GT(slow, fast + 2e7);
}

TEST_F(CommandFamilyTest, CrashesHangsAndWrongResultsAreOutcomes) {
  const auto family = make(R"toml(
[parameters]
do = ["echo right", "echo wrong", "echo bad input >&2; exit 3", "kill -SEGV $$", "sleep 60",
      "yes", "echo right; sleep 60 &", "echo right; echo more"]
[run]
command = ["sh", "-c", "{do}"]
time_limit_s = 1
output_limit_kb = 8
[check]
reference = ["echo", "right"]
)toml");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"echo_right", "ok at none: "},
      {"echo_wrong", "wrong result at verify: line 1 of the output is 'wrong' instead of 'right'"},
      {"echo_bad_input___2__exit_3",
       "crashed at run: the command ended with exit code 3: bad input"},
      {"kill__SEGV___", "crashed at run: the command was ended by SIGSEGV"},
      {"sleep_60", "timed out at run: the command took longer than 1 s"},
      {"yes", "crashed at run: the command wrote more than 8192 bytes"},
      {"echo_right__sleep_60__", "ok at none: "},
      {"echo_right__echo_more",
       "wrong result at verify: line 2 of the output is 'more' instead of ''"},
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Config> configs;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    configs.push_back(config(*family, concat("do=", expected[i].first)));
    EXPECT_EQ(result_of(measure(family, concat("do=", expected[i].first))), expected[i].second);
  }
  // Interleaved, each outcome is that of its own config.
  const auto measurer = make_local_measurer(family, protocol, {});
  const std::vector<Measurement> compared = measurer->compare(problem(), configs, 2);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result_of(compared[i]), expected[i].second);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

TEST_F(CommandFamilyTest, NotesThatItTimesWholeProcesses) {
  const std::string text = "parameters.a = [1]\nrun.command = ['true']\n";
  EXPECT_THAT(make(text)->info().note, HasSubstr("family.toml has no [time]"));
  EXPECT_EQ(make(text + "[time]\nfrom = 'wall'\n")->info().note, "");
  EXPECT_EQ(make(text + "[time]\nfrom = 'stdout'\nunit = 'ms'\n")->info().note, "");
}

// The third run of a config crashes, long after the first went well.
TEST_F(CommandFamilyTest, ARunThatFailsLaterIsNoTime) {
  for (const std::string time : {"", "[time]\nfrom = 'stdout'\nunit = 'ms'\n"}) {
    const auto family = make(
        "parameters.a = [1]\nrun.command = ['sh', '-c', 'echo x >> runs; "
        "test $(wc -l < runs) -lt 3 || exit 9; sleep 0.01; echo 5']\n" +
        time);
    protocol.windows = 6;
    EXPECT_EQ(result_of(measure(family, "a=1")),
              "crashed at run: the command ended with exit code 9");
    const auto measurer = make_local_measurer(family, protocol, {});
    const std::vector<Config> configs = {config(*family, "a=1")};
    EXPECT_EQ(result_of(measurer->compare(problem(), configs, 6).at(0)),
              "crashed at run: the command ended with exit code 9");
  }
}

TEST_F(CommandFamilyTest, LimitsMemoryOfRuns) {
#ifdef FORETUNE_SANITIZED
  GTEST_SKIP() << "the shadow memory of a sanitizer is address space, too";
#endif
  const auto family = make(
      "parameters.mb = [1, 400]\nrun.memory_limit_mb = 200\n"
      "run.command = ['dd', 'if=/dev/zero', 'of=/dev/null', 'count=1', "
      "'bs={mb}M']\n");
  EXPECT_EQ(measure(family, "mb=1").outcome, Outcome::kOk);
  EXPECT_THAT(result_of(measure(family, "mb=400")),
              StartsWith("crashed at run: the command ended"));
}

TEST_F(CommandFamilyTest, AProgramThatIsNotThereIsAnOutcome) {
  const auto family = make("parameters.a = [1]\nrun.command = ['foretune-no-such-program']\n");
  EXPECT_EQ(result_of(measure(family, "a=1")),
            "crashed at run: foretune-no-such-program cannot be started: No such file or "
            "directory");
}

TEST_F(CommandFamilyTest, NoShellSeesTheWords) {
  const auto family = make(
      "parameters.w = ['$(touch {{x}})', '; touch x', '`id`']\n"
      "run.command = ['printf', '%s', '{w}']\n"
      "[check]\nexpected = 'expected.txt'\n");
  ASSERT_TRUE(write_text_file_atomically(folder / "expected.txt", "; touch x"));
  EXPECT_EQ(result_of(measure(family, "w=__touch_x")), "ok at none: ");
  // Braces within a value are no placeholders.
  EXPECT_EQ(result_of(measure(family, "w=__touch___x___")),
            "wrong result at verify: line 1 of the output is '$(touch {{x}})' instead of '; touch "
            "x'");
}

TEST_F(CommandFamilyTest, EveryConfigHasAFolderThatGoes) {
  const auto family = make(
      "parameters.a = [1, 2]\n"
      "run.command = ['sh', '-c', 'pwd >> {source}/seen{a}; ls > "
      "{source}/ls{a}; touch left; mkdir -p deep; touch deep/er']\n");
  EXPECT_EQ(measure(family, "a=1").outcome, Outcome::kOk);
  EXPECT_EQ(measure(family, "a=2").outcome, Outcome::kOk);
  EXPECT_EQ(lines_of("ls2"), "deep\nleft\n");  // of its own earlier run
  std::set<std::string> folders;
  for (const std::string file : {"seen1", "seen2"}) {
    const std::string lines = lines_of(file);
    for (const std::string_view line : split(lines, '\n')) {
      folders.insert(std::string(line));
    }
  }
  folders.erase("");
  ASSERT_EQ(folders.size(), 2U);
  for (const std::string& used : folders) {
    EXPECT_FALSE(std::filesystem::exists(used)) << used;
  }
}

constexpr std::string_view kBuilding = R"toml(
[problem]
n = {}
[parameters]
opt = ["-O0", "-O3", "-broken"]
k = [1, 2]
[build]
command = ["sh", "-c", """echo $0 jobs={jobs} >> {source}/builds
test $0 != -broken || {{ echo cannot >&2; echo more >&2; exit 1; }}
pwd > made""", "{opt}"]
[run]
command = ["sh", "-c", "test $(cat {build}/made) = {build} && echo {build} >> {source}/folders"]
)toml";

TEST_F(CommandFamilyTest, BuildsOnceForAllThatItsCommandDoesNotMention) {
  auto family = make(std::string(kBuilding));
  const auto measurer = make_local_measurer(family, protocol, {});
  for (const std::string_view text : {"opt=O0 k=1", "opt=O3 k=1", "opt=O0 k=2", "opt=broken k=1",
                                      "opt=O3 k=2", "opt=broken k=2"}) {
    for (const std::string_view fields : {"n=1", "n=2"}) {
      const Measurement measured =
          measurer->measure({.problem = problem(fields), .config = config(*family, text)});
      EXPECT_EQ(result_of(measured),
                text.find("broken") == std::string_view::npos
                    ? "ok at none: "
                    : "prepare failed at prepare: the build ended with exit code 1: cannot");
    }
  }
  EXPECT_EQ(lines_of("builds"), "-O0 jobs=2\n-O3 jobs=2\n-broken jobs=2\n");
  // Its folder stays as long as somebody may run it.
  const std::string first(split(lines_of("folders"), '\n').front());
  EXPECT_TRUE(std::filesystem::exists(first));
  const std::unique_ptr<Artifact> kept =
      *family->prepare(problem("n=1"), config(*family, "opt=O0 k=1"));
  EXPECT_EQ(lines_of("builds"), "-O0 jobs=2\n-O3 jobs=2\n-broken jobs=2\n");
}

TEST_F(CommandFamilyTest, BuildsGoWithTheFamily) {
  std::string built;
  {
    const auto family = make(std::string(kBuilding));
    EXPECT_EQ(measure(family, "opt=O0 k=1", "n=1").outcome, Outcome::kOk);
    built = split(lines_of("folders"), '\n').front();
    EXPECT_TRUE(std::filesystem::exists(built));
  }
  EXPECT_FALSE(std::filesystem::exists(built));
}

TEST_F(CommandFamilyTest, BuildJobsReachTheCommandOrAreAnError) {
  const auto family = make(std::string(kBuilding), {.build_jobs = 7});
  EXPECT_EQ(measure(family, "opt=O0 k=1", "n=1").outcome, Outcome::kOk);
  EXPECT_EQ(lines_of("builds"), "-O0 jobs=7\n");
  make("parameters.a = [1]\nrun.command = ['true']\nbuild.command = ['true']\n");
  const auto refused = create_family(name, {.build_jobs = 7});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, concat("the build command of ", name,
                                            " does not mention {jobs}, "
                                            "so build jobs would change nothing"));
  make("parameters.a = [1]\nrun.command = ['true']\n");
  EXPECT_THAT(create_family(name, {.build_jobs = 7}).error().message, HasSubstr("builds nothing"));
}

TEST_F(CommandFamilyTest, HangingBuildsAreOutcomes) {
  const auto family = make(
      "parameters.a = [1]\nrun.command = ['true']\n"
      "[build]\ncommand = ['sh', '-c', 'echo wait >&2; sleep 60']\n"
      "time_limit_s = 0.2\n");
  EXPECT_EQ(result_of(measure(family, "a=1")),
            "prepare failed at prepare: the build took longer than 0.2 s: wait");
}

TEST_F(CommandFamilyTest, ThreadsReachTheCommandsThatNameThem) {
  const std::string text =
      "threads = 2\nparameters.a = [1]\n"
      "run.command = ['sh', '-c', 'test {threads} = 3']\n";
  const auto three = make(text, {.threads = 3});
  EXPECT_EQ(three->info().max_threads, 3);
  EXPECT_EQ(measure(three, "a=1").outcome, Outcome::kOk);
  const auto two = make(text);
  EXPECT_EQ(two->info().max_threads, 2);
  EXPECT_EQ(measure(two, "a=1").outcome, Outcome::kCrashed);
  make("threads = 2\nparameters.a = [1]\nrun.command = ['true']\n");
  EXPECT_THAT(create_family(name, {.threads = 3}).error().message,
              HasSubstr("use 2 threads, which cannot be changed to 3"));
}

TEST_F(CommandFamilyTest, RefusesOptionsThatItDoesNotHave) {
  make("parameters.a = [1]\nrun.command = ['true']\n");
  EXPECT_EQ(create_family(name, {.parameters = {{"x", "1"}}}).error().message,
            name + " has no option 'x'; its file says everything");
}

// The program says its own time: a tenth of a millisecond more in each run, however long it took.
TEST_F(CommandFamilyTest, AReportedTimeIsThatOfOneRunEach) {
  const auto family = make(R"toml(
[parameters]
base = [10, 20]
[run]
command = ["sh", "-c", "echo x >> runs; echo \"{{\\\"ms\\\": {base}.$(wc -l < runs)}}\""]
[time]
from = {json = "/ms"}
unit = "ms"
[metrics.wall_us]
from = "wall"
unit = "us"
)toml");
  protocol.windows = protocol.max_windows = 4;
  protocol.keep_samples = true;
  const Measurement measured = measure(family, "base=20");
  EXPECT_EQ(measured.outcome, Outcome::kOk) << measured.reason;
  // The first run warms up; each window is a run of its own.
  EXPECT_THAT(measured.samples_ns, ElementsAre(20.2e6F, 20.3e6F, 20.4e6F, 20.5e6F));
  EXPECT_DOUBLE_EQ(measured.find(kTimeNs)->value, 20.2e6);
  EXPECT_LT(measured.find("wall_us")->value, 20e3);
  // A slow one is stopped after its first run, as on a device.
  const auto measurer = make_local_measurer(family, protocol, {});
  const Measurement slow = measurer->measure(
      {.problem = problem(), .config = config(*family, "base=20"), .incumbent_ns = 1e6});
  EXPECT_EQ(slow.outcome, Outcome::kCensored);
}

TEST_F(CommandFamilyTest, ATimeThatIsNotReportedIsAnOutcome) {
  const auto family = make(R"toml(
[parameters]
say = ["t=5", "t=0", "nothing", "unsupported"]
[run]
command = ["sh", "-c", "test {say} != unsupported || echo Arguments not supported >&2; echo {say}"]
[time]
from = {regex = "^t=([0-9]+)$"}
unit = "us"
)toml");
  EXPECT_DOUBLE_EQ(measure(family, "say=t_5").find(kTimeNs)->value, 5e3);
  EXPECT_EQ(result_of(measure(family, "say=t_0")),
            "wrong result at run: the command reported no time: it is 0, which is not positive");
  EXPECT_EQ(result_of(measure(family, "say=nothing")),
            "wrong result at run: the command reported no time: the output has nothing like "
            "'^t=([0-9]+)$'");
  EXPECT_EQ(result_of(measure(family, "say=unsupported")),
            "wrong result at run: the command reported no time: the output has nothing like "
            "'^t=([0-9]+)$'; it said 'Arguments not supported'");
}

// A file of the run before is no report of this one.
TEST_F(CommandFamilyTest, AReportIsNotReadTwice) {
  const auto family = make(R"toml(
[parameters]
a = [1]
[run]
command = ["sh", "-c", "echo x >> runs; test $(wc -l < runs) -gt 1 || echo 7 > time.txt"]
[time]
from = {file = "time.txt"}
unit = "us"
)toml");
  EXPECT_EQ(result_of(measure(family, "a=1")),
            "wrong result at run: the command reported no time: the file time.txt is not there");
}

TEST_F(CommandFamilyTest, MetricsOfRunsAndOfLaterStages) {
  const auto family = make(R"toml(
[parameters]
q = [3, 4, 5]
[run]
command = ["sh", "-c", "test {q} = 5 || echo quality {q}; echo 12 > size.txt"]
[metrics.quality]
direction = "maximise"
unit = "dB"
from = {regex = "quality ([0-9]+)"}
[metrics.size]
from = {file = "size.txt"}
[metrics.bytes_of_it]
from = {bytes = "size.txt"}
[metrics.lines]
stage = "evaluation"
command = ["sh", "-c", "test {q} != 4 || {{ echo bad >&2; exit 2; }}; wc -l < {output}"]
from = "stdout"
[metrics.again]
stage = "evaluation"
from = {regex = "quality ([0-9]+)"}
)toml");
  const Measurement measured = measure(family, "q=3");
  ASSERT_EQ(measured.outcome, Outcome::kOk) << measured.reason;
  EXPECT_EQ(measured.find("quality")->value, 3);
  EXPECT_EQ(measured.find("size")->value, 12);
  EXPECT_EQ(measured.find("bytes_of_it")->value, 3);
  EXPECT_EQ(measured.find("lines"), nullptr);
  EXPECT_EQ(result_of(measure(family, "q=5")),
            "wrong result at verify: quality cannot be read: the output has nothing like 'quality "
            "([0-9]+)'");
  const Measurement evaluated = measure(family, "q=3", "", {"lines", "again"});
  ASSERT_EQ(evaluated.outcome, Outcome::kOk) << evaluated.reason;
  EXPECT_EQ(evaluated.find("lines")->value, 1);
  EXPECT_EQ(evaluated.find("again")->value, 3);
  EXPECT_EQ(evaluated.find(kTimeNs), nullptr);
  EXPECT_EQ(result_of(measure(family, "q=4", "", {"lines"})),
            "prepare failed at evaluate: the command of lines ended with exit code 2: bad");
}

TEST_F(CommandFamilyTest, ARunThatFailsIsNotEvaluated) {
  const auto family = make(
      "parameters.a = [1]\nrun.command = ['sh', '-c', 'exit 5']\n"
      "[metrics.q]\nfrom = 'stdout'\nstage = 'evaluation'\n");
  EXPECT_EQ(result_of(measure(family, "a=1", "", {"q"})),
            "crashed at evaluate: the command ended with exit code 5");
}

TEST_F(CommandFamilyTest, AReferenceRunsOnceForEachProblem) {
  const auto family = make(R"toml(
[problem]
n = {}
[parameters]
a = [1, 2]
[run]
command = ["sh", "-c", "echo {n}; test {a} = 1 || echo {a}"]
[check]
prepare = ["sh", "-c", "echo {n} > made"]
reference = ["sh", "-c", "echo ran {n} >> {source}/references; cat made"]
)toml");
  const auto measurer = make_local_measurer(family, protocol, {});
  for (int round = 0; round < 2; ++round) {
    for (const std::string_view fields : {"n=1", "n=2"}) {
      const Measurement right =
          measurer->measure({.problem = problem(fields), .config = config(*family, "a=1")});
      EXPECT_EQ(right.outcome, Outcome::kOk) << right.reason;
      const Measurement wrong =
          measurer->measure({.problem = problem(fields), .config = config(*family, "a=2")});
      EXPECT_EQ(wrong.outcome, Outcome::kWrongResult);
    }
  }
  EXPECT_EQ(lines_of("references"), "ran 1\nran 2\n");
  const auto broken = make(
      "parameters.a = [1]\nrun.command = ['true']\n"
      "[check]\nprepare = ['false']\nreference = ['true']\n");
  EXPECT_EQ(result_of(measure(broken, "a=1")),
            "prepare failed at prepare: preparing the reference ended with exit code 1");
}

TEST_F(CommandFamilyTest, ACommandMayJudge) {
  const auto family = make(R"toml(
[parameters]
a = [1, 2]
[run]
command = ["echo", "{a}"]
[check]
command = ["sh", "-c", "test $(cat {output}) -lt 2 || {{ echo too large >&2; exit 1; }}"]
time_limit_s = 5
)toml");
  EXPECT_EQ(measure(family, "a=1").outcome, Outcome::kOk);
  EXPECT_EQ(result_of(measure(family, "a=2")),
            "wrong result at verify: the check ended with exit code 1: too large");
  const auto absent = make(
      "parameters.a = [1]\nrun.command = ['true']\n"
      "[check]\nexpected = 'absent.txt'\n");
  EXPECT_THAT(result_of(measure(absent, "a=1")), HasSubstr("absent.txt"));
}

TEST_F(CommandFamilyTest, ListedProblemsAreAllThatThereAre) {
  const auto listed = make(
      "problems = ['n=3', 'n=5']\nproblem.n = {}\nparameters.a = [1]\n"
      "run.command = ['true']\n");
  ASSERT_EQ(known_problems(*listed).size(), 2U);
  EXPECT_EQ(known_problems(*listed)[1], problem("n=5"));
  const auto one = make("parameters.a = [1]\nrun.command = ['true']\n");
  ASSERT_EQ(known_problems(*one).size(), 1U);
  EXPECT_EQ(known_problems(*one)[0].text(), type);
}

TEST_F(CommandFamilyTest, FamiliesOfSeveralThreadsDoNotDisturbEachOther) {
  const auto family = make(R"toml(
[parameters]
a = {min = 0, max = 7}
[build]
command = ["sh", "-c", "echo {a} > a"]
[run]
command = ["cat", "{build}/a"]
[metrics.a]
from = "stdout"
)toml");
  const auto other = make(
      "parameters.a = {min = 0, max = 7}\nrun.command = ['echo', '{a}']\n"
      "metrics.a.from = 'stdout'\n");
  const Problem others = problem();
  const Problem first =
      *Problem::parse(find_problem_type(family->info().problem_type)->schema.name);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const std::shared_ptr<const Family> mine = t % 2 == 0 ? family : other;
      const auto measurer = make_local_measurer(mine, protocol, {});
      for (int a = 0; a < 8; ++a) {
        Config config{.schema = mine->info().config_schema.id(), .words = {}};
        config.words.push_back(a);
        const Measurement measured =
            measurer->measure({.problem = t % 2 == 0 ? first : others, .config = config});
        const MetricValue* value = measured.find("a");
        wrong[t] += value != nullptr && value->value == a ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST_F(CommandFamilyTest, NamesThatAreTakenAreRefused) {
  const auto refusal = [&](const std::string& text) {
    const std::filesystem::path path = folder / "taken.toml";
    EXPECT_TRUE(write_text_file_atomically(path, text));
    const Status status = register_command_family(path);
    return status ? std::string("accepted") : status.error().message;
  };
  const std::string rest = "\nparameters.a = [1]\nrun.command = ['true']\n";
  const std::string file = (folder / "taken.toml").string();
  EXPECT_EQ(refusal("name = 'cpu-gemm'" + rest), file + ": there is a family cpu-gemm already");
  EXPECT_THAT(refusal("name = 'gemm'" + rest), HasSubstr("there is a problem type gemm"));
  make(rest);
  EXPECT_EQ(refusal("name = '" + name + "'" + rest),
            concat(file, ": there is a family ", name, " already"));
  const Status absent = register_command_family(folder / "absent.toml");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace foretune
