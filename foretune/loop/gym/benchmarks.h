// Benchmarks of loop nests and data sets of them: text files with one benchmark per line,
//
//   # foretune benchmarks 1
//   mm64_80_96      mm m=64 n=80 k=96
//   mm64_80_96.nkm  mm m=64 n=80 k=96 ; move n0 0, swap m0
//
// its name, its computation (loop::parse_computation), and the schedule to start from, unless that
// is the plain nest. Lines that begin with # and empty lines are ignored.
//
//   FORETUNE_TRY(const std::vector<Benchmark> test, load_benchmarks("mm64_256_16_test"));
//
// Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop::gym {

struct Benchmark {
  std::string name;
  loop::Computation computation;
  std::vector<loop::Action> schedule;  // to start from

  // Returns the nest to start from.
  [[nodiscard]] loop::Nest start() const;
};

// Errors name `source`: kInvalidArgument for invalid lines, with their number, for a repeated name,
// and for a text without benchmarks.
Result<std::vector<Benchmark>> parse_benchmarks(std::string_view text, std::string_view source);
// Returns the text that parse_benchmarks() reads.
std::string to_text(std::span<const Benchmark> benchmarks);

// Describes benchmarks with LoopTune's syntax. A list of sizes is `v`, `lo:hi` or `lo:hi:step`
// (including hi), or several of these joined by `|`; commas join dimensions.
struct BenchmarkGenerator {
  // mm: products [m][k] x [k][n]; dim_a are m and k, dim_b k and n; one for every m, n and k.
  // conv: images [batch][channels][h][w] and kernels [out][channels][kh][kw]; the lists of h and w
  // are paired, and so are those of kh and kw, so that images and kernels stay square.
  std::string kind = "mm";
  std::string dim_a;
  std::string dim_b;
  std::string words;     // appended to every computation: "relu", "pad=1 nhwc"
  bool permute = false;  // starts from every order of the loops with more than one round
};
// Names are mm<m>_<n>_<k> and conv<batch>_<channels>_<h>_<out>_<kh>, for rectangles
// <h>x<w> and <kh>x<kw>; a permutation adds a dot and its loops from the outside. Errors:
// kInvalidArgument for an invalid list, for a repeated size, for inner sizes of A and B that are
// not the same list, and for more than a million benchmarks.
Result<std::vector<Benchmark>> generate_benchmarks(const BenchmarkGenerator& generator);

// Moves a part of the benchmarks, drawn with `seed`, from `benchmarks` to the result. Both keep
// their order. All permutations of a computation end up on the same side.
std::vector<Benchmark> take_test_part(std::vector<Benchmark>& benchmarks, double share,
                                      std::uint64_t seed);

struct DatasetInfo {
  std::string name;
  std::size_t count = 0;
  std::string what;  // the first comment of the file
};
// Returns the data sets that come with the library.
std::vector<DatasetInfo> benchmark_datasets();

// Loads benchmarks by the name of a data set that comes with the library, the path of a file (as
// above, or one of LoopTune's), the path of a folder (all files in it that end with .txt or have no
// extension, by name), the name of one benchmark of a data set
// (`mm64_128_16/mm64_80_96`) or, where it is unique, of all data sets that come with the library
// (`mm64_80_96`), or by the text of a computation, which is then its own name. Errors: those of
// parse_benchmarks(), kNotFound with the probable name.
Result<std::vector<Benchmark>> load_benchmarks(std::string_view name);

}  // namespace foretune::loop::gym
