// What the foreign formats share. Internal to the module.
// Thread safety: free functions without state; an ImportCounter belongs to one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"

namespace foretune::dataset_internal {

inline constexpr std::size_t kMaxTextBytes = std::size_t{4} << 30U;

// The file's bytes, inflated when it is gzip. Refuses more than kMaxTextBytes.
Result<std::vector<std::byte>> read_maybe_gzip(const std::filesystem::path& path);
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes);

// Counts rows and why some were dropped, in order of first appearance of the reason.
class ImportCounter {
 public:
  void read() { ++report_.rows_read; }
  void keep() { ++report_.rows_kept; }
  void drop(const std::string& reason);
  void write_to(ImportReport* report) const {
    if (report != nullptr) {
      *report = report_;
    }
  }
  [[nodiscard]] const ImportReport& report() const { return report_; }

 private:
  ImportReport report_;
};

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace foretune::dataset_internal
