// Runs one product by plain cublasLtMatmul and with an algorithm that Foretune chose. Prints each
// choice, the time of the product, and the time of the call. The program is built without CUDA: it
// loads CUDA's libraries when it runs.
//
//   cublaslt_matmul [--model FILE] [--cublaslt LIBRARY] [--driver LIBRARY]
//                   [--follow] [M N K]
//
// D (M x N) = A' * B in bf16, all stored by columns, as in cuBLASLt. Without --model the shipped
// model chooses, if there is one for the GPU; with --follow it is followed even where it predicts a
// small gain. Exits with 77 when there is no GPU.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cuda/cublaslt_api.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/dispatch/cublaslt_matmul.h"

namespace {

namespace cublaslt = foretune::cublaslt;
namespace cuda = foretune::cuda;
using foretune::Result;
using foretune::Status;

constexpr int kNoGpu = 77;
constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20U;
constexpr int kWindows = 10;
constexpr int kCallsPerWindow = 20;
constexpr int kBytes = 2;  // of bf16

struct Arguments {
  std::string model;
  std::string cublaslt;
  std::string driver = "libcuda.so.1";
  bool follow = false;
  std::array<std::int64_t, 3> sizes{4096, 128, 7168};
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  std::size_t size = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--follow") {
      arguments.follow = true;
      continue;
    }
    std::string* const text = word == "--model"      ? &arguments.model
                              : word == "--cublaslt" ? &arguments.cublaslt
                              : word == "--driver"   ? &arguments.driver
                                                     : nullptr;
    if (text != nullptr && i + 1 < argc) {
      *text = argv[++i];
      continue;
    }
    const auto number = foretune::parse_int(word);
    if (text != nullptr || !number || *number < 1 || size == arguments.sizes.size()) {
      return std::nullopt;
    }
    arguments.sizes.at(size++) = *number;
  }
  return size == 0 || size == arguments.sizes.size() ? std::optional(arguments) : std::nullopt;
}

// The GPU, the library and the product's descriptors. They live until the process ends.
struct Product {
  std::shared_ptr<const cuda::DriverApi> driver;
  std::shared_ptr<const cublaslt::Api> api;
  cuda::Stream stream = nullptr;
  cublaslt::Handle handle = nullptr;
  cublaslt::Descriptor descriptor = nullptr;
  cublaslt::Layout a_layout = nullptr;
  cublaslt::Layout b_layout = nullptr;
  cublaslt::Layout d_layout = nullptr;
  void* a = nullptr;
  void* b = nullptr;
  void* d = nullptr;
  std::size_t d_bytes = 0;
  void* workspace = nullptr;
  float alpha = 1;
  float beta = 0;

  Status start_gpu();
  Status describe(std::int64_t m, std::int64_t n, std::int64_t k);
  // Allocates device memory with `value` in every byte; 0x3c makes small bf16 numbers.
  Result<void*> allocate(std::size_t bytes, unsigned char value) const;
  Result<std::vector<std::uint16_t>> result() const;
};

Status Product::start_gpu() {
  cuda::DriverContext context = nullptr;
  int device = 0;
  FORETUNE_TRY_STATUS(driver->check(driver->init(0), "cuInit"));
  FORETUNE_TRY_STATUS(driver->check(driver->device_get(&device, 0), "cuDeviceGet"));
  FORETUNE_TRY_STATUS(
      driver->check(driver->primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  FORETUNE_TRY_STATUS(driver->check(driver->context_set_current(context), "cuCtxSetCurrent"));
  return driver->check(driver->stream_create(&stream, cuda::kStreamNonBlocking), "cuStreamCreate");
}

Result<void*> Product::allocate(std::size_t bytes, unsigned char value) const {
  cuda::DevicePointer pointer = 0;
  FORETUNE_TRY_STATUS(driver->check(driver->memory_allocate(&pointer, bytes), "cuMemAlloc"));
  FORETUNE_TRY_STATUS(
      driver->check(driver->memory_set(pointer, value, bytes, stream), "cuMemsetD8Async"));
  return reinterpret_cast<void*>(pointer);  // NOLINT(performance-no-int-to-ptr)
}

Status Product::describe(std::int64_t m, std::int64_t n, std::int64_t k) {
  using cublaslt::CudaType;
  FORETUNE_TRY_STATUS(api->check(api->create(&handle), "cublasLtCreate"));
  FORETUNE_TRY_STATUS(
      api->check(api->descriptor_create(&descriptor, cublaslt::ComputeType::kF32, CudaType::kF32),
                 "cublasLtMatmulDescCreate"));
  const std::int32_t yes = 1;
  FORETUNE_TRY_STATUS(
      api->check(api->descriptor_set(descriptor, cublaslt::DescriptorAttribute::kTransposeA, &yes,
                                     sizeof(yes)),
                 "cublasLtMatmulDescSetAttribute"));
  const auto layout = [&](cublaslt::Layout& made, std::int64_t rows, std::int64_t columns) {
    return api->check(api->layout_create(&made, CudaType::kBf16, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), rows),
                      "cublasLtMatrixLayoutCreate");
  };
  FORETUNE_TRY_STATUS(layout(a_layout, k, m));
  FORETUNE_TRY_STATUS(layout(b_layout, k, n));
  FORETUNE_TRY_STATUS(layout(d_layout, m, n));
  const auto bytes = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns * kBytes);
  };
  d_bytes = bytes(m, n);
  FORETUNE_TRY(a, allocate(bytes(k, m), 0x3c));
  FORETUNE_TRY(b, allocate(bytes(k, n), 0x3d));
  FORETUNE_TRY(d, allocate(d_bytes, 0xff));
  FORETUNE_TRY(workspace, allocate(kWorkspaceBytes, 0));
  return {};
}

