#include "foretune/cuda/device.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/cuda/device_facts.h"
#include "foretune/cuda/internal/kernel_texts.h"

namespace foretune::cuda {
namespace {

constexpr unsigned kThreadsPerBlock = 256;
constexpr unsigned kMaxBlocks = 4096;

// A block of the convolution's kernel computes so many rows and columns; see kernels/check.cu.
constexpr std::uint64_t kConvTile = 64;
constexpr std::uint64_t kConvDepth = 16;
// Enough blocks for any device, as long as each of them has some steps to do.
constexpr std::uint64_t kConvBlocks = 2048;
constexpr std::uint64_t kLeastConvSteps = 64;
constexpr std::uint64_t kMaxGridDepth = 65535;

// A step of SplitMix64, as in kernels/check.cu.
std::uint64_t mix(std::uint64_t value) { return mix64(value + 0x9e3779b97f4a7c15U); }

// The output of the compare kernel.
struct Found {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
};

}  // namespace

float random_element(DataType type, std::uint64_t seed, std::uint64_t index) {
  const int bits = random_bits(type);
  const auto whole =
      static_cast<std::int32_t>(mix(mix(seed) + index) >> (64U - static_cast<unsigned>(bits))) -
      (1 << (bits - 1));
  return static_cast<float>(whole) / static_cast<float>(1 << (bits - 1));
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (api_ != nullptr && pointer_ != 0) {
    api_->memory_free(pointer_);  // an error means a lost device; a destructor cannot report it
  }
}

void* Buffer::address() const {
  // Device addresses are pointers to the libraries that take them.
  return reinterpret_cast<void*>(pointer_);  // NOLINT(performance-no-int-to-ptr)
}

Result<std::shared_ptr<Device>> Device::open(const Libraries& libraries, int ordinal) {
  std::shared_ptr<Device> device(new Device());
  FORETUNE_TRY_STATUS(device->start(libraries, ordinal));
  return device;
}

Status Device::start(const Libraries& libraries, int ordinal) {
  FORETUNE_TRY(api_, DriverApi::load(libraries.driver));
  if (const Status started = api_->check(api_->init(0), "cuInit"); !started) {
    return fail(ErrorCode::kUnsupported, started.error().message);
  }
  int count = 0;
  FORETUNE_TRY_STATUS(api_->check(api_->device_count(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return fail(ErrorCode::kUnsupported, "there is no GPU ", ordinal, "; there are ", count);
  }
  int device = 0;
  FORETUNE_TRY_STATUS(api_->check(api_->device_get(&device, ordinal), "cuDeviceGet"));
  FORETUNE_TRY_STATUS(
      api_->check(api_->primary_context_retain(&context_, device), "cuDevicePrimaryCtxRetain"));
  device_ = device;
  FORETUNE_TRY_STATUS(api_->check(api_->context_set_current(context_), "cuCtxSetCurrent"));
  FORETUNE_TRY_STATUS(
      api_->check(api_->stream_create(&stream_, kStreamNonBlocking), "cuStreamCreate"));
  FORETUNE_TRY_STATUS(load_kernels());
  FORETUNE_TRY(difference_, allocate(sizeof(Found)));
  return read_facts();
}

Device::~Device() {
  difference_ = Buffer();
  if (stream_ != nullptr) {
    api_->stream_destroy(stream_);
  }
  if (device_ >= 0) {
    api_->primary_context_release(device_);
  }
}

Status Device::load_kernels() {
  const std::string text(gpu_kernel_texts().front().text);
  FORETUNE_TRY_STATUS(api_->check(api_->module_load(&module_, text.c_str()), "cuModuleLoadData"));
  const std::array<std::pair<const char*, Function*>, 6> kernels{{
      {"foretune_fill", &fill_},
      {"foretune_widen", &widen_},
      {"foretune_gelu", &gelu_},
      {"foretune_compare", &compare_},
      {"foretune_conv", &conv_},
      {"foretune_conv_epilogue", &conv_epilogue_},
  }};
  for (const auto& [name, function] : kernels) {
    FORETUNE_TRY_STATUS(
        api_->check(api_->module_function(function, module_, name), "cuModuleGetFunction"));
  }
  return {};
}

Status Device::read_facts() {
  std::array<char, 256> text{};
  FORETUNE_TRY_STATUS(
      api_->check(api_->device_bus_id(text.data(), static_cast<int>(text.size()) - 1, device_),
                  "cuDeviceGetPCIBusId"));
  bus_id_ = text.data();
  FORETUNE_TRY(fingerprint_, read_device_facts(*api_, device_));
  int l2_bytes = 0;
  if (api_->device_attribute(&l2_bytes, DeviceAttribute::kL2Bytes, device_) == kDriverSuccess) {
    l2_bytes_ = static_cast<std::size_t>(l2_bytes);
  }
  return {};
}

void Device::must(int code, std::string_view call) const { must(api_->check(code, call)); }

void Device::must(const Status& status) {
  if (!status) {
    check_failed(__FILE__, __LINE__, status.error().message.c_str());
  }
}

Result<Buffer> Device::allocate(std::size_t bytes) {
  DevicePointer pointer = 0;
  const int code = api_->memory_allocate(&pointer, std::max<std::size_t>(bytes, 1));
  if (code == kDriverOutOfMemory) {
    return fail(ErrorCode::kUnsupported, "the GPU has no ", bytes, " bytes of memory left");
  }
  must(code, "cuMemAlloc");
  return Buffer(api_, pointer, bytes);
}

std::size_t Device::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  must(api_->memory_info(&free, &total), "cuMemGetInfo");
  return free;
}

void Device::set(const Buffer& buffer, unsigned char value) {
  must(api_->memory_set(buffer.pointer(), value, buffer.bytes(), stream_), "cuMemsetD8Async");
}

void Device::synchronize() { must(api_->stream_synchronize(stream_), "cuStreamSynchronize"); }

void Device::launch(Function function, std::uint64_t count, void** parameters) {
  const std::uint64_t blocks = (count + kThreadsPerBlock - 1) / kThreadsPerBlock;
  const auto grid = static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, kMaxBlocks));
  must(api_->launch_kernel(function, grid, 1, 1, kThreadsPerBlock, 1, 1, 0, stream_, parameters,
                           nullptr),
       "cuLaunchKernel");
}

