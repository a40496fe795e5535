// Exports models, compiles the headers with the compiler of this build, and compares their picks
// with the models'.
#include "foretune/export_cpp/export_cpp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

// Returns the answer that the header has to give: the legal config of the portfolio with the best
// score.
int expected_pick(const Model& model, const CompiledSpace& space, const Problem& problem) {
  const DistilledModel& fast = *model.distilled;
  std::vector<std::int16_t> inputs(fast.features.size());
  std::vector<std::int32_t> scores(fast.portfolio.size());
  fast.inputs(problem.fields(), inputs);
  fast.scores(inputs, scores);
  int index = -1;
  int best = -1;
  std::int32_t lowest = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto words = model.pool[fast.portfolio[i]].words.view();
    if (!space.is_legal_config(words, model.fingerprint.hardware)) {
      continue;
    }
    ++index;  // the header has only these
    if (scores[i] < lowest && space.is_legal(words, problem.fields(), model.fingerprint.hardware)) {
      lowest = scores[i];
      best = index;
    }
  }
  return best;
}

class ExportCppTest : public testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) {
    std::ofstream(folder_.path() / name) << text;
  }
  // Compiles the program as a strict user would, runs it, and returns its output.
  std::string build_and_run(const std::string& compiler, const std::string& source) {
    write("program.cc", source);
    const std::string folder = folder_.path().string();
    const std::string build =
        concat(compiler, " -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -o ", folder,
               "/program ", folder, "/program.cc > ", folder, "/log 2>&1");
    const int built = std::system(build.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
    EXPECT_EQ(built, 0) << read("log");
    const std::string execute = concat(folder, "/program > ", folder, "/out");
    EXPECT_EQ(std::system(execute.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
    return read("out");
  }
  std::string read(std::string_view name) {
    std::stringstream text;
    text << std::ifstream(folder_.path() / name).rdbuf();
    return text.str();
  }

  testing_support::TemporaryFolder folder_;
  Rng rng_{23};
};

TEST_F(ExportCppTest, TheHeaderPicksWhatTheFastModelPicks) {
  Model model = sample_model_with_distilled({}, rng_);
  const auto header = cpp_header(model, {.name_space = "picks"});
  ASSERT_TRUE(header.has_value()) << header.error().message;
  write("picks.h", *header);
  const auto space = CompiledSpace::create(*SpaceDefinition::parse(model.space_text));
  std::string rows;
  std::vector<int> expected;
  std::vector<bool> near;
  for (int i = 0; i < 4000; ++i) {
    // Every other problem is far outside of the training problems; some have no legal config.
    Problem problem = sample_gemm(rng_);
    if (i % 2 == 1) {
      problem = GemmProblem::create({.m = rng_.between(1, i % 4 == 1 ? 3 : 2147483647),
                                     .n = rng_.between(1, i % 4 == 1 ? 3 : 2147483647),
                                     .k = rng_.between(1, 2147483647),
                                     .dtype = DataType::kBf16})
                    ->to_problem();
    }
    std::string fields;
    for (const std::int64_t field : problem.fields()) {
      fields += concat(fields.empty() ? "" : ", ", field);
    }
    rows += concat("    {", fields, "},\n");
    expected.push_back(expected_pick(model, **space, problem));
    std::vector<std::int16_t> inputs(model.distilled->features.size());
    model.distilled->inputs(problem.fields(), inputs);
    near.push_back(model.distilled->bound(inputs) <= 0.1F);
  }
  const std::string source = concat(
      "#include \"picks.h\"\n#include <cstdio>\n",
      "constexpr picks::Problem kFirst{0, 512, 512, 512, 1, 2, 1};\n",
      "static_assert(picks::select(kFirst).index >= -1, \"evaluated by the compiler\");\n",
      "static const picks::Problem kProblems[] = {\n", rows, "};\n",
      "int main() {\n  for (const auto& p : kProblems) {\n    const auto pick = "
      "picks::select(p);\n    std::printf(\"%d %d\\n\", pick.index, pick.bound <= 0.1);\n  }\n}\n");
  std::vector<std::string> compilers{FORETUNE_CXX_COMPILER};
  const char* const asks_clang = "clang++-19 --version > /dev/null 2>&1";
  if (std::system(asks_clang) == 0) {  // NOLINT(concurrency-mt-unsafe): one thread
    compilers.emplace_back("clang++-19");
  }
  for (const std::string& compiler : compilers) {
    std::istringstream answers(build_and_run(compiler, source));
    int legal = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      int index = -2;
      bool is_near = false;
      answers >> index >> is_near;
      ASSERT_EQ(index, expected[i]) << compiler << " problem " << i;
      ASSERT_EQ(is_near, near[i]) << compiler << " problem " << i;
      legal += index >= 0 ? 1 : 0;
    }
    EXPECT_GT(legal, 2000);
    EXPECT_EQ(std::count(expected.begin(), expected.end(), -1), 4000 - legal);
  }
}

// Compares the arithmetic of random expressions, including the extremes that saturate.
TEST_F(ExportCppTest, ExpressionsHaveTheSameValueInCpp) {
  ConfigSchema config;
  config.name = "three";
  config.parameters = {{"x", {}}, {"y", {}}, {"mode", {"off", "on"}}};
  const ProblemSchema& problem = *find_problem_schema(kGemmProblem);
  const std::vector<std::string> texts{"x + y * 3 - m / 7 % 5",
                                       "-x / y",
                                       "-x % y",
                                       "x / 0 + x % 0",
                                       "!x || y && mode == mode.on",
                                       "select(x > y, min(m, n), max(k, x))",
                                       "ceil_div(-x, y) + round_up(x, 16)",
                                       "9223372036854775807 + x",
                                       "-9223372036854775807 - m * n",
                                       "m * n * k * 4611686018427387904",
                                       "hw.cores * problem.m",
                                       "(x == y) != (m <= n)",
                                       "x - -y",
                                       "m >= 2 && n < 3 || k > 4"};
  const Hardware hardware = h200_fingerprint().hardware;
  const auto model = sample_model_with_distilled({}, rng_);
  const auto header = cpp_header(model, {.name_space = "runtime"});
  ASSERT_TRUE(header.has_value());
  write("runtime.h", *header);
  std::string source =
      "#include \"runtime.h\"\n#include <cinttypes>\n#include <cstdio>\n"
      "namespace runtime { namespace detail {\nstruct C { std::int32_t x, y, mode; };\n";
  std::string body;
  std::vector<std::int64_t> expected;
  const std::vector<std::vector<std::int32_t>> words{
      {3, -5, 1}, {-2147483647 - 1, -1, 0}, {2147483647, 7, 1}, {0, 0, 0}, {-7, 2, 1}};
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const auto text = cpp_expression(texts[t], config, problem, hardware);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    source += concat("std::int64_t f", t, "(const C& c, const Problem& p) { (void)c; (void)p; ",
                     "return ", *text, "; }\n");
    const auto expression = Expression::parse(texts[t], config, problem);
    for (const auto& word : words) {
      const std::vector<std::int64_t> fields{0, 2147483647, 3, 5, 1, 2, 1};
      expected.push_back(expression->evaluate(word, fields, hardware));
      body += concat("  std::printf(\"%\" PRId64 \"\\n\", f", t, "(C{", word[0], " + 0, ", word[1],
                     ", ", word[2], "}, Problem{0, 2147483647, 3, 5, 1, 2, 1}));\n");
    }
  }
  const std::size_t smallest = body.find("-2147483648 + 0");
  ASSERT_NE(smallest, std::string::npos);
  std::istringstream answers(
      build_and_run(FORETUNE_CXX_COMPILER,
                    concat(source, "} }\nusing namespace runtime;\n",
                           "using namespace runtime::detail;\nint main() {\n", body, "}\n")));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::int64_t value = 0;
    answers >> value;
    EXPECT_EQ(value, expected[i]) << texts[i / words.size()] << " of words " << i % words.size();
  }
}

TEST_F(ExportCppTest, SaysWhyItCannot) {
  Model model = sample_model_with_distilled({}, rng_);
  for (const char* name : {"1x", "", "a b", "while", "xor_eq", "alignas"}) {
    const auto refused = cpp_header(model, {.name_space = name});
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find("namespace"), std::string::npos);
  }
  EXPECT_TRUE(cpp_header(model, {.name_space = "while_"}));
  EXPECT_FALSE(cpp_header(model, {.max_regret = -1}).has_value());
  model.distilled.reset();
  EXPECT_NE(cpp_header(model, {}).error().message.find("--fast"), std::string::npos);
}

}  // namespace
}  // namespace foretune
