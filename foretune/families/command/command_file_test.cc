#include "foretune/families/command/command_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const CommandSpec> read(const std::string& text) {
  auto spec = parse_command_file(text, "f.toml", "/folder");
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message) << "\n" << text;
  return spec ? *std::move(spec) : nullptr;
}

std::string refusal(const std::string& text) {
  const auto spec = parse_command_file(text, "f.toml", "/folder");
  return spec ? std::string("accepted") : spec.error().message;
}

constexpr std::string_view kHead = "name = \"x\"\n";
constexpr std::string_view kParameters = "parameters.a = [1, 2]\n";
constexpr std::string_view kRun = "run.command = [\"true\"]\n";

// A whole file but for `rest`, which begins in line 4.
std::string with(std::string_view rest) { return concat(kHead, kParameters, kRun, rest, "\n"); }

TEST(CommandFile, TheSmallestFamily) {
  const auto spec = read(with(""));
  EXPECT_EQ(spec->name, "x");
  EXPECT_EQ(spec->description, "commands of f.toml");
  EXPECT_EQ(spec->source, "/folder");
  EXPECT_EQ(spec->version, 1U);
  EXPECT_EQ(spec->threads, 1);
  EXPECT_TRUE(spec->fields.empty());
  EXPECT_THAT(spec->problems, ElementsAre(""));  // the one problem without fields
  EXPECT_THAT(spec->parameters.at(0).domain, ElementsAre(1, 2));
  EXPECT_EQ(spec->parameters.at(0).default_word, 1);
  EXPECT_EQ(spec->run.limits.time_s, 60);
  EXPECT_EQ(spec->run.limits.memory_bytes, 0);
  EXPECT_EQ(spec->run.limits.output_bytes, 1 << 20);
  EXPECT_FALSE(spec->build);
  EXPECT_FALSE(spec->time);
  EXPECT_EQ(spec->check.kind, ResultCheck::Kind::kNone);
}

