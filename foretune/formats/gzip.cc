#include "foretune/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "foretune/base/check.h"

namespace foretune::formats {
namespace {

// zlib counts in 32 bits, so it is fed in pieces.
constexpr std::size_t kStep = std::size_t{1} << 20U;

}  // namespace

Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes) {
  z_stream stream{};
  // 16 selects the gzip wrapper.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) {
    return fail(ErrorCode::kInternal, "the decompressor cannot be started");
  }
  std::vector<std::byte> out;
  std::vector<std::byte> piece(std::size_t{1} << 16U);
  std::size_t used = 0;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= max_bytes) {
    if (stream.avail_in == 0) {
      const std::size_t step = std::min(kStep, bytes.size() - used);
      // zlib's interface predates const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data() + used));
      stream.avail_in = static_cast<uInt>(step);
      used += step;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    // Without input it answers Z_BUF_ERROR, which ends the loop.
    state = inflate(&stream, Z_NO_FLUSH);
    out.insert(out.end(), piece.begin(),
               piece.end() - static_cast<std::ptrdiff_t>(stream.avail_out));
    if (state == Z_STREAM_END && (stream.avail_in > 0 || used < bytes.size())) {
      state = inflateReset(&stream);  // another member follows
    }
  }
  inflateEnd(&stream);
  if (out.size() > max_bytes) {
    return fail(ErrorCode::kInvalidArgument, "it inflates to over ", max_bytes, " bytes");
  }
  if (state == Z_STREAM_END) {
    return out;
  }
  return fail(ErrorCode::kCorrupt,
              state == Z_BUF_ERROR ? "the gzip data ends too early" : "the gzip data is damaged");
}

Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes) {
  return inflate_gzip(bytes, kMaxInflatedBytes);
}

std::vector<std::byte> deflate_gzip(std::span<const std::byte> bytes) {
  z_stream stream{};
  FORETUNE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
                              Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<std::byte> out;
  std::size_t used = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0) {
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
    state = deflate(&stream, used == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(before + kStep - stream.avail_out);
  }
  deflateEnd(&stream);
  FORETUNE_CHECK(state == Z_STREAM_END);
  return out;
}

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace foretune::formats
