// Random schedules of random computations as C: emitted, compiled by the system's C compiler, many
// to a file, run, and compared with the interpreter.
//
//   loop_c --count 2000 [--per_file 100] [--seed 1] [--flags "-O1 -fopenmp-simd"] [--json FILE]
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/loop/machine/testing/c_samples.h"

namespace foretune {
namespace {

Result<std::uint64_t> run_file(std::uint64_t count, const std::string& flags, Rng rng) {
  const testing_support::TemporaryFolder folder;
  std::string source;
  FORETUNE_TRY(const std::vector<loop::CSample> samples,
               loop::random_c_samples(count, rng, source));
  const std::string code = (folder / "nests.c").string();
  const std::string library = (folder / "nests.so").string();
  FORETUNE_TRY_STATUS(write_text_file_atomically(code, source));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (std::system(concat("cc -std=c11 -Wall -Wextra -Werror ", flags, " -shared -fPIC -o ", library,
                         " ", code)
                      .c_str()) != 0) {
    return fail(ErrorCode::kInternal, "the C compiler refuses a schedule");
  }
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return fail(ErrorCode::kIo, "cannot open what was compiled");
  }
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto function =
        reinterpret_cast<loop::CFunction>(::dlsym(handle, concat("nest", i).c_str()));
    const std::string difference = loop::run_and_compare(samples[i], function, rng);
    if (!difference.empty()) {
      ++wrong;
      std::printf("%s: %s\n%s\n", samples[i].computation.name.c_str(), difference.c_str(),
                  tree_text(samples[i].computation, samples[i].nest).c_str());
    }
  }
  ::dlclose(handle);
  return wrong;
}

Status run(int argc, char** argv, Figures& figures) {
  const auto count = bench::count_argument<std::uint64_t>(argc, argv, "count", 2000);
  const auto per_file = bench::count_argument<std::uint64_t>(argc, argv, "per_file", 100);
  const std::string flags = bench::argument(argc, argv, "flags", "-O1 -fopenmp-simd");
  const Rng root(bench::count_argument<std::uint64_t>(argc, argv, "seed", 1));
  std::uint64_t done = 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t file = 0; done < count && per_file > 0; ++file) {
    const std::uint64_t here = std::min(per_file, count - done);
    FORETUNE_TRY(const std::uint64_t bad, run_file(here, flags, root.split(file)));
    wrong += bad;
    done += here;
  }
  std::printf("%llu random schedules compiled as C (%s): %llu wrong\n",
              static_cast<unsigned long long>(done), flags.c_str(),
              static_cast<unsigned long long>(wrong));
  figures.add("fuzzed_schedules_c", static_cast<double>(done));
  figures.add("fuzz_mismatches_c", static_cast<double>(wrong));
  return wrong == 0 ? Status() : fail(ErrorCode::kInternal, "results differ");
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_c", argc, argv, foretune::run);
}
