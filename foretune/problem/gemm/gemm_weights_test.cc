#include "foretune/problem/gemm/gemm_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/npy.h"

namespace foretune {
namespace {

using problem_internal::NpyMatrix;
using problem_internal::parse_npy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Returns a file as NumPy writes it, with any text as its header.
std::string npy(const std::string& header, const std::vector<float>& values, int major = 1) {
  const std::size_t fixed_bytes = major == 1 ? 10 : 12;
  std::string text = header;
  text.append(64 - (fixed_bytes + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string out = concat("\x93NUMPY", static_cast<char>(major), '\0');
  for (std::size_t i = 0; i < (major == 1 ? 2U : 4U); ++i) {
    out += static_cast<char>(text.size() >> (8 * i));
  }
  return out + text + raw(values);
}

std::string npy_of(std::int64_t rows, std::int64_t columns, const std::vector<float>& values,
                   bool by_columns = false) {
  return npy(concat("{'descr': '<f4', 'fortran_order': ", by_columns ? "True" : "False",
                    ", 'shape': (", rows, ", ", columns, "), }"),
             values);
}

Problem product(const std::string& text) { return Problem::parse("gemm m=5 " + text).value(); }

Result<std::vector<float>> weights_of(const std::string& problem, const std::string& file) {
  const GemmProblem gemm = GemmProblem::from(product(problem)).value();
  FORETUNE_TRY_STATUS(gemm_weights_info().check(gemm.to_problem(), bytes_of(file)));
  std::vector<float> out(static_cast<std::size_t>(gemm.n() * gemm.k()));
  FORETUNE_TRY_STATUS(read_gemm_weights(gemm, bytes_of(file), out));
  return out;
}

std::vector<double> described(const std::string& file) {
  std::vector<double> out(gemm_weights_info().values.size());
  EXPECT_TRUE(gemm_weights_info().describe(bytes_of(file), out));
  return out;
}

std::string refusal(const std::string& file) {
  const auto parsed = parse_npy(bytes_of(file));
  return parsed ? std::string() : parsed.error().message;
}

TEST(NpyTest, ReadsBothVersionsAndOrders) {
  for (const int major : {1, 2}) {
    const std::string file = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                 {1, 2, 3, 4, 5, 6}, major);
    const NpyMatrix matrix = parse_npy(bytes_of(file)).value();
    EXPECT_EQ(matrix.rows, 2);
    EXPECT_EQ(matrix.columns, 3);
    EXPECT_TRUE(matrix.by_columns);
    EXPECT_EQ(matrix.values.size(), 24U);
    EXPECT_EQ(std::memcmp(matrix.values.data(), raw({1, 2, 3, 4, 5, 6}).data(), 24), 0);
  }
}

TEST(NpyTest, ReadsHeadersOfOtherWriters) {
  for (const char* header :
       {R"({"shape":(1,2),"fortran_order":False,"descr":"<f4"})",
        "{'shape': (1L, 2L), 'descr': '<f4', 'fortran_order': False}",
        "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 1 , 2 , ) , } "}) {
    EXPECT_TRUE(parse_npy(bytes_of(npy(header, {1, 2})))) << header;
  }
}

TEST(NpyTest, RefusesWithTheReason) {
  EXPECT_THAT(refusal("PK"), HasSubstr("no file of NumPy's"));
  EXPECT_THAT(refusal(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", {1, 2})),
              HasSubstr("'<f8'"));
  EXPECT_THAT(refusal(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1, 1)}", {1})),
              HasSubstr("'>f4'"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", {1, 2})),
              HasSubstr("the shape (2), which is no matrix"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", {1})),
              HasSubstr("no matrix"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}", {})),
              HasSubstr("no weights have"));
  EXPECT_THAT(refusal(npy_of(2, 2, {1, 2, 3})), HasSubstr("takes 16 bytes, the file has 12"));
  EXPECT_THAT(refusal(npy_of(2, 1, {1, 2, 3})), HasSubstr("takes 8 bytes, the file has 12"));
  EXPECT_THAT(refusal(npy_of(std::int64_t{1} << 40U, std::int64_t{1} << 40U, {1})),
              HasSubstr("no weights have"));
  EXPECT_THAT(refusal(npy("{}", {1})), HasSubstr("cannot be understood"));
  EXPECT_THAT(refusal(npy("[]", {1})), HasSubstr("no dictionary"));
  EXPECT_THAT(
      refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1)}", {1})),
      HasSubstr("cannot be understood"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, "
                          "1)}",
                          {1})),
              HasSubstr("cannot be understood"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}", {1}, 3)),
              HasSubstr("version 3.0"));
  const std::string whole = npy_of(1, 2, {1, 2});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
  }
}

// No input may make the parser read outside its bytes; accepted results are consistent.
TEST(NpyTest, SurvivesMutations) {
  constexpr std::uint64_t kSeed = 21;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const std::string whole = npy_of(3, 2, {1, 2, 3, 4, 5, 6});
  for (int trial = 0; trial < 20000; ++trial) {
    std::string file = whole.substr(0, rng.below(8) == 0 ? rng.below(whole.size()) : whole.size());
    for (std::uint64_t i = 1 + rng.below(4); i > 0 && !file.empty(); --i) {
      file[rng.below(std::min<std::size_t>(file.size(), 80))] = static_cast<char>(
          rng.below(3) == 0 ? rng.below(256) : "0123456789(){},:'TF<f "[rng.below(22)]);
    }
    if (const auto matrix = parse_npy(bytes_of(file))) {
      ASSERT_EQ(matrix->values.size(), 4 * static_cast<std::size_t>(matrix->rows) *
                                           static_cast<std::size_t>(matrix->columns));
      ASSERT_EQ(matrix->values.data() + matrix->values.size(), bytes_of(file).data() + file.size());
    }
  }
}

TEST(GemmWeightsTest, TheLayoutSaysTheShape) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  // By rows: k rows of n.
  EXPECT_EQ(weights_of("n=3 k=2 layout=rrr", npy_of(2, 3, values)).value(), values);
  EXPECT_EQ(weights_of("n=3 k=2 layout=crr", raw(values)).value(), values);
  // By columns: n rows of k.
  EXPECT_EQ(weights_of("n=3 k=2 layout=rcr", npy_of(3, 2, values)).value(), values);
  EXPECT_EQ(weights_of("n=3 k=2 layout=ccr", raw(values)).value(), values);
  // Fortran's order is transposed to C's.
  EXPECT_THAT(weights_of("n=3 k=2 layout=rrr", npy_of(2, 3, {1, 4, 2, 5, 3, 6}, true)).value(),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(GemmWeightsTest, LargeFilesInFortransOrderAreTransposed) {
  constexpr std::size_t kRows = 35;
  constexpr std::size_t kColumns = 50;
  std::vector<float> by_columns(kRows * kColumns);
  for (std::size_t c = 0; c < kColumns; ++c) {
    for (std::size_t r = 0; r < kRows; ++r) {
      by_columns[c * kRows + r] = static_cast<float>(100 * r + c);
    }
  }
  const std::vector<float> weights =
      weights_of("k=35 n=50", npy_of(kRows, kColumns, by_columns, true)).value();
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      ASSERT_EQ(weights[r * kColumns + c], static_cast<float>(100 * r + c));
    }
  }
}

