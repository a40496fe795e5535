#include "tests/fake_gpu/fake_triton.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "tests/fake_gpu/fake_product.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::ComputeType;
using cublaslt::CudaType;
using cuda::DevicePointer;
using cuda::kDriverSuccess;

// The properties for which a kernel was compiled: the words of its key.
struct Kernel {
  int template_number = 0;
  std::string dtype;
  std::string layout;
  std::string epilogue;
  bool even_k = false;
  bool aligned = false;
  int block_m = 0;
  int block_n = 0;
  int block_k = 0;
  int num_stages = 0;
  int num_warps = 0;
};

std::string_view word_of(std::string_view key, std::string_view name) {
  std::size_t at = 0;
  while (at < key.size()) {
    const std::size_t end = std::min(key.find(' ', at), key.size());
    const std::string_view word = key.substr(at, end - at);
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return word.substr(name.size() + 1);
    }
    at = end + 1;
  }
  return {};
}

int number_of(std::string_view key, std::string_view name) {
  const std::string_view word = word_of(key, name);
  int number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

Kernel parse(std::string_view key) {
  return {.template_number = number_of(key, "template"),
          .dtype = std::string(word_of(key, "dtype")),
          .layout = std::string(word_of(key, "layout")),
          .epilogue = std::string(word_of(key, "epilogue")),
          .even_k = number_of(key, "even_k") == 1,
          .aligned = number_of(key, "aligned") == 1,
          .block_m = number_of(key, "block_m"),
          .block_n = number_of(key, "block_n"),
          .block_k = number_of(key, "block_k"),
          .num_stages = number_of(key, "num_stages"),
          .num_warps = number_of(key, "num_warps")};
}

bool is_sane(const Kernel& kernel) {
  return kernel.template_number > 0 && kernel.layout.size() == 3 && !kernel.epilogue.empty() &&
         (kernel.dtype == "bf16" || kernel.dtype == "f16" || kernel.dtype == "f32" ||
          kernel.dtype == "tf32") &&
         std::min({kernel.block_m, kernel.block_n, kernel.block_k, kernel.num_stages,
                   kernel.num_warps}) > 0;
}

struct Arguments {
  DevicePointer a = 0;
  DevicePointer b = 0;
  DevicePointer d = 0;
  DevicePointer bias = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  std::int64_t ldd = 0;
  std::int64_t batch_a = 0;
  std::int64_t batch_b = 0;
  std::int64_t batch_d = 0;

  explicit Arguments(void** parameters) {
    std::size_t next = 0;
    for (DevicePointer* const pointer : {&a, &b, &d, &bias}) {
      std::memcpy(pointer, parameters[next++], sizeof(*pointer));
    }
    for (std::int64_t* const size : {&m, &n, &k, &lda, &ldb, &ldd}) {
      std::int32_t value = 0;
      std::memcpy(&value, parameters[next++], sizeof(value));
      *size = value;
    }
    for (std::int64_t* const distance : {&batch_a, &batch_b, &batch_d}) {
      std::memcpy(distance, parameters[next++], sizeof(*distance));
    }
  }
};

CudaType type_of(const Kernel& kernel) {
  return kernel.dtype == "bf16"  ? CudaType::kBf16
         : kernel.dtype == "f16" ? CudaType::kF16
                                 : CudaType::kF32;
}

// Returns the transposed product, because the fake's products are column-major: its first operand
// is B.
Product product_of(const Kernel& kernel, const Arguments& of, std::int32_t batches) {
  const CudaType type = type_of(kernel);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, std::int64_t leading,
                          std::int64_t stride, DevicePointer pointer) {
    return Matrix{type, rows, columns, leading, batches, stride, pointer};
  };
  Product product;
  product.compute = kernel.dtype == "tf32" ? ComputeType::kTf32 : ComputeType::kF32;
  product.transpose_a = kernel.layout[1] == 'c';
  product.transpose_b = kernel.layout[0] == 'c';
  product.a = product.transpose_a ? matrix(of.k, of.n, of.ldb, of.batch_b, of.b)
                                  : matrix(of.n, of.k, of.ldb, of.batch_b, of.b);
  product.b = product.transpose_b ? matrix(of.m, of.k, of.lda, of.batch_a, of.a)
                                  : matrix(of.k, of.m, of.lda, of.batch_a, of.a);
  product.d = matrix(of.n, of.m, of.ldd, of.batch_d, of.d);
  product.c = product.d;
  product.k = of.k;
  product.has_bias = kernel.epilogue != "none";
  product.activation = kernel.epilogue == "bias_relu"   ? Activation::kRelu
                       : kernel.epilogue == "bias_gelu" ? Activation::kGelu
                                                        : Activation::kNone;
  product.bias = of.bias;
  product.bias_type = type;
  const auto tile = static_cast<unsigned>(1000 * kernel.block_m + kernel.block_n);
  product.wrong = faults().wrong.contains(tile);
  product.last_not_written = faults().not_written.contains(tile);
  return product;
}

