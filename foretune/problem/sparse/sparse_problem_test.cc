#include "foretune/problem/sparse/sparse_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/problem_type.h"
#include "foretune/problem/sparse/sparse_payload.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMatrix =
    "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n1 1\n2 1\n3 3\n4 3\n";
constexpr const char* kTensor = "1 1 1 5\n1 1 3 6\n2 4 2 7\n";

std::string sparse_refusal(const std::string& text) {
  const auto problem = Problem::parse(text);
  return problem ? std::string() : problem.error().message;
}

TEST(SparseProblemTest, HasATextForm) {
  const Problem problem =
      Problem::parse("sparse rows=3072 columns=4096 nnz=119808 op=sddmm n=128 origin=77").value();
  EXPECT_EQ(problem.text(),
            "sparse op=sddmm rows=3072 columns=4096 depth=1 nnz=119808 n=128 dtype=f32 origin=77");
  const SparseSizes sizes = SparseProblem::from(problem)->sizes();
  EXPECT_EQ(sizes.operation, SparseOperation::kSddmm);
  EXPECT_EQ(sizes.columns, 4096);
  EXPECT_EQ(sizes.non_zeros, 119808);
  EXPECT_EQ(SparseProblem::create(sizes)->to_problem(), problem);
  EXPECT_FALSE(SparseProblem::from(Problem::parse("gemm m=1 n=1 k=1").value()));
}

TEST(SparseProblemTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(sparse_refusal("sparse rows=2 columns=2 nnz=5"),
              HasSubstr("more than A has elements"));
  EXPECT_THAT(sparse_refusal("sparse rows=2 columns=2 nnz=1 dtype=bf16"), HasSubstr("f32 or f64"));
  EXPECT_THAT(sparse_refusal("sparse op=spmv rows=2 columns=2 nnz=1 n=2"), HasSubstr("n columns"));
  EXPECT_THAT(sparse_refusal("sparse rows=2 columns=2 nnz=1 depth=2"),
              HasSubstr("depth is for tensors"));
  EXPECT_THAT(sparse_refusal("sparse op=mmadd rows=268435456 columns=268435456 nnz=1"),
              HasSubstr("2^53"));
  EXPECT_NE(sparse_refusal("sparse rows=268435457 columns=2 nnz=1"), "");
  EXPECT_NE(sparse_refusal("sparse rows=2 columns=2"), "");
  EXPECT_EQ(sparse_refusal("sparse rows=2 columns=2 nnz=0"), "");
  EXPECT_EQ(sparse_refusal("sparse op=mttkrp rows=2 columns=2 depth=3 nnz=12 n=16 dtype=f64"), "");
}

TEST(SparseProblemTest, WorkIsThatOfTheNonZeros) {
  const auto work = [](const std::string& text) {
    return problem_work(Problem::parse("sparse rows=10 columns=20 nnz=30 " + text).value()).value();
  };
  const double a = 30 * 8 + 11 * 8;
  EXPECT_EQ(work("op=spmv").flops, 60);
  EXPECT_EQ(work("op=spmv").bytes, a + 4 * 30);
  EXPECT_EQ(work("op=spmm n=8").flops, 480);
  EXPECT_EQ(work("op=spmm n=8").bytes, a + 4 * 8 * 30);
  EXPECT_EQ(work("op=gespmm n=8").flops, 480 + 80);
  EXPECT_EQ(work("op=gespmv").flops, 70);
  EXPECT_EQ(work("op=sddmm n=8").flops, 480 + 30);
  EXPECT_EQ(work("op=sddmm n=8").bytes, a + 4 * (8 * 30 + 30));
  EXPECT_EQ(work("op=mmadd").bytes, a + 4 * 2 * 200);
  EXPECT_EQ(work("op=plus3 dtype=f64").flops, 60);
  EXPECT_EQ(work("op=plus3 dtype=f64").bytes, 30 * 12 + 11 * 8 + 8 * 90);
  EXPECT_EQ(work("op=mttkrp depth=5 n=4").flops, 360);
  EXPECT_EQ(work("op=mttkrp depth=5 n=4").bytes, 30 * 12 + 11 * 8 + 4 * 4 * 35);
}

TEST(SparseProblemTest, RelativesOfAMatrixAreOneGroup) {
  const std::int64_t origin = sparse_origin("nemspmm1.mtx.gz");
  EXPECT_EQ(sparse_origin("nemspmm1_16x4_0.csr"), origin);
  EXPECT_EQ(sparse_origin("nemspmm1"), origin);
  EXPECT_NE(sparse_origin("nemspmm2_16x4_0.csr"), origin);
  // These end in another way.
  EXPECT_NE(sparse_origin("conf5_0-4x4-18.mtx"), sparse_origin("conf5.mtx"));
  EXPECT_NE(sparse_origin("_16x4_0"), sparse_origin(""));
  EXPECT_NE(sparse_origin("a_4x_0"), sparse_origin("a"));
  const auto group = [&](const std::string& text) {
    return Problem::parse("sparse " + text)->group();
  };
  EXPECT_EQ(group("rows=5 columns=5 nnz=3 origin=8"),
            group("op=spmv rows=9 columns=7 nnz=4 origin=8"));
  EXPECT_NE(group("rows=5 columns=5 nnz=3 origin=8"), group("rows=5 columns=5 nnz=3 origin=9"));
}