TEST(CommandFile, EveryKeyIsTaken) {
  const auto spec = read(R"toml(
name = "all-keys"
description = "every key there is"
version = 3
threads = 4

[problem]
n = {min = 2, max = 500, default = 50, draw = [4, 400], help = "numbers"}
kind = {labels = ["slow", "fast"], default = "fast", help = "which"}

[parameters]
zeta = [8, 2, 4]
opt = {values = ["-O0", "-O3", ""], default = "-O3"}
march = {values = ["-march=x86-64", "-march=native"], labels = ["plain", "native"], default = "native"}
more = {values = ["", "-a -b"], split = true}
alpha = {min = -4, max = 4, step = 4, default = 0}

[[constraints]]
expression = "zeta <= n || kind == kind.slow"
reason = "more chunks than numbers"
[[canonical]]
parameter = "zeta"
expression = "min(zeta, 4)"

[build]
command = ["cc", "{opt}", "{march}", "{more}", "-j{jobs}", "{source}/a.c", "{threads}", "{n}"]
time_limit_s = 1.5
memory_limit_mb = 64
output_limit_kb = 2

[run]
command = ["{build}/a", "{zeta}", "{kind}", "{folder}"]
time_limit_s = 2
memory_limit_mb = 128
output_limit_kb = 4

[time]
from = {json = "/t", file = "{folder}/t.json"}
unit = "us"

[metrics.wall]
unit = "ms"
from = "wall"
[metrics.score]
direction = "maximise"
unit = "dB"
from = {regex = "score ([0-9]+)"}
[metrics.whole]
from = "stdout"
[metrics.size]
from = {bytes = "{build}/a"}
unit = "B"
[metrics.late]
stage = "evaluation"
command = ["judge", "{output}"]
from = {file = "late.txt"}
time_limit_s = 9

[check]
command = ["cmp", "{output}", "{source}/expected"]
time_limit_s = 3
)toml");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->version, 3U);
  EXPECT_EQ(spec->threads, 4);
  ASSERT_EQ(spec->fields.size(), 2U);
  EXPECT_EQ(spec->fields[0].minimum, 2);
  EXPECT_EQ(spec->fields[0].maximum, 500);
  EXPECT_EQ(spec->fields[0].default_value, 50);
  EXPECT_EQ(spec->fields[0].drawn->second, 400);
  EXPECT_EQ(spec->fields[1].default_value, 1);
  EXPECT_TRUE(spec->problems.empty());
  // In the order of the file, not of the letters.
  std::vector<std::string> names;
  for (const CommandParameter& parameter : spec->parameters) {
    names.push_back(parameter.name);
  }
  EXPECT_THAT(names, ElementsAre("zeta", "opt", "march", "more", "alpha"));
  EXPECT_THAT(spec->parameters[0].domain, ElementsAre(2, 4, 8));
  EXPECT_EQ(spec->parameters[0].default_word, 8);  // the first that is listed
  EXPECT_THAT(spec->parameters[1].labels, ElementsAre("O0", "O3", "none"));
  EXPECT_EQ(spec->parameters[1].default_word, 1);
  EXPECT_THAT(spec->parameters[2].labels, ElementsAre("plain", "native"));
  EXPECT_EQ(spec->parameters[2].default_word, 1);
  EXPECT_TRUE(spec->parameters[3].splits);
  EXPECT_THAT(spec->parameters[4].domain, ElementsAre(-4, 0, 4));
  EXPECT_EQ(spec->parameters[4].default_word, 0);
  EXPECT_EQ(spec->constraints.size(), 1U);
  EXPECT_EQ(spec->canonical.size(), 1U);
  EXPECT_EQ(spec->build->limits.time_s, 1.5);
  EXPECT_EQ(spec->build->limits.memory_bytes, 64 << 20);
  EXPECT_EQ(spec->run.limits.output_bytes, 4 << 10);
  EXPECT_EQ(spec->time->unit_ns, 1e3);
  ASSERT_EQ(spec->metrics.size(), 5U);
  EXPECT_EQ(spec->metrics[0].unit_ns, 1e6);
  EXPECT_EQ(spec->metrics[1].info.direction, Direction::kMaximise);
  EXPECT_EQ(spec->metrics[1].info.unit, "dB");
  EXPECT_EQ(spec->metrics[4].info.stage, MetricStage::kEvaluation);
  EXPECT_EQ(spec->metrics[4].command->limits.time_s, 9);
  EXPECT_EQ(spec->check.kind, ResultCheck::Kind::kCommand);
  EXPECT_EQ(spec->check.command.limits.time_s, 3);
  EXPECT_TRUE(spec->takes_threads());
}

TEST(CommandFile, OtherChecksAndListedProblems) {
  const auto expected =
      read(with("problems = [\"n=3\", \"n=4 k=b\"]\n[problem]\nn = {}\n"
                "k = {labels = [\"a\", \"b\"], default = \"a\"}\n"
                "[check]\nexpected = \"{n}.txt\""));
  EXPECT_THAT(expected->problems, ElementsAre("n=3", "n=4 k=b"));
  EXPECT_EQ(expected->check.kind, ResultCheck::Kind::kExpected);
  const auto reference = read(with("[check]\nprepare = [\"make\"]\nreference = [\"./r\"]"));
  EXPECT_EQ(reference->check.kind, ResultCheck::Kind::kReference);
  EXPECT_TRUE(reference->check.prepare);
  // A field without a default leaves open which problem there is.
  EXPECT_TRUE(read(with("[problem]\nn = {}"))->problems.empty());
  EXPECT_THAT(read(with("[problem]\nn = {default = 3}"))->problems, ElementsAre(""));
}