Result<std::vector<std::uint16_t>> Product::result() const {
  std::vector<std::uint16_t> copy(d_bytes / kBytes);
  FORETUNE_TRY_STATUS(driver->check(
      driver->copy_to_host(copy.data(), reinterpret_cast<cuda::DevicePointer>(d), d_bytes, stream),
      "cuMemcpyDtoHAsync"));
  FORETUNE_TRY_STATUS(driver->check(driver->stream_synchronize(stream), "cuStreamSynchronize"));
  return copy;
}

// Microseconds of a product; each figure is the fastest of some windows.
struct Timing {
  double device_us = std::numeric_limits<double>::infinity();
  double call_us = std::numeric_limits<double>::infinity();  // until the call returns
  double first_call_us = 0;
};

double now_us() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

Result<Timing> time_product(const Product& product, const std::function<int()>& call) {
  const cuda::DriverApi& driver = *product.driver;
  std::array<cuda::Event, 2> events{};
  for (cuda::Event& event : events) {
    FORETUNE_TRY_STATUS(driver.check(driver.event_create(&event, 0), "cuEventCreate"));
  }
  Timing timing;
  const double begin_us = now_us();
  FORETUNE_TRY_STATUS(product.api->check(call(), "cublasLtMatmul"));
  timing.first_call_us = now_us() - begin_us;
  for (int window = 0; window <= kWindows; ++window) {  // the first warms up
    FORETUNE_TRY_STATUS(driver.check(driver.event_record(events[0], product.stream), "record"));
    const double window_us = now_us();
    for (int i = 0; i < kCallsPerWindow; ++i) {
      FORETUNE_TRY_STATUS(product.api->check(call(), "cublasLtMatmul"));
    }
    timing.call_us = std::min(timing.call_us, (now_us() - window_us) / kCallsPerWindow);
    FORETUNE_TRY_STATUS(driver.check(driver.event_record(events[1], product.stream), "record"));
    FORETUNE_TRY_STATUS(
        driver.check(driver.stream_synchronize(product.stream), "cuStreamSynchronize"));
    float ms = 0;
    FORETUNE_TRY_STATUS(
        driver.check(driver.event_elapsed_ms(&ms, events[0], events[1]), "cuEventElapsedTime"));
    if (window > 0) {
      timing.device_us =
          std::min(timing.device_us, 1e3 * static_cast<double>(ms) / kCallsPerWindow);
    }
  }
  return timing;
}

void print(const char* name, const Timing& timing, const std::string& chosen) {
  std::printf("%-9s %9.2f us, a call %.2f us, the first %.0f us  %s\n", name, timing.device_us,
              timing.call_us, timing.first_call_us, chosen.c_str());
}

