#include "tests/fake_gpu/fake_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "foretune/cuda/conv_shape.h"
#include "foretune/cuda/device.h"
#include "foretune/problem/gemm/gemm.h"
#include "tests/fake_gpu/fake_conv.h"
#include "tests/fake_gpu/float_formats.h"

namespace foretune::fake_gpu {
namespace {

using cuda::DevicePointer;
using cuda::kDriverSuccess;

template <class T>
T parameter(void** parameters, std::size_t position) {
  T value{};
  std::memcpy(&value, parameters[position], sizeof(T));
  return value;
}

template <class T>
T element(const std::byte* from, std::uint64_t i) {
  T value{};
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void set_element(std::byte* to, std::uint64_t i, T value) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

DataType type_of(unsigned number) { return static_cast<DataType>(number); }

void pass_kernel(State& device, std::uint64_t bytes) {
  device.clock_ns += 2000 + static_cast<double>(bytes) / 2400;
}

Operation bind_fill(const Launch& launch) {
  void** const parameters = launch.parameters;
  const auto to = parameter<DevicePointer>(parameters, 0);
  const DataType type = type_of(parameter<unsigned>(parameters, 1));
  const auto count = parameter<std::uint64_t>(parameters, 2);
  const auto seed = parameter<std::uint64_t>(parameters, 3);
  return [=](State& device) {
    const std::uint64_t bytes = count * element_bytes(type);
    std::byte* const values = device.memory.writable(to, bytes);
    if (values == nullptr) {
      return kIllegalAddress;
    }
    const int bits = cuda::random_bits(type);
    const float scale = 1.0F / static_cast<float>(1 << (bits - 1));
    for (std::uint64_t i = 0; i < count; ++i) {
      const int whole = static_cast<int>(mix(seed + i) >> (64 - bits)) - (1 << (bits - 1));
      const float value = static_cast<float>(whole) * scale;
      store_element(values, type, i, value);
    }
    pass_kernel(device, bytes);
    return kDriverSuccess;
  };
}

Operation bind_widen(const Launch& launch) {
  void** const parameters = launch.parameters;
  const auto from = parameter<DevicePointer>(parameters, 0);
  const DataType type = type_of(parameter<unsigned>(parameters, 1));
  const auto count = parameter<std::uint64_t>(parameters, 2);
  const auto to = parameter<DevicePointer>(parameters, 3);
  return [=](State& device) {
    const std::byte* const narrow = device.memory.readable(from, count * element_bytes(type));
    std::byte* const wide = device.memory.writable(to, count * sizeof(float));
    if (narrow == nullptr || wide == nullptr) {
      return kIllegalAddress;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      set_element(wide, i, load_element(narrow, type, i));
    }
    pass_kernel(device, count * (element_bytes(type) + sizeof(float)));
    return kDriverSuccess;
  };
}

Operation bind_gelu(const Launch& launch) {
  const auto values = parameter<DevicePointer>(launch.parameters, 0);
  const auto count = parameter<std::uint64_t>(launch.parameters, 1);
  return [=](State& device) {
    std::byte* const elements = device.memory.writable(values, count * sizeof(float));
    if (elements == nullptr) {
      return kIllegalAddress;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(element<float>(elements, i));
      set_element(elements, i, static_cast<float>(gelu_by_tanh(value)));
    }
    pass_kernel(device, 2 * count * sizeof(float));
    return kDriverSuccess;
  };
}

Operation bind_compare(const Launch& launch) {
  void** const parameters = launch.parameters;
  const auto found = parameter<DevicePointer>(parameters, 0);
  const DataType type = type_of(parameter<unsigned>(parameters, 1));
  const auto wanted = parameter<DevicePointer>(parameters, 2);
  const auto count = parameter<std::uint64_t>(parameters, 3);
  const auto absolute = parameter<float>(parameters, 4);
  const auto relative = parameter<float>(parameters, 5);
  const auto difference = parameter<DevicePointer>(parameters, 6);
  return [=](State& device) {
    const std::byte* const values = device.memory.readable(found, count * element_bytes(type));
    const std::byte* const exact = device.memory.readable(wanted, count * sizeof(float));
    // The number of differences and the place of the first.
    std::byte* const result = device.memory.writable(difference, 2 * sizeof(std::uint64_t));
    if (values == nullptr || exact == nullptr || result == nullptr) {
      return kIllegalAddress;
    }
    auto different = element<std::uint64_t>(result, 0);
    auto first = element<std::uint64_t>(result, 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto want = element<float>(exact, i);
      const bool near =
          std::fabs(load_element(values, type, i) - want) <= absolute + relative * std::fabs(want);
      if (!near) {
        ++different;
        first = std::min(first, i);
      }
    }
    set_element(result, 0, different);
    set_element(result, 1, first);
    pass_kernel(device, count * (element_bytes(type) + sizeof(float)));
    return kDriverSuccess;
  };
}

Operation bind_conv(const Launch& launch) {
  void** const parameters = launch.parameters;
  Conv conv;
  conv.input.pointer = parameter<DevicePointer>(parameters, 0);
  conv.weights.pointer = parameter<DevicePointer>(parameters, 1);
  conv.output.pointer = parameter<DevicePointer>(parameters, 2);
  conv.shape = parameter<cuda::ConvShape>(parameters, 4);
  // The kernel writes its result elsewhere than the operation's tensor.
  const auto to = parameter<DevicePointer>(parameters, 3);
  (conv.shape.operation == 0   ? conv.output
   : conv.shape.operation == 1 ? conv.input
                               : conv.weights)
      .pointer = to;
  return [conv](State& device) {
    if (!run_conv(device.memory, conv)) {
      return kIllegalAddress;
    }
    device.clock_ns += 5000 + conv_flops(conv.shape) / 1000;
    return kDriverSuccess;
  };
}

Operation bind_conv_epilogue(const Launch& launch) {
  void** const parameters = launch.parameters;
  const auto values = parameter<DevicePointer>(parameters, 0);
  const auto count = parameter<std::uint64_t>(parameters, 1);
  const auto bias = parameter<DevicePointer>(parameters, 2);
  const auto channels = parameter<unsigned>(parameters, 3);
  const auto inner = parameter<std::uint64_t>(parameters, 4);
  const auto added = parameter<DevicePointer>(parameters, 5);
  const bool relu = parameter<unsigned>(parameters, 6) != 0;
  return [=](State& device) {
    std::byte* const to = device.memory.writable(values, count * sizeof(float));
    const std::byte* const biases = device.memory.readable(bias, channels * sizeof(float));
    const std::byte* const others =
        added == 0 ? nullptr : device.memory.readable(added, count * sizeof(float));
    if (to == nullptr || biases == nullptr || (added != 0 && others == nullptr)) {
      return kIllegalAddress;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      float value = element<float>(to, i) + element<float>(biases, i / inner % channels);
      value += others == nullptr ? 0 : element<float>(others, i);
      set_element(to, i, relu ? std::max(value, 0.0F) : value);
    }
    pass_kernel(device, 3 * count * sizeof(float));
    return kDriverSuccess;
  };
}

}  // namespace

std::uint64_t element_bytes(DataType type) {
  switch (type) {
    case DataType::kF16:
    case DataType::kBf16:
      return 2;
    case DataType::kF8e4m3:
      return 1;
    default:
      return 4;
  }
}

float load_element(const std::byte* from, DataType type, std::uint64_t i) {
  switch (type) {
    case DataType::kF16:
      return f16_to_float(element<std::uint16_t>(from, i));
    case DataType::kBf16:
      return bf16_to_float(element<std::uint16_t>(from, i));
    case DataType::kF8e4m3:
      return f8e4m3_to_float(element<std::uint8_t>(from, i));
    default:
      return element<float>(from, i);
  }
}

void store_element(std::byte* to, DataType type, std::uint64_t i, float value) {
  switch (type) {
    case DataType::kF16:
      set_element(to, i, float_to_f16(value));
      break;
    case DataType::kBf16:
      set_element(to, i, float_to_bf16(value));
      break;
    case DataType::kF8e4m3:
      set_element(to, i, float_to_f8e4m3(value));
      break;
    default:
      set_element(to, i, value);
  }
}

std::span<cuda::FunctionObject> kernels() {
  static std::array result{
      cuda::FunctionObject{"foretune_fill", bind_fill},
      cuda::FunctionObject{"foretune_widen", bind_widen},
      cuda::FunctionObject{"foretune_gelu", bind_gelu},
      cuda::FunctionObject{"foretune_compare", bind_compare},
      cuda::FunctionObject{"foretune_conv", bind_conv},
      cuda::FunctionObject{"foretune_conv_epilogue", bind_conv_epilogue},
  };
  return result;
}

}  // namespace foretune::fake_gpu
