#include "foretune/problem/payload_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm_weights.h"
#include "foretune/problem/internal/payload_files.h"

namespace foretune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string bytes_of_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class PayloadStoreTest : public ::testing::Test {
 protected:
  // `age`: how long ago the file was written.
  fs::path write(const std::string& name, const std::string& content,
                 std::chrono::seconds age = std::chrono::seconds(60)) {
    const fs::path path = folder_ / name;
    EXPECT_TRUE(write_text_file_atomically(path, content));
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return path;
  }
  std::shared_ptr<PayloadStore> open() {
    return PayloadStore::open(std::vector{folder_.path().string()}).value();
  }
  [[nodiscard]] std::string index() const {
    return read_text_file(problem_internal::payload_index_path(folder_.path())).value_or("");
  }
  static Digest digest_of(const std::string& content) { return Digest::of(bytes_of(content)); }

  testing_support::TemporaryFolder folder_;
};

TEST_F(PayloadStoreTest, FindsFilesByNameAndLoadsThemByDigest) {
  write("a.npy", "first");
  write("b", "second");
  const auto store = open();
  EXPECT_EQ(store->find("a.npy").value(), digest_of("first"));
  const auto payload = store->load(digest_of("second")).value();
  EXPECT_EQ(payload->bytes().size(), 6U);
  EXPECT_EQ(payload->digest(), digest_of("second"));
  EXPECT_EQ(payload->path(), (folder_ / "b").string());
  EXPECT_EQ(store->load(digest_of("second")).value(), payload);
}

TEST_F(PayloadStoreTest, NamesInTextsBecomeDigests) {
  write("a.npy", "first");
  const auto store = open();
  EXPECT_EQ(store->resolve_names("gemm m=1 payload=@a.npy n=2").value(),
            concat("gemm m=1 payload=", digest_of("first").hex(), " n=2"));
  EXPECT_EQ(store->resolve_names("gemm  m=1").value(), "gemm  m=1");
  EXPECT_EQ(store->resolve_names("gemm payload=@b.npy").error().code, ErrorCode::kNotFound);
}

TEST_F(PayloadStoreTest, AMissingPayloadIsOneSentenceWithDigestAndFolders) {
  write("a", "first");
  const testing_support::TemporaryFolder other;
  const auto store =
      PayloadStore::open(std::vector{folder_.path().string(), other.path().string()}).value();
  const Error error = store->load({1, 2}).error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.message, concat("there is no payload ", Digest{1, 2}.hex(), " in the folders ",
                                  folder_.path().string(), ", ", other.path().string()));
  const auto empty = PayloadStore::open({}).value();
  EXPECT_THAT(empty->load({1, 2}).error().message, HasSubstr("no folder of payloads was named"));
}