// Does what programs do without Foretune: calls the heuristic once and keeps its first answer.
Result<cublaslt::Algorithm> first_of_heuristic(const Product& product) {
  const cublaslt::Api& api = *product.api;
  cublaslt::Preference preference = nullptr;
  FORETUNE_TRY_STATUS(
      api.check(api.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  const std::uint64_t limit = kWorkspaceBytes;
  api.preference_set(preference, cublaslt::PreferenceAttribute::kMaxWorkspaceBytes, &limit,
                     sizeof(limit));
  cublaslt::HeuristicResult result;
  int count = 0;
  const int status = api.algorithm_heuristic(product.handle, product.descriptor, product.a_layout,
                                             product.b_layout, product.d_layout, product.d_layout,
                                             preference, 1, &result, &count);
  api.preference_destroy(preference);
  FORETUNE_TRY_STATUS(api.check(status, "cublasLtMatmulAlgoGetHeuristic"));
  return result.algorithm;
}

Status compare(const Product& p, foretune_cublaslt* foretune) {
  FORETUNE_TRY(const cublaslt::Algorithm algorithm, first_of_heuristic(p));
  FORETUNE_TRY(const Timing before, time_product(p, [&] {
                 return p.api->matmul(p.handle, p.descriptor, &p.alpha, p.a, p.a_layout, p.b,
                                      p.b_layout, &p.beta, p.d, p.d_layout, p.d, p.d_layout,
                                      &algorithm, p.workspace, kWorkspaceBytes, p.stream);
               }));
  FORETUNE_TRY(const std::vector<std::uint16_t> expected, p.result());
  print("heuristic", before,
        to_text(foretune::cublaslt_schema(), cublaslt::words_of(*p.api, algorithm).to_config()));
  // The same call by another name, with one argument more and no algorithm.
  FORETUNE_TRY(const Timing after, time_product(p, [&] {
                 return foretune_cublaslt_matmul(foretune, p.handle, p.descriptor, &p.alpha, p.a,
                                                 p.a_layout, p.b, p.b_layout, &p.beta, p.d,
                                                 p.d_layout, p.d, p.d_layout, nullptr, p.workspace,
                                                 kWorkspaceBytes, p.stream);
               }));
  std::array<char, 512> chosen{};
  foretune_cublaslt_explain(foretune, p.handle, p.descriptor, p.a_layout, p.b_layout, p.d_layout,
                            p.d_layout, kWorkspaceBytes, chosen.data(), chosen.size());
  print("foretune", after, chosen.data());
  FORETUNE_TRY(const std::vector<std::uint16_t> found, p.result());
  const auto differ = [](std::uint16_t x, std::uint16_t y) {
    // Neighbouring numbers are equal: another order of summation may round the other way.
    return std::max(x, y) - std::min(x, y) > 1;
  };
  if (!std::equal(found.begin(), found.end(), expected.begin(),
                  [&](auto x, auto y) { return !differ(x, y); })) {
    return foretune::fail(foretune::ErrorCode::kInternal, "the results differ");
  }
  return {};
}

Status run(Product& product, const Arguments& arguments) {
  const auto& [m, n, k] = arguments.sizes;
  FORETUNE_TRY_STATUS(product.describe(m, n, k));
  foretune_cublaslt_options options = {};
  options.model_path = arguments.model.empty() ? nullptr : arguments.model.c_str();
  options.cublaslt_library = arguments.cublaslt.empty() ? nullptr : arguments.cublaslt.c_str();
  options.driver_library = arguments.driver.c_str();
  options.margin = arguments.follow ? -1 : 0;
  foretune_cublaslt* opened = nullptr;
  std::array<char, 256> message{};
  if (foretune_cublaslt_open_with(&options, &opened, message.data(), message.size()) !=
      FORETUNE_CUBLASLT_OK) {
    return foretune::fail(foretune::ErrorCode::kUnsupported, message.data());
  }
  const std::unique_ptr<foretune_cublaslt, decltype(&foretune_cublaslt_close)> owned(
      opened, foretune_cublaslt_close);
  return compare(product, opened);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) {
    std::fprintf(stderr,
                 "usage: cublaslt_matmul [--model FILE] [--cublaslt LIBRARY] [--driver LIBRARY] "
                 "[M N K]\n");
    return 2;
  }
  Product product;
  auto driver = cuda::DriverApi::load(arguments->driver);
  auto api =
      cublaslt::Api::load(arguments->cublaslt.empty()
                              ? std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12"}
                              : std::vector<std::string>{arguments->cublaslt});
  if (!driver || !api) {
    std::printf("nothing to compare here: %s\n",
                (!driver ? driver.error() : api.error()).message.c_str());
    return kNoGpu;
  }
  product.driver = *std::move(driver);
  product.api = *std::move(api);
  if (const Status started = product.start_gpu(); !started) {
    std::printf("nothing to compare here: %s\n", started.error().message.c_str());
    return kNoGpu;
  }
  if (const Status status = run(product, *arguments); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