void Device::fill(const Buffer& buffer, DataType type, std::uint64_t count, std::uint64_t seed) {
  DevicePointer to = buffer.pointer();
  seed = mix(seed);  // otherwise the next seed would give the same numbers, shifted by one
  auto kind = static_cast<unsigned>(type);
  std::array<void*, 4> parameters{&to, &kind, &count, &seed};
  launch(fill_, count, parameters.data());
}

void Device::widen(const Buffer& from, DataType type, std::uint64_t count, const Buffer& to) {
  DevicePointer source = from.pointer();
  DevicePointer target = to.pointer();
  auto kind = static_cast<unsigned>(type);
  std::array<void*, 4> parameters{&source, &kind, &count, &target};
  launch(widen_, count, parameters.data());
}

void Device::gelu(const Buffer& values, std::uint64_t count) {
  DevicePointer pointer = values.pointer();
  std::array<void*, 2> parameters{&pointer, &count};
  launch(gelu_, count, parameters.data());
}

void Device::make_current() const { must(api_->context_set_current(context_), "cuCtxSetCurrent"); }

namespace {

// Returns the rows, columns and depth of the product of one group, as kernels/check.cu has them.
std::array<std::uint64_t, 3> conv_product(const ConvShape& shape) {
  const auto product = [](const std::int32_t(&sizes)[3]) {
    return static_cast<std::uint64_t>(sizes[0]) * static_cast<std::uint64_t>(sizes[1]) *
           static_cast<std::uint64_t>(sizes[2]);
  };
  const auto n = static_cast<std::uint64_t>(shape.n);
  const auto c = static_cast<std::uint64_t>(shape.c);
  const auto k = static_cast<std::uint64_t>(shape.k);
  const std::uint64_t taps = product(shape.filter);
  switch (shape.operation) {
    case 0:
      return {n * product(shape.out), k, taps * c};
    case 1:
      return {n * product(shape.in), c, taps * k};
    default:
      return {k, taps * c, n * product(shape.out)};
  }
}

std::uint64_t ceil_div(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

}  // namespace

void Device::convolve(const ConvShape& shape, const ConvTensors& from, const Buffer& to) {
  const auto [rows, columns, depth] = conv_product(shape);
  const auto groups = static_cast<std::uint64_t>(shape.groups);
  const std::uint64_t blocks_x = ceil_div(columns, kConvTile);
  const std::uint64_t blocks_y = ceil_div(rows, kConvTile);
  // Few blocks with a long depth share it.
  const std::uint64_t steps = ceil_div(depth, kConvDepth);
  const std::uint64_t wanted = ceil_div(kConvBlocks, blocks_x * blocks_y * groups);
  const std::uint64_t parts = std::clamp<std::uint64_t>(
      steps / kLeastConvSteps, 1,
      std::min(wanted, std::max<std::uint64_t>(1, kMaxGridDepth / groups)));
  if (parts > 1) {
    set(to, 0);
  }
  const auto pointer = [](const Buffer* buffer) {
    return buffer == nullptr ? DevicePointer{0} : buffer->pointer();
  };
  DevicePointer input = pointer(from.input);
  DevicePointer weights = pointer(from.weights);
  DevicePointer output = pointer(from.output);
  DevicePointer target = to.pointer();
  ConvShape copy = shape;
  auto part_count = static_cast<unsigned>(parts);
  std::array<void*, 6> parameters{&input, &weights, &output, &target, &copy, &part_count};
  must(api_->launch_kernel(conv_, static_cast<unsigned>(blocks_y), static_cast<unsigned>(blocks_x),
                           static_cast<unsigned>(groups * parts), kThreadsPerBlock, 1, 1, 0,
                           stream_, parameters.data(), nullptr),
       "cuLaunchKernel");
}

void Device::finish_convolution(const Buffer& values, std::uint64_t count, const Buffer& bias,
                                std::uint32_t channels, std::uint64_t inner, const Buffer* added,
                                bool relu) {
  DevicePointer pointer = values.pointer();
  DevicePointer biases = bias.pointer();
  DevicePointer other = added == nullptr ? 0 : added->pointer();
  unsigned has_relu = relu ? 1 : 0;
  std::array<void*, 7> parameters{&pointer, &count, &biases, &channels, &inner, &other, &has_relu};
  launch(conv_epilogue_, count, parameters.data());
}

Difference Device::compare(const Buffer& found, DataType type, const Buffer& wanted,
                           std::uint64_t count, float absolute, float relative) {
  const Found none{0, ~std::uint64_t{0}};
  must(api_->copy_to_device(difference_.pointer(), &none, sizeof(none), stream_),
       "cuMemcpyHtoDAsync");
  DevicePointer result = found.pointer();
  DevicePointer reference = wanted.pointer();
  DevicePointer out = difference_.pointer();
  auto kind = static_cast<unsigned>(type);
  std::array<void*, 7> parameters{&result, &kind, &reference, &count, &absolute, &relative, &out};
  launch(compare_, count, parameters.data());
  Found differences;
  must(api_->copy_to_host(&differences, difference_.pointer(), sizeof(differences), stream_),
       "cuMemcpyDtoHAsync");
  synchronize();
  Difference difference{.count = differences.count, .first = differences.first};
  if (difference.count > 0) {
    read(wanted, difference.first, std::span(&difference.wanted, 1));
  }
  return difference;
}

void Device::read(const Buffer& from, std::uint64_t first, std::span<float> to) {
  FORETUNE_CHECK((first + to.size()) * sizeof(float) <= from.bytes());
  must(api_->copy_to_host(to.data(), from.pointer() + first * sizeof(float), to.size_bytes(),
                          stream_),
       "cuMemcpyDtoHAsync");
  synchronize();
}

}  // namespace foretune::cuda
