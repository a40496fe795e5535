#include "foretune/formats/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <cstdint>
#include <memory>

namespace foretune::formats {

bool is_zstd(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{0x28} && bytes[1] == std::byte{0xb5} &&
         bytes[2] == std::byte{0x2f} && bytes[3] == std::byte{0xfd};
}

Result<std::vector<std::byte>> inflate_zstd(std::span<const std::byte> bytes,
                                            std::size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        &ZSTD_freeDCtx);
  if (context == nullptr) {
    return fail(ErrorCode::kInternal, "the decompressor cannot be started");
  }
  std::vector<std::byte> out;
  std::vector<std::byte> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  std::size_t wanted = 1;  // 0 at the end of a frame
  bool is_piece_full = false;
  while (input.pos < input.size || is_piece_full) {
    ZSTD_outBuffer output{piece.data(), piece.size(), 0};
    wanted = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(wanted) != 0) {
      const bool too_wide = ZSTD_getErrorCode(wanted) == ZSTD_error_frameParameter_windowTooLarge;
      return too_wide ? fail(ErrorCode::kUnsupported, "its Zstandard window is over 128 MiB")
                      : fail(ErrorCode::kCorrupt, "the Zstandard data is damaged");
    }
    out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(output.pos));
    if (out.size() > max_bytes) {
      return fail(ErrorCode::kInvalidArgument, "it inflates to over ", max_bytes, " bytes");
    }
    is_piece_full = wanted != 0 && output.pos == output.size;
  }
  if (wanted != 0) {
    return fail(ErrorCode::kCorrupt, "the Zstandard data ends too early");
  }
  return out;
}

}  // namespace foretune::formats
