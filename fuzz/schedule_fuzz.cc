// Texts of schedules in AutoSparse's and WACO's notations. The first byte chooses the operation,
// the rest is the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "foretune/interop/sparse_schedules/schedule_text.h"

namespace {

using foretune::ScheduleText;
using foretune::SparseSizes;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// A schedule that was read is written, and the text is read as the same schedule.
void try_text(std::string_view text, const SparseSizes& sizes) {
  if (const auto read = foretune::parse_autosparse_schedule(text, sizes)) {
    const auto written = foretune::autosparse_schedule(read->schedule, sizes, read->threads);
    require(written && foretune::parse_autosparse_schedule(*written, sizes) == read);
    require(foretune::SparseSchedule::from(read->schedule.to_config()) == read->schedule);
  }
  for (const auto reading : {foretune::WacoReading::kOriginal, foretune::WacoReading::kPort}) {
    if (const auto read = foretune::parse_waco_schedule(text, sizes, reading)) {
      const auto written = foretune::waco_schedule(read->schedule, sizes, read->threads, reading);
      require(written && foretune::parse_waco_schedule(*written, sizes, reading) == read);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  SparseSizes sizes{.operation = static_cast<foretune::SparseOperation>(data[0] % 9),
                    .rows = 8032,
                    .columns = 2048,
                    .non_zeros = 355460};
  if (foretune::has_dense_loops(sizes.operation)) {
    sizes.width = 128;
  }
  try_text({reinterpret_cast<const char*>(data + 1), size - 1}, sizes);
  return 0;
}
