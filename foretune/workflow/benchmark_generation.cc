#include "foretune/workflow/benchmark_generation.h"

#include <vector>

#include "foretune/base/file.h"

namespace foretune::workflow {

using loop::gym::Benchmark;

void EnvGenerateArguments::visit(OptionList& options) {
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

namespace {

Status write_list(const std::string& path, const std::vector<Benchmark>& benchmarks,
                  const EnvGenerateHooks& hooks) {
  FORETUNE_TRY_STATUS(write_text_file_atomically(path, loop::gym::to_text(benchmarks)));
  if (hooks.on_written) {
    hooks.on_written(path, benchmarks.size());
  }
  return {};
}

}  // namespace

Status run_generation(const EnvGenerateArguments& arguments, const Invocation& invocation,
                      const EnvGenerateHooks& hooks) {
  if (arguments.out.empty() && arguments.test.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "say where the list goes: --out FILE, or --train FILE --test FILE");
  }
  if (arguments.train.empty() != arguments.test.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--train and --test go together");
  }
  FORETUNE_TRY(std::vector<Benchmark> all, loop::gym::generate_benchmarks(arguments.generator));
  if (!arguments.out.empty()) {
    FORETUNE_TRY_STATUS(write_list(arguments.out, all, hooks));
  }
  if (!arguments.test.empty()) {
    const std::vector<Benchmark> test =
        loop::gym::take_test_part(all, arguments.test_share, invocation.seed);
    // A list without benchmarks could not be read back.
    if (test.empty() || all.empty()) {
      return fail(ErrorCode::kInvalidArgument, "--test-share ", arguments.test_share, " leaves ",
                  test.empty() ? "--test" : "--train", " nothing of these benchmarks");
    }
    FORETUNE_TRY_STATUS(write_list(arguments.train, all, hooks));
    FORETUNE_TRY_STATUS(write_list(arguments.test, test, hooks));
  }
  return {};
}

}  // namespace foretune::workflow
