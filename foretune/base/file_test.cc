#include "foretune/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/testing/temporary_folder.h"

namespace foretune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  std::size_t files_in_folder() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const fs::path path = folder_ / "a.bin";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{70000}}) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::byte>(i * 7);
    }
    ASSERT_TRUE(write_file_atomically(path, bytes));
    EXPECT_EQ(read_file(path).value(), bytes);
    const Result<MappedFile> mapped = MappedFile::open(path);
    ASSERT_TRUE(mapped);
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), mapped->bytes().begin(), mapped->bytes().end()));
  }
  ASSERT_TRUE(write_text_file_atomically(path, "text\n"));
  EXPECT_EQ(read_text_file(path).value(), "text\n");
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileTest, ReadsFilesThatDoNotKnowTheirSize) {
  const Result<std::string> status = read_text_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_THAT(*status, HasSubstr("Pid:"));
}

TEST_F(FileTest, ReadsAPipeToItsEnd) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string text(200000, 'x');
  std::thread writer([&] { EXPECT_TRUE(write_text_file_atomically(pipe, text)); });
  const Result<std::string> read = read_text_file(pipe);
  writer.join();
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, text);
  EXPECT_TRUE(fs::is_fifo(pipe)) << "a pipe is written to, not replaced";
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileTest, MissingFilesAndFoldersAreErrorsWithTheirName) {
  for (const Error& error :
       {read_file(folder_ / "none").error(), MappedFile::open(folder_ / "none").error(),
        write_text_file_atomically(folder_ / "none" / "a", "x").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_THAT(error.message, HasSubstr((folder_ / "none").string()));
    EXPECT_THAT(error.message, HasSubstr("No such file"));
  }
  EXPECT_EQ(read_file(folder_.path()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open(folder_.path()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, AFailedReplacementLeavesTheOldStateAndNoRubbish) {
  const fs::path target = folder_ / "taken";
  fs::create_directory(target);
  const Status written = write_text_file_atomically(target, "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_TRUE(fs::is_directory(target));
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileTest, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  const Status written = write_text_file_atomically("/dev/full", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_THAT(written.error().message, HasSubstr("No space left"));
}

TEST_F(FileTest, AFolderWithoutPermissionIsAnError) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may write everywhere";
  }
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const Status written = write_text_file_atomically(folder_ / "a", "x");
  fs::permissions(folder_.path(), fs::perms::owner_all);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
}

TEST_F(FileTest, DevicesAreWrittenToInPlace) {
  EXPECT_TRUE(write_text_file_atomically("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, ASymbolicLinkStaysAndItsTargetChanges) {
  ASSERT_TRUE(write_text_file_atomically(folder_ / "target", "old"));
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write_text_file_atomically(folder_ / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text_file(folder_ / "target").value(), "new");
  EXPECT_EQ(files_in_folder(), 2U);
}

TEST_F(FileTest, PermissionsOfAReplacedFileStay) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(write_text_file_atomically(path, "old"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_write);
  ASSERT_TRUE(write_text_file_atomically(path, "new"));
  EXPECT_EQ(fs::status(path).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_write);
}

TEST_F(FileTest, AReaderSeesOneOfTheContentsWhileWritersCompete) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(write_text_file_atomically(path, std::string(50000, '0')));
  std::vector<std::thread> writers;
  for (char c = '1'; c <= '3'; ++c) {
    writers.emplace_back([&path, c] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(write_text_file_atomically(path, std::string(50000, c)));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const Result<std::string> read = read_text_file(path);
    ASSERT_TRUE(read);
    ASSERT_EQ(*read, std::string(50000, read->front()));
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileTest, AnEmptyFileMapsToNothing) {
  ASSERT_TRUE(write_text_file_atomically(folder_ / "empty", ""));
  const Result<MappedFile> mapped = MappedFile::open(folder_ / "empty");
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST_F(FileTest, AMappingMovesAndOutlivesItsFile) {
  ASSERT_TRUE(write_text_file_atomically(folder_ / "a", "mapped"));
  MappedFile first = MappedFile::open(folder_ / "a").value();
  fs::remove(folder_ / "a");
  MappedFile second(std::move(first));
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
  EXPECT_TRUE(first.bytes().empty());
  MappedFile third;
  third = std::move(second);
  ASSERT_EQ(third.bytes().size(), 6U);
  EXPECT_EQ(hash64(third.bytes()), hash64("mapped"));
}

}  // namespace
}  // namespace foretune
