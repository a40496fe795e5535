#include "foretune/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"

namespace foretune {
namespace {

class DescriptorTest : public testing::Test {
 protected:
  Result<Descriptor> locked() const { return open_locked(path_, O_RDWR | O_CREAT); }

  testing_support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file";
};

TEST_F(DescriptorTest, OneWriterAtATime) {
  {
    const auto first = locked();
    ASSERT_TRUE(first) << first.error().message;
    const auto second = locked();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kIo);
    EXPECT_EQ(second.error().message, path_.string() + " is being written by another process");
  }
  EXPECT_TRUE(locked());
}

TEST_F(DescriptorTest, ReadersShareALockThatNoWriterShares) {
  ASSERT_TRUE(locked());
  const auto reader = open_locked(path_, O_RDONLY, {.is_shared = true});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE(open_locked(path_, O_RDONLY, {.is_shared = true}));
  EXPECT_FALSE(locked());
}

TEST_F(DescriptorTest, APatientWriterWaitsForTheLock) {
  auto first = locked();
  ASSERT_TRUE(first);
  const FileLock impatient{.patience = std::chrono::milliseconds(20)};
  EXPECT_FALSE(open_locked(path_, O_RDWR, impatient));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first->close();
  });
  const auto second = open_locked(path_, O_RDWR, {.patience = std::chrono::minutes(1)});
  other.join();
  EXPECT_TRUE(second) << second.error().message;
}

TEST_F(DescriptorTest, AMovedOneIsClosedOnce) {
  auto first = locked();
  ASSERT_TRUE(first);
  Descriptor second = *std::move(first);
  EXPECT_TRUE(second.ok());
  EXPECT_FALSE(locked());
  EXPECT_TRUE(second.close());
  EXPECT_FALSE(second.ok());
  EXPECT_TRUE(second.close());
  EXPECT_TRUE(locked());
}

TEST_F(DescriptorTest, ALockOnAReplacedFileIsNone) {
  const auto old = locked();
  ASSERT_TRUE(old);
  ASSERT_TRUE(write_text_file_atomically(path_, "new"));
  EXPECT_TRUE(locked());
}

TEST_F(DescriptorTest, WhatCannotBeOpenedIsSaid) {
  EXPECT_EQ(open_locked(path_, O_RDWR).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_locked("/dev/null", O_RDWR).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(DescriptorTest, APipeTakesItAllInParts) {
  // More than a pipe holds, read by a child while it is written.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::vector<std::byte> bytes(std::size_t{1} << 20U, std::byte{7});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[1]);
    std::array<char, 3000> part{};
    std::size_t count = 0;
    for (ssize_t got = 1; got > 0; count += static_cast<std::size_t>(got)) {
      got = ::read(ends[0], part.data(), part.size());
    }
    ::_exit(count == bytes.size() ? 0 : 1);
  }
  ::close(ends[0]);
  EXPECT_TRUE(write_fully(ends[1], bytes, "pipe"));
  ::close(ends[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);

  const Descriptor unwritable(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Status refused = write_fully(unwritable.get(), bytes, "nothing");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_NE(refused.error().message.find("cannot write nothing: "), std::string::npos);
}

}  // namespace
}  // namespace foretune