// Returns the time of tiles in waves of 132, where larger tiles are more efficient and deeper
// pipelines better for long k.
double simulated_ns(const Kernel& kernel, const Arguments& of, std::int32_t batches) {
  const auto blocks = [](std::int64_t size, std::int64_t block) {
    const std::int64_t whole = (size + block - 1) / block;
    return static_cast<double>(whole);
  };
  const double tiles =
      blocks(of.m, kernel.block_m) * blocks(of.n, kernel.block_n) * static_cast<double>(batches);
  const double area = static_cast<double>(kernel.block_m) * kernel.block_n;
  const double edge = 1.0 / kernel.block_m + 1.0 / kernel.block_n;
  const double factor = (1 + 12 * edge) * (1 + 0.3 / kernel.num_stages) *
                        (1 + 0.05 * std::abs(std::log2(area / 2048 / kernel.num_warps))) *
                        (kernel.template_number == 2 ? 0.97 : 1) * (kernel.aligned ? 1 : 1.5);
  return 2200 + std::ceil(tiles / 132) * area * static_cast<double>(of.k) * 3.3e-4 * factor;
}

Operation bind_triton(const Kernel& kernel, const Launch& launch) {
  const Arguments of(launch.parameters);
  const auto batches = static_cast<std::int32_t>(launch.grid_z);
  const auto tile = static_cast<unsigned>(1000 * kernel.block_m + kernel.block_n);
  // The promises under which the kernel was compiled have to hold; otherwise the real kernel would
  // read out of bounds.
  const bool is_promised =
      (kernel.template_number == 2 || !kernel.even_k || of.k % kernel.block_k == 0) &&
      (!kernel.aligned || (of.lda % 8 == 0 && of.ldb % 8 == 0 && of.ldd % 8 == 0));
  const std::int64_t tiles =
      (of.m + kernel.block_m - 1) / kernel.block_m * ((of.n + kernel.block_n - 1) / kernel.block_n);
  const bool is_covered = kernel.template_number == 2
                              ? launch.grid_x >= 1
                              : static_cast<std::int64_t>(launch.grid_x) == tiles;
  const bool is_right =
      launch.block_x == static_cast<unsigned>(32 * kernel.num_warps) && is_covered && is_promised;
  const Product product = product_of(kernel, of, batches);
  const double time_ns = simulated_ns(kernel, of, batches);
  return [=](State& device) {
    if (!is_right || !run_product(device.memory, product)) {
      return kIllegalAddress;
    }
    if (faults().crash.contains(tile)) {
      return kLaunchFailed;
    }
    const double jitter = static_cast<double>(mix(device.products) >> 11) * 0x1p-53;
    device.clock_ns += time_ns * (1 + 0.005 * jitter);
    ++device.products;
    device.hung = device.hung || faults().hang.contains(tile);
    return kDriverSuccess;
  };
}

using Functions = std::map<std::string, std::unique_ptr<cuda::FunctionObject>, std::less<>>;
// Guarded by the state's mutex, which every call of the driver holds.
Functions& functions() {
  static Functions result;
  return result;
}

}  // namespace

cuda::FunctionObject* triton_function(std::string_view image) {
  const std::string key(image.substr(kTritonImage.size()));
  std::unique_ptr<cuda::FunctionObject>& function = functions()[key];
  if (function == nullptr) {
    const Kernel kernel = parse(key);
    if (!is_sane(kernel)) {
      return nullptr;
    }
    function = std::make_unique<cuda::FunctionObject>(cuda::FunctionObject{
        "matmul", [kernel](const Launch& launch) { return bind_triton(kernel, launch); }});
  }
  return function.get();
}

bool is_triton_function(const cuda::FunctionObject* function) {
  return std::ranges::any_of(functions(),
                             [&](const auto& entry) { return entry.second.get() == function; });
}

}  // namespace foretune::fake_gpu
