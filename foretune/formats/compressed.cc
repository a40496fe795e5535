#include "foretune/formats/compressed.h"

#include "foretune/base/file.h"
#include "foretune/formats/gzip.h"
#include "foretune/formats/zstd.h"

namespace foretune::formats {

Result<std::vector<std::byte>> read_maybe_compressed(const std::filesystem::path& path) {
  FORETUNE_TRY(std::vector<std::byte> bytes, read_file(path));
  if (!is_gzip(bytes) && !is_zstd(bytes)) {
    return bytes;
  }
  auto inflated = is_gzip(bytes) ? inflate_gzip(bytes) : inflate_zstd(bytes);
  if (!inflated) {
    return fail_because(inflated.error(), path.string());
  }
  return inflated;
}

}  // namespace foretune::formats
