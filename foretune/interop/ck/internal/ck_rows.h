// The code shared by the readers of CK Tile's files: turns the runs of a file into measurements of
// one data set. It counts repairs, repeats and losses. Internal to the module.
// Thread safety: a CkCollector belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/internal/ck_time.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::dataset_internal {

struct CkGemmDims {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool operator==(const CkGemmDims&) const = default;
};

// One run as written in a file. Texts that the file does not have are empty.
struct CkRun {
  std::string kernel;
  std::string dtype;
  std::string layout;
  std::string arch;
  CkGemmDims gemm;  // of a GEMM kernel
  // Sizes of a convolution. Its operation and data type come from the kernel's name.
  std::optional<ConvSizes> conv;
  std::string direction;  // "bwd_data"
  std::int64_t split_k = 1;
  CkFigures figures;         // flops and bytes are filled in
  std::string output_dtype;  // of C; without it the bandwidth is ignored
  std::optional<bool> is_valid;
  bool is_all_zero = false;  // the output was all zero
  std::string error;
};

// A size of a convolution by Composable Kernel's name.
struct CkConvSize {
  std::string_view name;
  std::int64_t ConvSizes::* size;
  bool required;
};
// In the order of the CSV. A row's problem_idx is not among them: its count restarts in every file,
// so it does not identify a problem.
std::span<const CkConvSize> ck_conv_sizes();

// Returns "rcr" for "RowMajor", "ColumnMajor", "RowMajor"; empty when a word is neither.
std::string ck_layout_tag(std::string_view a, std::string_view b, std::string_view c);

class CkCollector {
 public:
  explicit CkCollector(ImportFacts facts) : facts_(std::move(facts)) {}

  // Keeps the run, or counts it as dropped with the reason.
  void add(const CkRun& run, const std::string& place);
  // Counts a place where a run should have been.
  void add_broken(const std::string& reason, const std::string& place);
  void note(const std::string& remark, const std::string& place) { counter_.note(remark, place); }

  // Returns the data set. Without a single run it is an empty set of GEMM kernels.
  Result<Dataset> finish(ImportReport* report);

 private:
  struct Parsed {
    Problem problem;
    Config config;
    double flops = 0;
    double bytes = 0;  // 0: not known
    bool repaired = false;
  };
  // Runs of the same problem and kernel on the same device.
  struct Entry {
    std::vector<double> times_ns;
    double relative_error = 0;
    Outcome outcome = Outcome::kUnsupported;  // of a failed run
    Stage stage = Stage::kNone;
    std::string reason;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  static Result<Parsed> parse_gemm(const CkRun& run);
  static Result<Parsed> parse_conv(const CkRun& run);
  Status take(const CkRun& run, const std::string& place);
  Status open(const ConfigSchema& schema, ProblemType type, const std::string& arch);
  Result<std::uint32_t> context_of(const std::string& arch);
  static void take_failure(const CkRun& run, Entry& entry);
  void add_row(const Key& key, const Entry& entry);

  ImportFacts facts_;
  ImportCounter counter_;
  std::optional<Dataset> dataset_;
  std::map<Key, std::size_t> index_;
  std::vector<std::pair<Key, Entry>> entries_;
};

}  // namespace foretune::dataset_internal