TEST(CommandFile, SaysInOneSentenceWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      // The document.
      {"name = ", "f.toml:1: no TOML: "},
      {"a = 1\na = 2", "f.toml:2: no TOML: "},
      {"name = 3", "f.toml:1: name is an integer; it must be a text"},
      {"", "f.toml:1: name is missing; it must be a text"},
      {"name = \"Upper\"", "f.toml:1: name is 'Upper'; it must have letters a-z, digits, - and _"},
      {"name = \"a\\u0000b\"", "f.toml:1: name has a zero byte"},
      {with("descripton = \"x\""), "f.toml:4: descripton is no key; did you mean description?"},
      {with("qqqqqqqq = 1"), "f.toml:4: qqqqqqqq is no key; there are name, description, version"},
      {with("\"two words\" = 1"), "f.toml:4: 'two words' is no key"},
      {with("description = \"\""), "f.toml:4: description must be one line of text"},
      {with("version = 0"), "f.toml:4: version is 0; it must be from 1 to 1000000"},
      {with("threads = 1.5"), "f.toml:4: threads is a number with a point; it must be an integer"},
      {with("threads = 1979-05-27"), "f.toml:4: threads is a date or time"},
      // Fields.
      {with("problem = 3"), "f.toml:4: problem is an integer; it must be a table"},
      {with("[problem]\nN = {}"), "f.toml:5: problem.N is no name: letters a-z"},
      {with("[problem]\njobs = {}"), "f.toml:5: problem.jobs has a name that means something else"},
      {with("[problem]\nn = 3"), "f.toml:5: problem.n is an integer; it must be a table"},
      {with("[problem]\nn = {mn = 3}"), "f.toml:5: problem.n.mn is no key; did you mean min?"},
      {with("[problem]\nn = {min = 9, max = 3}"),
       "f.toml:5: problem.n.max is 3; it must be from 9"},
      {with("[problem]\nn = {min = 9, default = 3}"), "problem.n.default is 3; it must be from 9"},
      {with("[problem]\nn = {draw = 3}"), "problem.n.draw must be a list of two integers"},
      {with("[problem]\nn = {draw = [0, 3]}"), "problem.n.draw is from 0 to 3; it must be a range"},
      {with("[problem]\nn = {max = 8, draw = [3, 9]}"), "problem.n.draw is from 3 to 9"},
      {with("[problem]\nk = {labels = []}"), "f.toml:5: problem.k.labels is an empty list"},
      {with("[problem]\nk = {labels = [\"a b\"]}"),
       "problem.k.labels holds 'a b', which is no word"},
      {with("[problem]\nk = {labels = [\"a\", \"a\"]}"),
       "problem.k.labels has 'a' twice as a label"},
      {with("[problem]\nk = {labels = [\"a\"], default = \"b\"}"),
       "problem.k.default is 'b', which is none of a"},
      {with("[problem]\nk = {labels = [\"a\"], min = 1}"), "problem.k.min is no key"},
      {with("problems = [\"n=1\"]\n[problem]\nn = {draw = [1, 9]}"),
       "f.toml:4: problems are listed, but fields are drawn"},
      {with("problems = [\"m=1\"]\n[problem]\nn = {}"),
       "f.toml:4: problems has 'm=1', which is no "},
      {with("problems = [\"n=1 n=2\"]\n[problem]\nn = {}"),
       "problems has 'n=2', which is no field"},
      {with("problems = [\"n=0\"]\n[problem]\nn = {}"), "problems has 'n=0', which is no value"},
      {with("problems = [\"\"]\n[problem]\nn = {}"), "problems has '', which leaves out n"},
      {with("problems = [1]"), "f.toml:4: problems holds an integer; it must be a list of texts"},
      // Parameters.
      {concat(kHead, kRun), "f.toml:1: parameters is missing; a family without parameters"},
      {concat(kHead, kRun, "[parameters]\n"), "f.toml:3: parameters is missing"},
      {with("parameters.A = [1]"), "f.toml:4: parameters.A is no name"},
      {with("parameters.hw = [1]"), "parameters.hw has a name that means something else"},
      {with("parameters.n = [1]\n[problem]\nn = {}"), "parameters.n is the name of a field, too"},
      {with("parameters.b = 3"),
       "parameters.b is an integer; it must be a list of values or a table"},
      {with("parameters.b = []"), "parameters.b.values must be a list of integers or texts"},
      {with("parameters.b = [1, \"x\"]"),
       "parameters.b.values must be integers of 32 bits or texts"},
      {with("parameters.b = [\"x\", 1]"), "parameters.b.values holds an integer"},
      {with("parameters.b = [3000000000]"), "parameters.b.values must be integers of 32 bits"},
      {with("parameters.b = [1, 1]"), "f.toml:4: parameters.b.values has a number twice"},
      {with("parameters.b = [\"-x\", \"x\"]"),
       "parameters.b.values has 'x' twice as a label; labels"},
      {with("parameters.b = {}"), "parameters.b needs values = [...], or min and max"},
      {with("parameters.b = {min = 3, max = 1}"),
       "parameters.b needs values = [...], or min and max"},
      {with("parameters.b = {min = 0, max = 100000}"), "parameters.b has more than 65536 values"},
      {with("parameters.b = {min = 1, max = 9, step = 0}"),
       "parameters.b.step is 0; it must be from 1"},
      {with("parameters.b = {min = 1, max = 9, default = 10}"),
       "parameters.b.default is 10, which is "},
      {with("parameters.b = {values = [1], split = true}"), "parameters.b.split is no key"},
      {with("parameters.b = {values = [\"x\"], split = 1}"),
       "split is an integer; it must be true or"},
      {with("parameters.b = {values = [\"x\"], default = \"y\"}"), "parameters.b.default is 'y'"},
      {with("parameters.b = {values = [\"x\"], labels = [\"a\", \"b\"]}"),
       "parameters.b.labels has 2 labels for 1 values"},
      // Rules.
      {with("constraints = [1]"), "f.toml:4: constraints holds an integer; it must be a list of"},
      {with("constraints = 1"), "f.toml:4: constraints is an integer; it must be a list of tables"},
      {with("[[constraints]]\nexpression = \"a <\"\nreason = \"r\""),
       "f.toml:5: constraints[1].expression makes no sense: "},
      {with("[[constraints]]\nexpression = \"b < 1\"\nreason = \"r\""),
       "constraints[1].expression"},
      {with("[[constraints]]\nexpression = \"a < 1\""), "constraints[1].reason is missing"},
      {with("[[constraints]]\nexpression = \"a < 1\"\nreason = \"\""),
       "f.toml:6: constraints[1].reason must be one line of text"},
      {with("[[constraints]]\nexpression = \"a < 1\\n\"\nreason = \"r\""),
       "constraints[1].expression makes no sense: "},
      {with("[[constraints]]\nexpression = \"a < 1\"\nraeson = \"r\""), "did you mean reason?"},
      {with("[[canonical]]\nparameter = \"b\"\nexpression = \"1\""),
       "f.toml:5: canonical[1].parameter is 'b', which is no parameter"},
      {with("[[canonical]]\nparameter = \"a\"\nexpression = \"(\""),
       "canonical[1].expression makes"},
      // Commands.
      {concat(kHead, kParameters), "f.toml:1: run is missing; its command is what is measured"},
      {concat(kHead, kParameters, "[run]\n"),
       "f.toml:3: run.command is missing; it must be a list"},
      {concat(kHead, kParameters, "run.command = \"ls -l\""),
       "f.toml:3: run.command is a text; it must be a list of texts"},
      {concat(kHead, kParameters, "run.command = [\"\"]"), "run.command begins with an empty word"},
      {concat(kHead, kParameters, "run.command = [\"x\", \"{b}\"]"),
       "f.toml:3: run.command mentions '{b}', which nothing is called here"},
      {concat(kHead, kParameters, "run.command = [\"{build}/x\"]"), "mentions '{build}'"},
      {concat(kHead, kParameters, "run.command = [\"{jobs}\"]"), "mentions '{jobs}'"},
      {concat(kHead, kParameters, "run.command = [\"x\", \"{output}\"]"), "mentions '{output}'"},
      {with("build.command = [\"x\", \"{folder}\"]"),
       "f.toml:4: build.command mentions '{folder}'"},
      {with("build.comand = [\"x\"]"), "f.toml:4: build.comand is no key; did you mean command?"},
      {with("build = 1"), "f.toml:4: build is an integer; it must be a table"},
      {with("run.time_limit_s = 0"), "f.toml:4: run.time_limit_s is 0; it must be from 0.001 to"},
      {with("run.time_limit_s = nan"), "f.toml:4: run.time_limit_s is nan; it must be from"},
      {with("run.time_limit_s = \"1\""), "run.time_limit_s is a text; it must be a number"},
      {with("run.memory_limit_mb = 0"), "run.memory_limit_mb is 0; it must be from 1"},
      {with("run.output_limit_kb = -1"), "run.output_limit_kb is -1; it must be from 1"},
      // Time and metrics.
      {with("[time]\nfrom = \"clock\"\nunit = \"s\""),
       "f.toml:5: time.from is 'clock'; it must be"},
      {with("[time]\nfrom = \"stdout\""), "f.toml:4: time.unit must be ns, us, ms or s"},
      {with("[time]\nfrom = \"stdout\"\nunit = \"h\""),
       "f.toml:6: time.unit must be ns, us, ms or s"},
      {with("[time]\nfrom = \"wall\"\nunit = \"s\""), "time.unit stands beside the clock's time"},
      {with("[time]\nfrom = {bytes = \"x\"}\nunit = \"s\""), "time.from is the size of a file"},
      {with("[time]\nfrom = {}\nunit = \"s\""), "f.toml:5: time.from must have one of json, regex"},
      {with("[time]\nfrom = {json = \"/a\", regex = \"(a)\"}\nunit = \"s\""),
       "must have one of json"},
      {with("[time]\nfrom = {jsn = \"/a\"}\nunit = \"s\""),
       "time.from.jsn is no key; did you mean json?"},
      {with("[time]\nfrom = {json = \"a\"}\nunit = \"s\""),
       "time.from.json is 'a'; a path into JSON"},
      {with("[time]\nfrom = {regex = \"a\"}\nunit = \"s\""), "time.from.regex has 0 groups"},
      {with("[time]\nfrom = {file = \"{x}\"}\nunit = \"s\""), "time.from.file mentions '{x}'"},
      {with("[metrics]\nq = 1"), "f.toml:5: metrics.q is an integer; it must be a table"},
      {with("[metrics.q]"), "f.toml:4: metrics.q.from is missing; it must be a text"},
      {with("[metrics.\"a b\"]\nfrom = \"stdout\""), "f.toml:4: metrics.'a b' makes no sense: "},
      {with("[metrics.time_ns]\nfrom = \"stdout\""),
       "metrics.time_ns is called like a metric that"},
      {with("[metrics.q]\nfrom = \"wall\""), "metrics.q.unit must be ns, us, ms or s where"},
      {with("[metrics.q]\nfrom = \"stdout\"\ndirection = \"up\""),
       "metrics.q.direction is 'up'; it must"},
      {with("[metrics.q]\nfrom = \"stdout\"\nstage = \"late\""),
       "metrics.q.stage is 'late'; it must be"},
      {with("[metrics.q]\nfrom = \"stdout\"\ncommand = [\"x\"]"),
       "f.toml:6: metrics.q.command needs stage = \"evaluation\""},
      {with("[metrics.q]\nfrom = \"wall\"\nunit = \"s\"\nstage = \"evaluation\""),
       "metrics.q.from is the clock's time of a run, which no later stage has"},
      // Checks.
      {with("[check]"), "f.toml:4: check must have one of expected, reference and command"},
      {with("[check]\nexpected = \"a\"\ncommand = [\"b\"]"), "check must have one of expected"},
      {with("[check]\nexpected = \"a\"\nprepare = [\"b\"]"),
       "check.prepare comes before a reference"},
      {with("[check]\nexpected = \"{a}\""), "check.expected mentions '{a}'"},
      {with("[check]\nreference = [\"r\", \"{a}\"]"), "check.reference mentions '{a}'"},
      {with("[check]\ncomand = [\"b\"]"), "check.comand is no key; did you mean command?"},
  };
  for (const auto& [text, expected] : cases) {
    const auto spec = parse_command_file(text, "f.toml", "/folder");
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kCorrupt) << text;
    const std::string& reason = spec.error().message;
    EXPECT_THAT(reason, HasSubstr(expected)) << text;
    EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
    EXPECT_EQ(reason.rfind("f.toml:", 0), 0U) << reason;
  }
}

TEST(CommandFile, RefusesFilesOfAbsurdSize) {
  EXPECT_EQ(refusal(std::string((1U << 20U) + 1, '\n')),
            "f.toml has 1048577 bytes, more than the limit of 1048576");
}

}  // namespace
}  // namespace foretune::command_internal