TEST(GemmWeightsTest, OtherShapesAreRefusedWithWhatIsWanted) {
  const auto message = [](const std::string& problem, const std::string& file) {
    const auto weights = weights_of(problem, file);
    EXPECT_FALSE(weights);
    return weights ? std::string() : weights.error().message;
  };
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(message("n=3 k=2 layout=rrr", npy_of(3, 2, values)),
            "the weights have the shape (3, 2), but B of n=3 k=2 layout=rrr has the shape (2, 3); "
            "layout=rcr has the other");
  EXPECT_THAT(message("n=3 k=2 layout=rcr", npy_of(2, 3, values)), HasSubstr("layout=rrr has"));
  EXPECT_THAT(message("n=3 k=3", npy_of(2, 3, values)), HasSubstr("has the shape (3, 3)"));
  EXPECT_THAT(message("n=3 k=3", raw(values)), HasSubstr("6 values and no header"));
  EXPECT_THAT(message("n=2147483647 k=2147483647", raw(values)), HasSubstr("6 values"));
  EXPECT_THAT(message("n=3 k=2", raw(values).substr(0, 23)), HasSubstr("23 bytes"));
}

TEST(GemmWeightsTest, ValuesHaveToBeFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(weights_of("n=2 k=1", raw({1, NAN})).error().message,
              HasSubstr("value 1 of the weights is NaN"));
  EXPECT_THAT(weights_of("n=2 k=1", raw({-kInfinity, 1})).error().message,
              HasSubstr("value 0 of the weights is infinite"));
  std::vector<double> out(gemm_weights_info().values.size());
  EXPECT_FALSE(gemm_weights_info().describe(bytes_of(raw({1, kInfinity})), out));
}

TEST(GemmWeightsTest, AreDescribedByShareAndMagnitude) {
  EXPECT_THAT(described(raw({0, -0.0F, 0x1p-140F, -0.5F})), ElementsAre(0.5, 0.25, -1, -140));
  EXPECT_THAT(described(npy_of(1, 2, {-8, 8})), ElementsAre(0, 0, 3, 3));
  EXPECT_THAT(described(raw({0, 0})), ElementsAre(1, 0, -150, -150));
}

TEST(GemmWeightsTest, OneProductOfFloatsMayHaveThem) {
  const std::string payload = concat(" payload=", Digest{1, 2}.hex());
  EXPECT_TRUE(Problem::parse("gemm m=1 n=2 k=3" + payload));
  EXPECT_TRUE(Problem::parse("gemm m=1 n=2 k=3 op=addmm layout=ccr" + payload));
  for (const char* other : {" dtype=bf16", " batch=2", " dtype=i8"}) {
    const auto refused = Problem::parse(concat("gemm m=1 n=2 k=3", other, payload));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("one product of f32"));
  }
}

}  // namespace
}  // namespace foretune
