// The C interface of cuBLASLt's dispatcher.
#include "foretune/dispatch/cublaslt_matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dispatch/testing/cublaslt.h"
#include "foretune/model/model_file.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::TemporaryFolder;

foretune_cublaslt_options fake_options() {
  foretune_cublaslt_options options = {};
  options.cublaslt_library = FORETUNE_FAKE_GPU;
  options.driver_library = FORETUNE_FAKE_GPU;
  return options;
}

int matmul(foretune_cublaslt* foretune, const MatmulCall& call) {
  return foretune_cublaslt_matmul(foretune, call.handle, call.descriptor, call.alpha, call.a,
                                  call.a_layout, call.b, call.b_layout, call.beta, call.c,
                                  call.c_layout, call.d, call.d_layout, call.algorithm,
                                  call.workspace, call.workspace_bytes, call.stream);
}

std::size_t explain(foretune_cublaslt* foretune, const MatmulCall& call, char* text,
                    std::size_t size) {
  return foretune_cublaslt_explain(foretune, call.handle, call.descriptor, call.a_layout,
                                   call.b_layout, call.c_layout, call.d_layout,
                                   call.workspace_bytes, text, size);
}

std::string explain(foretune_cublaslt* foretune, const MatmulCall& call) {
  std::array<char, 512> text{};
  const std::size_t length = explain(foretune, call, text.data(), text.size());
  EXPECT_EQ(std::string(text.data()).size(), length);
  return text.data();
}

TEST(CublasltMatmulTest, MultipliesWithTheModelOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "model.ftm";
  ASSERT_TRUE(write_model(cublaslt_model(sample_predictions()), path));
  foretune_cublaslt_options options = fake_options();
  options.model_path = path.c_str();
  foretune_cublaslt* foretune = nullptr;
  std::array<char, 128> message{};
  ASSERT_EQ(foretune_cublaslt_open_with(&options, &foretune, message.data(), message.size()),
            FORETUNE_CUBLASLT_OK)
      << message.data();
  const MatmulSample sample({.type = cublaslt::CudaType::kBf16, .epilogue = 4});
  sample.poison();
  EXPECT_EQ(matmul(foretune, sample.call()), 0);
  sample.check();
  EXPECT_EQ(bench().executed(), tensor_config(448));

  const std::uint64_t questions = bench().questions();
  EXPECT_THAT(explain(foretune, sample.call()), StartsWith("model: heuristic=0 algorithm=66 tile"));
  EXPECT_EQ(bench().questions(), questions);
  std::array<char, 8> cut{};
  EXPECT_GT(explain(foretune, sample.call(), cut.data(), cut.size()), cut.size());
  EXPECT_STREQ(cut.data(), "model: ");
  EXPECT_GT(explain(foretune, sample.call(), nullptr, 0), cut.size());
  foretune_cublaslt_close(foretune);
}

TEST(CublasltMatmulTest, WithoutAModelTheHeuristicChooses) {
  const foretune_cublaslt_options options = fake_options();
  foretune_cublaslt* foretune = nullptr;
  ASSERT_EQ(foretune_cublaslt_open_with(&options, &foretune, nullptr, 0), FORETUNE_CUBLASLT_OK);
  const MatmulSample sample({});
  EXPECT_EQ(matmul(foretune, sample.call()), 0);
  sample.check();
  EXPECT_THAT(explain(foretune, sample.call()), StartsWith("heuristic: heuristic=0 algorithm="));
  foretune_cublaslt_close(foretune);
}

TEST(CublasltMatmulTest, RefusesWrongArguments) {
  foretune_cublaslt* foretune = nullptr;
  foretune_cublaslt_options options = fake_options();
  EXPECT_EQ(foretune_cublaslt_open_with(&options, nullptr, nullptr, 0),
            FORETUNE_CUBLASLT_INVALID_ARGUMENT);
  options.margin = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(foretune_cublaslt_open_with(&options, &foretune, nullptr, 0),
            FORETUNE_CUBLASLT_INVALID_ARGUMENT);
  options.margin = 0;
  ASSERT_EQ(foretune_cublaslt_open_with(&options, &foretune, nullptr, 0), FORETUNE_CUBLASLT_OK);
  const MatmulSample sample({});
  EXPECT_EQ(matmul(nullptr, sample.call()), 7);
  EXPECT_EQ(matmul(foretune, {}), 7);
  std::array<char, 16> text{"x"};
  EXPECT_EQ(explain(foretune, {}, text.data(), text.size()), 0U);
  EXPECT_STREQ(text.data(), "");
  EXPECT_EQ(explain(nullptr, sample.call(), text.data(), text.size()), 0U);
  foretune_cublaslt_close(foretune);
  foretune_cublaslt_close(nullptr);
}

TEST(CublasltMatmulTest, SaysWhyItCannotOpen) {
  const TemporaryFolder folder;
  foretune_cublaslt_options options = fake_options();
  foretune_cublaslt* foretune = nullptr;
  std::array<char, 256> message{};
  const auto open = [&] {
    return foretune_cublaslt_open_with(&options, &foretune, message.data(), message.size());
  };
  const std::string missing = folder.path() / "missing.ftm";
  options.model_path = missing.c_str();
  EXPECT_EQ(open(), FORETUNE_CUBLASLT_NOT_FOUND);
  EXPECT_THAT(message.data(), HasSubstr("missing.ftm"));
  EXPECT_EQ(foretune, nullptr);
  EXPECT_EQ(foretune_cublaslt_open(missing.c_str(), &foretune), FORETUNE_CUBLASLT_NOT_FOUND);

  const std::string damaged = folder.path() / "damaged.ftm";
  ASSERT_TRUE(write_file_atomically(damaged, bytes_of("not a model")));
  options.model_path = damaged.c_str();
  EXPECT_EQ(open(), FORETUNE_CUBLASLT_CORRUPT);

  options.model_path = nullptr;
  options.cublaslt_library = "libnothing-like-it.so";
  EXPECT_EQ(open(), FORETUNE_CUBLASLT_UNSUPPORTED);
  EXPECT_THAT(message.data(), HasSubstr("libnothing-like-it.so"));
}

}  // namespace
}  // namespace foretune
