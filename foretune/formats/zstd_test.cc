#include "foretune/formats/zstd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/formats/compressed.h"

namespace foretune::formats {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> bytes_of_text(const std::string& text) {
  std::vector<std::byte> out(text.size());
  std::transform(text.begin(), text.end(), out.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return out;
}

std::vector<std::byte> deflated(const std::vector<std::byte>& content) {
  std::vector<std::byte> out(ZSTD_compressBound(content.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 3));
  return out;
}

// Longer than any buffer of the decoder.
std::vector<std::byte> long_content() {
  std::string text;
  for (int i = 0; i < 200000; ++i) {
    text += std::to_string(i * 7919) + ",";
  }
  return bytes_of_text(text);
}

TEST(Zstd, InflatesFramesInARow) {
  const std::vector<std::byte> content = long_content();
  std::vector<std::byte> file = deflated(content);
  ASSERT_TRUE(is_zstd(file));
  EXPECT_EQ(inflate_zstd(file).value(), content);
  const std::vector<std::byte> second = deflated(bytes_of_text("more"));
  file.insert(file.end(), second.begin(), second.end());
  EXPECT_EQ(inflate_zstd(file).value().size(), content.size() + 4);
  EXPECT_TRUE(inflate_zstd(deflated({})).value().empty());
}

TEST(Zstd, RefusesWhatIsCutOffDamagedOrTooLong) {
  const std::vector<std::byte> content = long_content();
  const std::vector<std::byte> file = deflated(content);
  for (const std::size_t size : {std::size_t{5}, std::size_t{100}, file.size() - 1}) {
    const auto cut = inflate_zstd(std::span(file).first(size));
    ASSERT_FALSE(cut) << size;
    EXPECT_THAT(cut.error().message, HasSubstr("ends too early")) << size;
  }
  std::vector<std::byte> damaged = file;
  damaged[4] = std::byte{0xff};
  EXPECT_FALSE(inflate_zstd(damaged));
  EXPECT_EQ(inflate_zstd(file, content.size()).value().size(), content.size());
  const auto too_long = inflate_zstd(file, content.size() - 1);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(is_zstd(bytes_of_text("(\xb5/")));
}

TEST(Compressed, TheContentDecidesHowAFileIsRead) {
  const std::vector<std::byte> content = bytes_of_text("a,b\n1,2\n");
  const testing_support::TemporaryFolder folder;
  const auto path = folder.path() / "table";
  for (const std::vector<std::byte>& file : {content, deflated(content), deflate_gzip(content)}) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
    EXPECT_EQ(read_maybe_compressed(path).value(), content);
  }
  std::vector<std::byte> cut = deflated(content);
  cut.pop_back();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(cut.data()), static_cast<std::streamsize>(cut.size()));
  EXPECT_THAT(read_maybe_compressed(path).error().message, HasSubstr(path.string()));
}

}  // namespace
}  // namespace foretune::formats
