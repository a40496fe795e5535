// The code shared by the foreign formats. Internal to the module.
// Thread safety: free functions without state; an ImportCounter belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/formats/compressed.h"
#include "foretune/formats/gzip.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune::dataset_internal {

using formats::deflate_gzip;
using formats::inflate_gzip;
using formats::is_gzip;
using formats::kMaxInflatedBytes;
using formats::read_maybe_compressed;

// Counts rows and the reasons for dropping some, in order of first appearance of the reason.
class ImportCounter {
 public:
  void read() { ++report_.rows_read; }
  void keep() { ++report_.rows_kept; }
  // Keeps the `place` of the first row that is dropped for this reason: "row 17".
  void drop(const std::string& reason, const std::string& place = {});
  void note(const std::string& remark, const std::string& place = {});
  // Fails when there were rows and none could be used.
  [[nodiscard]] Status finish(ImportReport* report) const;
  [[nodiscard]] const ImportReport& report() const { return report_; }

 private:
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
  static void count(Counts& counts, std::vector<std::string>& places, const std::string& what,
                    const std::string& place);
  static Counts with_places(const Counts& counts, const std::vector<std::string>& places);

  ImportReport report_;
  std::vector<std::string> dropped_places_;
  std::vector<std::string> noted_places_;
};

// Returns the shortest decimal that reads back as exactly this float, even when read as a double
// first.
std::string float_text(float value);
// Returns the double nearest to that decimal, which prints short.
double short_double(float value);

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace foretune::dataset_internal