TEST_F(PayloadStoreTest, AFolderHasToBeThere) {
  const std::vector<std::string> missing{(folder_ / "missing").string()};
  EXPECT_EQ(PayloadStore::open(missing).error().code, ErrorCode::kNotFound);
  const std::vector<std::string> file{write("a", "first").string()};
  EXPECT_EQ(PayloadStore::open(file).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(PayloadStoreTest, DigestsAreRememberedUntilTheFileChanges) {
  write("a", "first");
  ASSERT_TRUE(open()->find("a"));
  const std::vector<problem_internal::IndexedPayload> remembered =
      problem_internal::parse_payload_index(index()).value();
  ASSERT_EQ(remembered.size(), 1U);
  EXPECT_EQ(remembered[0].name, "a");
  EXPECT_EQ(remembered[0].digest, digest_of("first"));
  // The store trusts the index; this index is wrong.
  std::vector<problem_internal::IndexedPayload> lies = remembered;
  lies[0].digest = {7, 7};
  ASSERT_TRUE(write_text_file_atomically(problem_internal::payload_index_path(folder_.path()),
                                         problem_internal::payload_index_text(lies)));
  EXPECT_EQ(open()->find("a").value(), (Digest{7, 7}));
  // Loading the file corrects the index.
  const Error error = open()->load({7, 7}).error();
  EXPECT_THAT(error.message, HasSubstr("had it and has another content now"));
  EXPECT_EQ(problem_internal::parse_payload_index(index()).value(), remembered);
  write("a", "another", std::chrono::seconds(30));
  EXPECT_EQ(open()->find("a").value(), digest_of("another"));
}

TEST_F(PayloadStoreTest, AChangedContentIsNoticed) {
  write("a", "first");
  const auto store = open();
  const auto before = store->load(digest_of("first")).value();
  write("a", "other", std::chrono::seconds(30));
  EXPECT_THAT(store->load(digest_of("first")).error().message,
              HasSubstr(concat("a in ", folder_.path().string(), " had it")));
  EXPECT_EQ(store->find("a").value(), digest_of("other"));
  // A loaded payload stays intact: the file was replaced, not written over.
  EXPECT_EQ(Digest::of(before->bytes()), digest_of("first"));
  // A store that is opened now gives the same answer from the index.
  write("a", "third", std::chrono::seconds(20));
  EXPECT_THAT(open()->load(digest_of("other")).error().message, HasSubstr("another content now"));
}

// In the same second, of the same length, with the same time: only the bytes differ.
TEST_F(PayloadStoreTest, AContentThatLooksTheSameIsNotTaken) {
  write("a", "first");
  ASSERT_TRUE(open()->find("a"));
  const auto remembered = problem_internal::parse_payload_index(index()).value();
  write("a", "fIrst");
  const auto stamp = problem_internal::parse_payload_index([&] {
                       EXPECT_TRUE(open()->find("a"));
                       return index();
                     }())
                         .value();
  // The old index with the current times.
  std::vector<problem_internal::IndexedPayload> same = remembered;
  same[0].stamp = stamp[0].stamp;
  ASSERT_TRUE(write_text_file_atomically(problem_internal::payload_index_path(folder_.path()),
                                         problem_internal::payload_index_text(same)));
  EXPECT_FALSE(open()->load(digest_of("first")));
  EXPECT_TRUE(open()->load(digest_of("fIrst")));
}

TEST_F(PayloadStoreTest, FilesThatComeLaterAreFound) {
  const auto store = open();
  EXPECT_FALSE(store->load(digest_of("later")));
  write("b", "later");
  EXPECT_TRUE(store->load(digest_of("later")));
  write("c", "last");
  EXPECT_EQ(store->find("c").value(), digest_of("last"));
  fs::rename(folder_ / "b", folder_ / "d");
  EXPECT_EQ(store->load(digest_of("later")).value()->path(), (folder_ / "d").string());
}

TEST_F(PayloadStoreTest, AFreshFileIsNotRememberedYet) {
  write("a", "first", std::chrono::seconds(0));
  EXPECT_EQ(open()->find("a").value(), digest_of("first"));
  EXPECT_THAT(index(), Not(HasSubstr(digest_of("first").hex())));
}

TEST_F(PayloadStoreTest, HiddenFilesAndFoldersAreNoPayloads) {
  write(".hidden", "first");
  fs::create_directory(folder_ / "within");
  EXPECT_TRUE(write_text_file_atomically(folder_ / "within/a", "second"));
  const auto store = open();
  EXPECT_FALSE(store->find(".hidden"));
  EXPECT_FALSE(store->load(digest_of("first")));
  EXPECT_FALSE(store->find("within"));
  EXPECT_FALSE(store->find("within/a"));
  EXPECT_FALSE(store->load(digest_of("second")));
}

TEST_F(PayloadStoreTest, TheFirstFolderWithANameCounts) {
  const testing_support::TemporaryFolder other;
  write("a", "first");
  ASSERT_TRUE(write_text_file_atomically(other / "a", "second"));
  const auto store =
      PayloadStore::open(std::vector{other.path().string(), folder_.path().string()}).value();
  EXPECT_EQ(store->find("a").value(), digest_of("second"));
  EXPECT_TRUE(store->load(digest_of("first")));
}

TEST_F(PayloadStoreTest, ADamagedIndexIsMadeAnew) {
  write("a", "first");
  ASSERT_TRUE(open()->find("a"));
  const std::string whole = index();
  const fs::path path = problem_internal::payload_index_path(folder_.path());
  ASSERT_TRUE(write_text_file_atomically(path, whole.substr(0, whole.size() / 2)));
  EXPECT_EQ(open()->find("a").value(), digest_of("first"));
  EXPECT_EQ(index(), whole);
}

// ---- descriptors --------------------------------------------------------------------------------

class PayloadDescriptorTest : public PayloadStoreTest {
 protected:
  // Every test has its own weights: a process computes the descriptor of a payload once.
  Problem problem_with(const std::vector<float>& weights) {
    const std::string content = bytes_of_floats(weights);
    write("w", content);
    return Problem::parse(
               concat("gemm m=4 n=2 k=", weights.size() / 2, " payload=", digest_of(content).hex()))
        .value();
  }
  [[nodiscard]] fs::path descriptor_path(const Problem& problem) const {
    return problem_internal::payload_descriptor_path(folder_.path(), gemm_weights_info(),
                                                     problem.payload());
  }
  static double zeros(const Problem& problem) {
    return described_value(problem, static_cast<std::size_t>(GemmWeightsValue::kZeros));
  }
};

TEST_F(PayloadDescriptorTest, IsComputedAndKeptBesideThePayload) {
  const Problem plain = problem_with({1, 0, 0, 0, 2, 3});
  const Problem described = open()->resolve(plain).value();
  EXPECT_EQ(zeros(described), 0.5);
  EXPECT_TRUE(std::isnan(zeros(plain)));
  const std::string text = read_text_file(descriptor_path(plain)).value();
  const PayloadDescriptor kept =
      problem_internal::parse_payload_descriptor(text, gemm_weights_info(), plain.payload())
          .value();
  EXPECT_EQ(kept.values, described.descriptor()->values);
}

TEST_F(PayloadDescriptorTest, IsReadWhereThePayloadIsGone) {
  const Problem plain = problem_with({5, 0, 6, 7});
  PayloadDescriptor kept{&gemm_weights_info(), plain.payload(), {0.75, 0, 1, 1}};
  fs::create_directory(descriptor_path(plain).parent_path());
  ASSERT_TRUE(write_text_file_atomically(descriptor_path(plain),
                                         problem_internal::payload_descriptor_text(kept)));
  fs::remove(folder_ / "w");
  EXPECT_EQ(zeros(open()->describe(plain).value()), 0.75);
  EXPECT_EQ(open()->resolve(plain).error().code, ErrorCode::kNotFound);
}

TEST_F(PayloadDescriptorTest, OfAnotherVersionOrDamagedIsComputedAgain) {
  const std::vector<std::vector<float>> weights{{1, 2, 3, 0}, {1, 2, 4, 0}};
  for (const bool is_damaged : {false, true}) {
    const Problem plain = problem_with(weights[is_damaged ? 1 : 0]);
    PayloadInfo other = gemm_weights_info();
    other.version = is_damaged ? other.version : other.version + 1;
    std::string text =
        problem_internal::payload_descriptor_text({&other, plain.payload(), {0.875, 0, 1, 1}});
    text[text.size() / 2] = is_damaged ? 'x' : text[text.size() / 2];
    fs::create_directory(descriptor_path(plain).parent_path());
    ASSERT_TRUE(write_text_file_atomically(descriptor_path(plain), text));
    EXPECT_EQ(zeros(open()->describe(plain).value()), 0.25);
    EXPECT_NE(read_text_file(descriptor_path(plain)).value(), text);
  }
}

TEST_F(PayloadDescriptorTest, NothingIsKeptWhereNothingCanBeWritten) {
  const Problem plain = problem_with({9, 0});
  ASSERT_TRUE(write_text_file_atomically(folder_ / ".foretune", "in the way"));
  EXPECT_EQ(zeros(open()->resolve(plain).value()), 0.5);
  EXPECT_EQ(open()->find("w").value(), plain.payload());
  EXPECT_EQ(read_text_file(folder_ / ".foretune").value(), "in the way");
}

TEST_F(PayloadDescriptorTest, IsNoPartOfAProblemsIdentity) {
  const Problem plain = problem_with({8, 0});
  const Problem described = open()->resolve(plain).value();
  ASSERT_NE(described.descriptor(), nullptr);
  EXPECT_EQ(plain, described);
  EXPECT_EQ(plain <=> described, std::strong_ordering::equal);
  EXPECT_EQ(plain.hash(), described.hash());
  EXPECT_EQ(plain.text(), described.text());
  const Problem bare = Problem::parse("gemm m=4 n=2 k=1").value();
  EXPECT_EQ(open()->resolve(bare).value().descriptor(), nullptr);
}

TEST_F(PayloadDescriptorTest, OutlivesTheStore) {
  const Problem plain = problem_with({11, 0, 12, 0});
  const Problem described = open()->describe(plain).value();
  EXPECT_EQ(zeros(described), 0.5);
  EXPECT_EQ(open()->describe(plain).value().descriptor(), described.descriptor());
}

TEST_F(PayloadDescriptorTest, APayloadThatDoesNotFitIsRefusedWithItsFile) {
  const Problem plain = problem_with({1, 2, 3, 4, 5, 7});
  const Problem larger =
      Problem::parse(concat("gemm m=4 n=3 k=3 payload=", plain.payload().hex())).value();
  const Error error = open()->resolve(larger).error();
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.message, HasSubstr((folder_ / "w").string()));
  const Problem odd = problem_with({1, 2, 3, NAN});
  EXPECT_THAT(open()->resolve(odd).error().message, HasSubstr("value 3 of the weights is NaN"));
}

TEST_F(PayloadDescriptorTest, ThreadsAskTheSameStore) {
  const Problem plain = problem_with({13, 0, 0, 14});
  const auto store = open();
  std::vector<std::thread> threads;
  std::vector<const PayloadDescriptor*> found(4, nullptr);
  for (const PayloadDescriptor*& one : found) {
    threads.emplace_back([&] { one = store->resolve(plain).value().descriptor(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(found, ::testing::Each(found[0]));
  EXPECT_NE(found[0], nullptr);
}

}  // namespace
}  // namespace foretune
