// The C interface of sparse products.
#include "foretune/dispatch/sparse_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

// [[1, 0, 2], [0, 0, 0], [0, 3, 0]]
template <class T, class I>
struct Example {
  std::vector<I> starts{0, 2, 2, 3};
  std::vector<I> columns{0, 2, 1};
  std::vector<T> values{1, 2, 3};
  [[nodiscard]] foretune_csr csr() const {
    return {.rows = 3,
            .columns = 3,
            .starts = starts.data(),
            .column_of = columns.data(),
            .values = values.data(),
            .index_bytes = sizeof(I),
            .value_bytes = sizeof(T)};
  }
};

// Owns a matrix, or the message that says why there is none.
struct Matrix {
  explicit Matrix(const foretune_csr& csr, const foretune_sparse_options* options = nullptr) {
    code = foretune_sparse_create(&csr, options, &matrix, message.data(), message.size());
  }
  ~Matrix() { foretune_sparse_destroy(matrix); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  foretune_sparse_matrix* matrix = nullptr;
  int code = -1;
  std::array<char, 512> message{"old"};
};

template <class T, class I>
void check_example() {
  const Example<T, I> example;
  const Matrix a(example.csr());
  ASSERT_EQ(a.code, FORETUNE_OK) << a.message.data();
  const std::vector<T> x{1, 10, 100};
  std::vector<T> y(3);
  EXPECT_EQ(foretune_spmv(a.matrix, x.data(), y.data(), nullptr, 0), FORETUNE_OK);
  EXPECT_THAT(y, ElementsAre(201, 0, 30));
  const std::vector<T> b{1, 2, 10, 20, 100, 200};
  std::vector<T> c(6);
  EXPECT_EQ(foretune_spmm(a.matrix, 2, b.data(), c.data(), nullptr, 0), FORETUNE_OK);
  EXPECT_THAT(c, ElementsAre(201, 402, 0, 0, 30, 60));
  std::vector<T> d(3);
  EXPECT_EQ(foretune_sddmm(a.matrix, 2, b.data(), b.data(), d.data(), nullptr, 0), FORETUNE_OK);
  EXPECT_THAT(d, ElementsAre(1 * 5, 2 * 500, 3 * 5000));
}

TEST(SparseProductTest, MultipliesWithAllTypes) {
  check_example<float, std::int32_t>();
  check_example<float, std::int64_t>();
  check_example<double, std::int32_t>();
  check_example<double, std::int64_t>();
}

TEST(SparseProductTest, SaysWhatRuns) {
  const Example<float, std::int32_t> example;
  const Matrix a(example.csr());
  std::array<char, 512> text{};
  EXPECT_GT(foretune_sparse_explain(a.matrix, FORETUNE_SPMM, 8, text.data(), text.size()), 0U);
  EXPECT_THAT(text.data(), HasSubstr(": isa="));
  EXPECT_EQ(foretune_sparse_explain(nullptr, FORETUNE_SPMM, 8, text.data(), text.size()), 0U);
  EXPECT_EQ(foretune_sparse_explain(a.matrix, 7, 8, text.data(), text.size()), 0U);
}

TEST(SparseProductTest, TrialsAreSaved) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trials.ftd").string();
  const foretune_sparse_options options{
      .threads = 1, .measure_top = 3, .model_path = nullptr, .choices_path = path.c_str()};
  const Example<double, std::int64_t> example;
  const Matrix a(example.csr(), &options);
  ASSERT_EQ(a.code, FORETUNE_OK) << a.message.data();
  const std::vector<double> x{1, 10, 100};
  std::vector<double> y(3);
  for (int call = 0; call < 10; ++call) {
    ASSERT_EQ(foretune_spmv(a.matrix, x.data(), y.data(), nullptr, 0), FORETUNE_OK);
    EXPECT_THAT(y, ElementsAre(201, 0, 30));
  }
  EXPECT_EQ(foretune_sparse_save(a.matrix, nullptr, 0), FORETUNE_OK);
  EXPECT_TRUE(std::filesystem::exists(path));
  const Matrix unsaved(example.csr());
  EXPECT_EQ(foretune_sparse_save(unsaved.matrix, nullptr, 0), FORETUNE_INVALID_ARGUMENT);
}

TEST(SparseProductTest, BadInputGetsASentence) {
  Example<float, std::int32_t> example;
  const auto message_of = [&](foretune_csr csr, int code) {
    const Matrix a(csr);
    EXPECT_EQ(a.code, code) << a.message.data();
    EXPECT_EQ(a.matrix, nullptr);
    return std::string(a.message.data());
  };
  foretune_csr csr = example.csr();
  csr.index_bytes = 2;
  EXPECT_EQ(message_of(csr, FORETUNE_INVALID_ARGUMENT),
            "indices and values have 4 or 8 bytes, not 2");
  csr = example.csr();
  csr.values = nullptr;
  EXPECT_THAT(message_of(csr, FORETUNE_INVALID_ARGUMENT), HasSubstr("must not be NULL"));
  csr = example.csr();
  csr.columns = 2;
  EXPECT_EQ(message_of(csr, FORETUNE_INVALID_ARGUMENT),
            "row 0 has column 2 behind 0: columns rise, from 0 to 1");
  example.starts[3] = -1;
  EXPECT_EQ(message_of(example.csr(), FORETUNE_INVALID_ARGUMENT), "the last start is -1");
  csr = example.csr();
  csr.rows = -1;
  EXPECT_THAT(message_of(csr, FORETUNE_INVALID_ARGUMENT), HasSubstr("cannot have -1 x 3"));
  EXPECT_EQ(foretune_sparse_create(nullptr, nullptr, nullptr, nullptr, 0),
            FORETUNE_INVALID_ARGUMENT);
  const Example<float, std::int32_t> right;
  const foretune_sparse_options no_file{
      .threads = 1, .measure_top = 0, .model_path = "missing.ftm", .choices_path = nullptr};
  EXPECT_EQ(Matrix(right.csr(), &no_file).code, FORETUNE_NOT_FOUND);
  const foretune_sparse_options negative{
      .threads = -1, .measure_top = 0, .model_path = nullptr, .choices_path = nullptr};
  EXPECT_EQ(Matrix(right.csr(), &negative).code, FORETUNE_INVALID_ARGUMENT);
  std::vector<float> y(3);
  std::array<char, 80> text{};
  EXPECT_EQ(foretune_spmv(nullptr, y.data(), y.data(), text.data(), text.size()),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(text.data(), "the matrix must not be NULL");
}

}  // namespace
}  // namespace foretune
