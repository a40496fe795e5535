#include "foretune/dataset/exchange_io.h"

#include <zlib.h>

#include <algorithm>

#include "foretune/base/file.h"

namespace foretune::dataset_internal {

void ImportCounter::drop(const std::string& reason) {
  const auto found = std::find_if(report_.dropped.begin(), report_.dropped.end(),
                                  [&](const auto& entry) { return entry.first == reason; });
  if (found != report_.dropped.end()) {
    ++found->second;
  } else {
    report_.dropped.emplace_back(reason, 1);
  }
}

Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes) {
  z_stream stream{};
  // 16 asks for the gzip wrapper.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) {
    return fail(ErrorCode::kInternal, "the decompressor cannot be started");
  }
  std::vector<std::byte> out;
  std::size_t used = 0;
  int state = Z_OK;
  while (state == Z_OK || state == Z_BUF_ERROR) {
    constexpr std::size_t kStep = std::size_t{1} << 20U;
    if (stream.avail_in == 0 && used < bytes.size()) {
      const std::size_t step = std::min(kStep, bytes.size() - used);
      // zlib's interface predates const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data() + used));
      stream.avail_in = static_cast<uInt>(step);
      used += step;
    }
    const std::size_t before = out.size();
    out.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(kStep);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(before + kStep - stream.avail_out);
    if (out.size() > max_bytes) {
      state = Z_MEM_ERROR;
    } else if (state == Z_BUF_ERROR && stream.avail_in == 0 && used == bytes.size()) {
      break;
    } else if (state == Z_STREAM_END && (stream.avail_in > 0 || used < bytes.size())) {
      // Another member follows.
      state = inflateReset(&stream);
    }
  }
  inflateEnd(&stream);
  if (state == Z_STREAM_END) {
    return out;
  }
  if (state == Z_MEM_ERROR) {
    return fail(ErrorCode::kInvalidArgument, "it inflates to over ", max_bytes, " bytes");
  }
  return fail(ErrorCode::kCorrupt, state == Z_BUF_ERROR ? "the gzip data ends too early"
                                                        : "the gzip data is damaged");
}

Result<std::vector<std::byte>> read_maybe_gzip(const std::filesystem::path& path) {
  FORETUNE_TRY(std::vector<std::byte> bytes, read_file(path));
  if (bytes.size() < 2 || bytes[0] != std::byte{0x1f} || bytes[1] != std::byte{0x8b}) {
    return bytes;
  }
  auto inflated = inflate_gzip(bytes, kMaxTextBytes);
  if (!inflated) {
    return fail_because(inflated.error(), path.string());
  }
  return inflated;
}

}  // namespace foretune::dataset_internal
