#include "foretune/interop/onnx/onnx_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/graph/network_file.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/reference.h"
#include "foretune/interop/onnx/testing/onnx_cases.h"

namespace foretune::onnx_internal {
namespace {

constexpr double kTolerance = 1e-4;

struct Example {
  graph::Network network;
  std::vector<ArrayPtr> inputs;
  std::vector<ArrayPtr> outputs;
};

Result<Example> read_example(const std::filesystem::path& path) {
  FORETUNE_TRY(const auto bytes, read_file(path));
  FORETUNE_TRY(const ModelData model, read_model(bytes));
  FORETUNE_TRY(graph::Network network, import_onnx(bytes));
  return Example{std::move(network), test_tensors(model, "test/input"),
                 test_tensors(model, "test/output")};
}

std::size_t count_of(const graph::Network& network, std::string_view op) {
  const auto nodes = network.nodes();
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [&](const graph::Node& node) { return node.op->name == op; }));
}

// Returns "" or how an output differs from ONNX Runtime's.
std::string difference(const Example& example, std::int64_t batch) {
  std::vector<std::vector<float>> inputs;
  for (const ArrayPtr& input : example.inputs) {
    inputs.push_back(*input->numbers);
  }
  const auto outputs = graph::run_reference(example.network, inputs, batch);
  if (!outputs) {
    return outputs.error().message;
  }
  if (outputs->size() != example.outputs.size()) {
    return "another number of outputs";
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const std::vector<double>& found = (*outputs)[i];
    const std::vector<float>& expected = *example.outputs[i]->numbers;
    if (found.size() != expected.size()) {
      return concat("output ", i, " has ", found.size(), " values, not ", expected.size());
    }
    double largest = 0.1;
    for (const float value : expected) {
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (!(std::abs(found[k] - static_cast<double>(expected[k])) <= kTolerance * largest)) {
        return concat("output ", i, " has ", found[k], " at ", k, ", not ", expected[k]);
      }
    }
  }
  return {};
}

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(onnx_testdata())) {
    if (!entry.path().filename().string().starts_with("light_")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(OnnxNetwork, ComputesWhatOnnxRuntimeDoes) {
  const std::vector<std::filesystem::path> files = case_files();
  EXPECT_GT(files.size(), 100U);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    const auto example = read_example(file);
    EXPECT_TRUE(example) << example.error().message;
    if (!example || example->inputs.empty()) {
      ADD_FAILURE() << "no inputs";
      continue;
    }
    EXPECT_EQ(difference(*example, example->inputs[0]->shape[0]), "");
    // Names, attributes and weights fit our own file.
    const auto again = graph::parse_network(graph::network_bytes(example->network));
    EXPECT_TRUE(again) << again.error().message;
  }
}

TEST(OnnxNetwork, MakesOneLinearOfAProductAndItsBias) {
  const auto biased = read_onnx(onnx_testdata() / "matmul_bias.onnx");
  ASSERT_TRUE(biased) << biased.error().message;
  EXPECT_EQ(biased->nodes().size(), 1U);
  EXPECT_EQ(biased->nodes()[0].inputs.size(), 3U);
  const auto shared = read_onnx(onnx_testdata() / "matmul_shared.onnx");
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(shared->nodes().size(), 3U);
}

TEST(OnnxNetwork, ComputesConstantsWhileReading) {
  const auto folded = read_onnx(onnx_testdata() / "folded_floats.onnx");
  ASSERT_TRUE(folded) << folded.error().message;
  EXPECT_EQ(folded->nodes().size(), 1U);
  const auto chain = read_onnx(onnx_testdata() / "shape_chain.onnx");
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_EQ(chain->nodes().size(), 2U);
}

struct Light {
  std::string_view name;
  std::size_t convolutions;
  double mega_multiply_adds;
  graph::Shape outputs;
};

// Networks that people know, with constants in place of weights, from the tests of ONNX.
TEST(OnnxNetwork, ReadsKnownNetworks) {
  const std::vector<Light> lights{
      {"bvlc_alexnet", 5, 655, {1, 1000}},      {"densenet121", 121, 2834, {1, 1000, 1, 1}},
      {"inception_v1", 57, 1431, {1, 1000}},    {"inception_v2", 69, 2019, {1, 1000}},
      {"resnet50", 53, 4089, {1, 1000}},        {"shufflenet", 49, 125, {1, 1000}},
      {"squeezenet", 26, 349, {1, 1000, 1, 1}}, {"zfnet512", 5, 1482, {1, 1000}}};
  for (const Light& light : lights) {
    SCOPED_TRACE(light.name);
    const auto network =
        read_onnx(onnx_testdata() / foretune::concat("light_", light.name, ".onnx"));
    ASSERT_TRUE(network) << network.error().message;
    ASSERT_EQ(network->inputs().size(), 1U);
    EXPECT_EQ(graph::to_text(network->tensor(network->inputs()[0]).shape), "1x3x224x224");
    EXPECT_EQ(network->tensor(network->outputs()[0]).shape, light.outputs);
    EXPECT_EQ(count_of(*network, "conv"), light.convolutions);
    EXPECT_NEAR(network->multiply_adds() / 1e6, light.mega_multiply_adds,
                light.mega_multiply_adds / 100);
  }
}

// Returns the tensor of a file that is one alone, or nothing.
ArrayPtr read_tensor(const std::filesystem::path& path) {
  const auto text = read_text_file(path);
  if (!text) {
    return nullptr;
  }
  const Message model = Message().message(7, Message().text(5, *text));
  Allowance allowance(graph::kMaxElements);
  const auto read = read_model(model.bytes());
  const auto array = decode(read->initializers.begin()->second, allowance);
  return array ? *array : nullptr;
}

// Debian's package of ONNX's own tests has a folder for each, with a model and its tensors.
TEST(OnnxNetwork, PassesOnnxsOwnTestsOrNamesTheReason) {
  const std::filesystem::path folder = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "libonnx-testdata is not installed";
  }
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::filesystem::path tensors = entry.path() / "test_data_set_0";
    const auto bytes = read_file(entry.path() / "model.onnx");
    ASSERT_TRUE(bytes);
    const auto model = read_model(*bytes);
    ASSERT_TRUE(model);
    Example example{.inputs = {read_tensor(tensors / "input_0.pb")},
                    .outputs = {read_tensor(tensors / "output_0.pb")}};
    OnnxOptions options;
    const bool has_tensors = model->inputs.size() == 1 && model->outputs.size() == 1 &&
                             example.inputs[0] != nullptr && example.outputs[0] != nullptr;
    if (has_tensors) {
      // Many inputs have no batch; their first extent belongs to the one image.
      options.input_shapes[model->inputs[0].name] = example.inputs[0]->shape;
    }
    auto network = import_onnx(*bytes, options);
    if (!network) {
      EXPECT_NE(network.error().message, "");
      EXPECT_NE(network.error().code, ErrorCode::kInternal);
    } else if (has_tensors) {
      example.network = *std::move(network);
      EXPECT_EQ(difference(example, 1), "");
      ++compared;
    }
  }
  EXPECT_GT(compared, 90U);
}

}  // namespace
}  // namespace foretune::onnx_internal
