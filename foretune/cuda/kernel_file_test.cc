#include "foretune/cuda/kernel_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"

namespace foretune::cuda {
namespace {

const KernelFileHeader kHeader{"sm_90", "compiler-1.0"};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

CompiledKernel kernel(const std::string& key, std::string_view image = "machine code") {
  return {.key = key,
          .error = "",
          .function = "matmul",
          .threads = 128,
          .shared_bytes = 4096,
          .scratch_bytes = 256,
          .image = bytes_of(image)};
}

class KernelFileTest : public testing::Test {
 protected:
  std::unique_ptr<KernelFileWriter> writer() { return *KernelFileWriter::open(path_, kHeader); }
  std::shared_ptr<const KernelFile> file() {
    auto file = KernelFile::open(path_);
    EXPECT_TRUE(file) << file.error().message;
    return *file;
  }
  // Replaces the file's bytes by the result of `change`.
  template <class Change>
  void damage(const Change& change) {
    std::vector<std::byte> bytes = *read_file(path_);
    change(bytes);
    ASSERT_TRUE(write_file_atomically(path_, bytes));
  }

  testing_support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "kernels.ftk";
};

TEST_F(KernelFileTest, GivesBackWhatWasAppended) {
  {
    const auto out = writer();
    EXPECT_TRUE(out->append(kernel("a")));
    EXPECT_TRUE(out->append({.key = "b", .error = "too many registers"}));
    EXPECT_TRUE(out->contains("a"));
    EXPECT_FALSE(out->contains("c"));
  }
  {
    // Continued; the last record of a key counts.
    const auto out = writer();
    EXPECT_EQ(out->size(), 2U);
    EXPECT_TRUE(out->append(kernel("a", "better code")));
  }
  const auto read = file();
  EXPECT_EQ(read->header(), kHeader);
  EXPECT_EQ(read->kernels().size(), 3U);
  ASSERT_NE(read->find("a"), nullptr);
  EXPECT_EQ(read->find("a")->function, "matmul");
  EXPECT_EQ(read->find("a")->threads, 128U);
  EXPECT_EQ(read->find("a")->shared_bytes, 4096U);
  EXPECT_EQ(read->find("a")->scratch_bytes, 256U);
  EXPECT_TRUE(std::ranges::equal(read->image(*read->find("a")), bytes_of("better code")));
  EXPECT_EQ(read->find("b")->error, "too many registers");
  EXPECT_EQ(read->find("c"), nullptr);
}

TEST_F(KernelFileTest, RefusesWhatIsNoKernelAndOtherHeaders) {
  const auto out = writer();
  EXPECT_EQ(out->append({.key = "empty"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(KernelFileWriter::open(path_, kHeader).error().code, ErrorCode::kIo);
  EXPECT_TRUE(out->append(kernel("a")));
  const auto other = folder_ / "other.ftk";
  {
    ASSERT_TRUE(KernelFileWriter::open(other, {"sm_80", "compiler-1.0"}));
  }
  const auto mismatch = KernelFileWriter::open(other, kHeader);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code, ErrorCode::kMismatch);
  EXPECT_NE(mismatch.error().message.find("sm_80"), std::string::npos);
  EXPECT_EQ(KernelFile::open(folder_ / "none.ftk").error().code, ErrorCode::kNotFound);
}

// A writer may be killed at any byte.
TEST_F(KernelFileTest, ATornTailCostsOneRecord) {
  std::size_t one = 0;
  {
    const auto out = writer();
    ASSERT_TRUE(out->append(kernel("a")));
    one = read_file(path_)->size();
    ASSERT_TRUE(out->append(kernel("b")));
  }
  const std::vector<std::byte> whole = *read_file(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_TRUE(write_file_atomically(path_, std::span(whole).first(size)));
    const auto again = KernelFileWriter::open(path_, kHeader);
    ASSERT_TRUE(again) << size << ": " << again.error().message;
    EXPECT_EQ((*again)->size(), size < one ? 0U : 1U) << size;
    ASSERT_TRUE((*again)->append(kernel("c")));
    const auto read = file();
    ASSERT_NE(read->find("c"), nullptr) << size;
    EXPECT_EQ(read->find("a") != nullptr, size >= one) << size;
    EXPECT_EQ(read->find("b"), nullptr);
  }
}

TEST_F(KernelFileTest, DamageElsewhereIsAnError) {
  {
    const auto out = writer();
    ASSERT_TRUE(out->append(kernel("a")));
    ASSERT_TRUE(out->append(kernel("b")));
  }
  const std::vector<std::byte> whole = *read_file(path_);
  const std::size_t last = (whole.size() - 8) / 2;
  for (std::size_t i = 0; i < last; ++i) {
    damage([&](std::vector<std::byte>& bytes) {
      bytes = whole;
      bytes[i] ^= std::byte{0x10};
    });
    const auto damaged = KernelFile::open(path_);
    // A length that reaches beyond the end looks like a torn tail; nothing is invented.
    if (damaged) {
      EXPECT_LT((*damaged)->kernels().size(), 2U) << i;
    } else {
      EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt) << i;
    }
  }
}

}  // namespace
}  // namespace foretune::cuda
