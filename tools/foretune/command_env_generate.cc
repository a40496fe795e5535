// foretune env-generate: writes lists of loop-nest benchmarks from ranges of sizes, and lists the
// built-in data sets.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

using loop::gym::Benchmark;

struct EnvGenerateArguments {
  loop::gym::BenchmarkGenerator generator;
  std::string out;
  std::string train;
  std::string test;
  double test_share = 0.1;
  bool list = false;

  void visit(OptionList& options) {
    options.add_switch("list", list, "show the built-in data sets");
    options.section("Computations and files", {"without --list", [this] { return !list; }});
    options.add("kind", generator.kind, "NAME", "kind of loop nest").choose({"mm", "conv"});
    options.add("dimA", generator.dim_a, "LISTS",
                "sizes of the first operand: 64:128:16,64:128:16 (m, k), or batch, channels, "
                "height, width");
    options.add("dimB", generator.dim_b, "LISTS",
                "sizes of the second operand: k, n, or output channels, channels, height, width");
    options.add("words", generator.words, "WORDS",
                "append these words to every loop nest: \"pad=1 nhwc relu\"");
    options.add_switch("permute", generator.permute, "start from every order of the loops");
    options.add("out", out, "FILE", "write the list");
    options.add("train", train, "FILE", "write the loop nests that are not for tests");
    options.add("test", test, "FILE", "write the part for tests, which --seed draws");
    options.add("test-share", test_share, "PART", "share of the loop nests that --test gets")
        .at_least(0)
        .at_most(1)
        .only({"with --test", [this] { return !test.empty(); }});
  }
};

Status write(const std::string& path, const std::vector<Benchmark>& benchmarks) {
  FORETUNE_TRY_STATUS(write_text_file_atomically(path, loop::gym::to_text(benchmarks)));
  print(concat("wrote ", path, ": ", benchmarks.size(), " benchmarks\n"));
  return {};
}

Result<int> show_datasets() {
  for (const loop::gym::DatasetInfo& info : loop::gym::benchmark_datasets()) {
    const std::string name =
        concat(info.name, std::string(20 - std::min<std::size_t>(19, info.name.size()), ' '));
    const std::string count = concat(info.count);
    print(concat(name, std::string(6 - std::min<std::size_t>(5, count.size()), ' '), count, "  ",
                 info.what, "\n"));
  }
  return kExitOk;
}

Result<int> generate(const EnvGenerateArguments& arguments, const Invocation& invocation) {
  if (arguments.list) {
    return show_datasets();
  }
  if (arguments.out.empty() && arguments.test.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "say where the list goes: --out FILE, or --train FILE --test FILE");
  }
  if (arguments.train.empty() != arguments.test.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--train and --test go together");
  }
  FORETUNE_TRY(std::vector<Benchmark> all, loop::gym::generate_benchmarks(arguments.generator));
  if (!arguments.out.empty()) {
    FORETUNE_TRY_STATUS(write(arguments.out, all));
  }
  if (!arguments.test.empty()) {
    const std::vector<Benchmark> test =
        loop::gym::take_test_part(all, arguments.test_share, invocation.seed);
    // A list without benchmarks could not be read back.
    if (test.empty() || all.empty()) {
      return fail(ErrorCode::kInvalidArgument, "--test-share ", arguments.test_share, " leaves ",
                  test.empty() ? "--test" : "--train", " nothing of these benchmarks");
    }
    FORETUNE_TRY_STATUS(write(arguments.train, all));
    FORETUNE_TRY_STATUS(write(arguments.test, test));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env_generate(OptionList& list) {
  return prepare_with<EnvGenerateArguments, generate>(list);
}

}  // namespace foretune::cli
