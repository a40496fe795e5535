// What the foreign formats share. Internal to the module.
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
#include "foretune/dataset/exchange.h"
#include "foretune/documents/gzip.h"

namespace foretune::dataset_internal {

using documents::deflate_gzip;
using documents::inflate_gzip;
using documents::is_gzip;
using documents::kMaxInflatedBytes;
using documents::read_maybe_gzip;

// Counts rows and why some were dropped, in order of first appearance of the reason.
class ImportCounter {
 public:
  void read() { ++report_.rows_read; }
  void keep() { ++report_.rows_kept; }
  // `place` of the first row that is dropped for this reason is kept: "row 17".
  void drop(const std::string& reason, const std::string& place = {});
  void note(const std::string& remark, const std::string& place = {});
  // An error when there were rows and none could be used.
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

// The shortest decimal that is read back as this very float, also by way of a double.
std::string float_text(float value);
// The double nearest to it: prints short.
double short_double(float value);

// Without leading zeros.
std::string hex_text(std::uint64_t value);

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace foretune::dataset_internal