TEST(SparsePayloadTest, TheFileSaysTheSizes) {
  const testing_support::TemporaryFolder folder;
  ASSERT_TRUE(write_text_file_atomically(folder.path() / "small_2x2_0.mtx", kMatrix));
  ASSERT_TRUE(write_text_file_atomically(folder.path() / "tensor.tns", kTensor));
  const std::vector<std::string> folders{folder.path().string()};
  const auto store = PayloadStore::open(folders).value();
  const std::string text = store->resolve_names("sparse op=spmv payload=@small_2x2_0.mtx").value();
  const SparseSizes sizes = SparseProblem::from(Problem::parse(text).value())->sizes();
  EXPECT_EQ(sizes.rows, 4);
  EXPECT_EQ(sizes.columns, 4);
  EXPECT_EQ(sizes.non_zeros, 6);
  EXPECT_EQ(sizes.origin, sparse_origin("small"));
  EXPECT_EQ(sizes.payload, Digest::of(bytes_of(kMatrix)));
  // A text may state them itself; what does not fit is refused.
  const std::string other = store->resolve_names("sparse rows=5 payload=@small_2x2_0.mtx").value();
  EXPECT_THAT(store->resolve(Problem::parse(other).value()).error().message,
              HasSubstr("the file has rows=4, the problem rows=5"));
  const Problem tensor =
      Problem::parse(store->resolve_names("sparse op=mttkrp n=4 payload=@tensor.tns").value())
          .value();
  EXPECT_EQ(SparseProblem::from(tensor)->sizes().depth, 3);
  const Problem resolved = store->resolve(tensor).value();
  EXPECT_EQ(described_value(resolved, static_cast<std::size_t>(SparseValue::kDepthMean)), 1.5);
  EXPECT_THAT(store
                  ->resolve(Problem::parse(concat("sparse op=spmm rows=2 columns=4 nnz=3 payload=",
                                                  Digest::of(bytes_of(kTensor)).hex()))
                                .value())
                  .error()
                  .message,
              HasSubstr("holds a tensor, which spmm does not take"));
}

TEST(SparsePayloadTest, ACompressedFileIsInflatedByTheStore) {
  const testing_support::TemporaryFolder folder;
  ASSERT_TRUE(write_text_file_atomically(folder.path() / "small.mtx.gz", "\x1f\x8b, not gzip"));
  const std::vector<std::string> folders{folder.path().string()};
  const std::string asked = "sparse op=spmv payload=@small.mtx.gz";
  const auto store = PayloadStore::open(folders, [](std::span<const std::byte> /*bytes*/) {
    const auto content = bytes_of(kMatrix);
    return Result<std::vector<std::byte>>(std::vector<std::byte>(content.begin(), content.end()));
  });
  const std::string text = (*store)->resolve_names(asked).value();
  EXPECT_EQ(SparseProblem::from(Problem::parse(text).value())->sizes().non_zeros, 6);
  EXPECT_THAT((*PayloadStore::open(folders))->resolve_names(asked).error().message,
              HasSubstr("compressed"));
  const auto broken = PayloadStore::open(folders, [](std::span<const std::byte> /*bytes*/) {
    return Result<std::vector<std::byte>>(fail(ErrorCode::kCorrupt, "the gzip data is damaged"));
  });
  EXPECT_THAT((*broken)->resolve_names(asked).error().message,
              HasSubstr("small.mtx.gz: the gzip data is damaged"));
}

TEST(SparsePayloadTest, IsDescribedByFiniteNumbers) {
  std::vector<double> values(kSparseValues);
  ASSERT_TRUE(sparse_payload_info().describe(bytes_of(kMatrix), values));
  const auto value = [&](SparseValue position, std::size_t more = 0) {
    return values[static_cast<std::size_t>(position) + more];
  };
  EXPECT_EQ(value(SparseValue::kRowMean), 1.5);
  EXPECT_EQ(value(SparseValue::kRowLongest), 2);
  EXPECT_EQ(value(SparseValue::kBandwidth), 0.25);
  EXPECT_EQ(value(SparseValue::kBlockFill), 6.0 / 8);
  EXPECT_EQ(value(SparseValue::kRowLengths, 0), 0);
  EXPECT_EQ(value(SparseValue::kRowLengths, 1), 0.5);
  EXPECT_EQ(value(SparseValue::kRowLengths, 2), 0.5);
  EXPECT_EQ(value(SparseValue::kDensity, 0), 1.0 / 6);
  EXPECT_EQ(sparse_payload_info().values[static_cast<std::size_t>(SparseValue::kRowLengths) + 3],
            "rows_4");
  EXPECT_EQ(sparse_payload_info().values.back(), "diagonal_share");
  ASSERT_TRUE(sparse_payload_info().describe(
      bytes_of("%%MatrixMarket matrix coordinate real general\n3 2 0\n"), values));
  for (const double number : values) {
    ASSERT_TRUE(std::isfinite(number));
  }
  EXPECT_FALSE(sparse_payload_info().describe(bytes_of("no matrix"), values));
}

// Any words are read or refused, and what is read writes itself the same.
TEST(SparseProblemTest, SurvivesMutationsOfItsText) {
  constexpr std::uint64_t kSeed = 17;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const std::string whole =
      "sparse op=mttkrp rows=30 columns=20 depth=10 nnz=40 n=16 dtype=f64 origin=9";
  int parsed = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = whole;
    for (std::uint64_t i = 1 + rng.below(3); i > 0; --i) {
      text[rng.below(text.size())] = "0123456789 =-.spmvdtfkr"[rng.below(23)];
    }
    if (const auto problem = Problem::parse(text)) {
      ++parsed;
      ASSERT_EQ(Problem::parse(problem->text()).value(), *problem);
      ASSERT_TRUE(std::isfinite(problem_work(*problem)->bytes));
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace foretune
