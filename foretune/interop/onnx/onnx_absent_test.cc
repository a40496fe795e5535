#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foretune/interop/onnx/onnx_network.h"
#include "foretune/interop/onnx/testing/onnx_cases.h"

namespace foretune::onnx_internal {
namespace {

TEST(OnnxAbsent, SaysSoInOneSentence) {
  const auto network = read_onnx(onnx_testdata() / "gemm.onnx");
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(network.error().message, testing::HasSubstr("libonnx-dev was not installed"));
}

}  // namespace
}  // namespace foretune::onnx_internal
