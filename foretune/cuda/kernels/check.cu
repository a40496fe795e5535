// Kernels of gpu::Device, as CUDA C++. What is built into the library is the PTX made of them by
// scripts/make_gpu_kernels.sh (check.txt beside this file), so that building needs no CUDA.
// One thread an element, in a loop over the grid. Types are numbered as foretune::DataType.
#include <cstdint>

#include "../conv_shape.h"

namespace {

constexpr unsigned kF16 = 1;
constexpr unsigned kBf16 = 2;
constexpr unsigned kTf32 = 4;
constexpr unsigned kF8e4m3 = 5;

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
__device__ uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

__device__ uint64_t position() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint64_t step() { return uint64_t(gridDim.x) * blockDim.x; }

__device__ float half_to_float(uint16_t bits) {
  float value;
  asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(bits));
  return value;
}
__device__ uint16_t float_to_half(float value) {
  uint16_t bits;
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ float f8_to_float(uint8_t bits) {
  const unsigned exponent = (bits >> 3) & 15;
  const unsigned mantissa = bits & 7;
  const float sign = (bits & 128) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7) {
    return __int_as_float(0x7fffffff);
  }
  if (exponent == 0) {
    return sign * float(mantissa) * 0x1p-9f;
  }
  return sign * __int_as_float(int((exponent + 120) << 23 | mantissa << 20));
}
// Of multiples of 1/8 in [-1, 1), all of which are normal numbers or 0.
__device__ uint8_t float_to_f8(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value == 0) {
    return 0;
  }
  return uint8_t((bits >> 24 & 128) | ((bits >> 23 & 255) - 120) << 3 | (bits >> 20 & 7));
}

__device__ float load(const void* from, unsigned type, uint64_t i) {
  switch (type) {
    case kF16:
      return half_to_float(static_cast<const uint16_t*>(from)[i]);
    case kBf16:
      return __uint_as_float(unsigned(static_cast<const uint16_t*>(from)[i]) << 16);
    case kF8e4m3:
      return f8_to_float(static_cast<const uint8_t*>(from)[i]);
    default:
      return static_cast<const float*>(from)[i];
  }
}

__device__ int value_bits(unsigned type) {
  switch (type) {
    case kF16:
    case kTf32:
      return 11;
    case kBf16:
      return 8;
    case kF8e4m3:
      return 4;
    default:
      return 24;
  }
}

struct Difference {
  unsigned long long count;
  unsigned long long first;
};

// A convolution is a product of matrices for every group: rows x depth times depth x columns.
// Forward: output points x filters over (tap, channel). Input's gradient: input points x channels
// over (tap, filter). Weights' gradient: filters x (tap, channel) over output points.
using foretune::cuda::ConvShape;
constexpr int kForward = 0;
constexpr int kBackwardData = 1;
constexpr int kTile = 64;      // rows and columns of a block's part of the result
constexpr int kDepth = 16;     // of a step
constexpr int kPerThread = 4;  // rows and columns
constexpr int kStepsToWiden = 16;

struct Place {
  int n;
  int at[3];
};

__device__ Place split_point(unsigned point, const std::int32_t* sizes) {
  Place place;
  place.at[2] = int(point % unsigned(sizes[2]));
  point /= unsigned(sizes[2]);
  place.at[1] = int(point % unsigned(sizes[1]));
  point /= unsigned(sizes[1]);
  place.at[0] = int(point % unsigned(sizes[0]));
  place.n = int(point / unsigned(sizes[0]));
  return place;
}

__device__ std::int64_t image_at(const ConvShape& shape, const std::int32_t* sizes, int channels,
                                 int n, int channel, int d, int h, int w) {
  const std::int64_t point = (std::int64_t(d) * sizes[1] + h) * sizes[2] + w;
  const std::int64_t points = std::int64_t(sizes[0]) * sizes[1] * sizes[2];
  return shape.channels_last != 0 ? (n * points + point) * channels + channel
                                  : (std::int64_t(n) * channels + channel) * points + point;
}

__device__ std::int64_t weight_at(const ConvShape& shape, int filter, int channel, int tap) {
  const int taps = shape.filter[0] * shape.filter[1] * shape.filter[2];
  return shape.channels_last != 0 ? (std::int64_t(filter) * taps + tap) * shape.c + channel
                                  : (std::int64_t(filter) * shape.c + channel) * taps + tap;
}

// Adds a tap's offset to an output point; false outside of the input.
__device__ bool input_place(const ConvShape& shape, const Place& out, const Place& tap, int* at) {
  for (int i = 0; i < 3; ++i) {
    at[i] = out.at[i] * shape.stride[i] - shape.pad[i] + tap.at[i] * shape.dilation[i];
    if (at[i] < 0 || at[i] >= shape.in[i]) {
      return false;
    }
  }
  return true;
}

// The output point that a tap leads from to an input point; false when there is none.
__device__ bool output_place(const ConvShape& shape, const Place& in, const Place& tap, int* at) {
  for (int i = 0; i < 3; ++i) {
    const int distance = in.at[i] + shape.pad[i] - tap.at[i] * shape.dilation[i];
    at[i] = distance / shape.stride[i];
    if (distance < 0 || distance % shape.stride[i] != 0 || at[i] >= shape.out[i]) {
      return false;
    }
  }
  return true;
}

struct Operands {
  const float* input;
  const float* weights;
  const float* output;
};

__device__ float output_value(const ConvShape& shape, const Operands& from, const Place& place,
                              int filter) {
  return from.output[image_at(shape, shape.out, shape.groups * shape.k, place.n, filter,
                              place.at[0], place.at[1], place.at[2])];
}

__device__ float input_value(const ConvShape& shape, const Operands& from, const Place& out,
                             const Place& tap, int channel) {
  int at[3];
  return input_place(shape, out, tap, at)
             ? from.input[image_at(shape, shape.in, shape.groups * shape.c, out.n, channel, at[0],
                                   at[1], at[2])]
             : 0.0f;
}

}  // namespace

extern "C" __global__ void foretune_fill(void* to, unsigned type, uint64_t count, uint64_t seed) {
  const int bits = value_bits(type);
  const float scale = 1.0f / float(1 << (bits - 1));
  for (uint64_t i = position(); i < count; i += step()) {
    const int whole = int(mix(seed + i) >> (64 - bits)) - (1 << (bits - 1));
    const float value = float(whole) * scale;
    switch (type) {
      case kF16:
        static_cast<uint16_t*>(to)[i] = float_to_half(value);
        break;
      case kBf16:
        static_cast<uint16_t*>(to)[i] = uint16_t(__float_as_uint(value) >> 16);
        break;
      case kF8e4m3:
        static_cast<uint8_t*>(to)[i] = float_to_f8(value);
        break;
      default:
        static_cast<float*>(to)[i] = value;
    }
  }
}

extern "C" __global__ void foretune_widen(const void* from, unsigned type, uint64_t count,
                                          float* to) {
  for (uint64_t i = position(); i < count; i += step()) {
    to[i] = load(from, type, i);
  }
}

// GELU in its tanh form: x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))).
extern "C" __global__ void foretune_gelu(float* values, uint64_t count) {
  for (uint64_t i = position(); i < count; i += step()) {
    const float x = values[i];
    values[i] = x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
  }
}

extern "C" __global__ void foretune_compare(const void* found, unsigned type, const float* wanted,
                                            uint64_t count, float absolute, float relative,
                                            Difference* difference) {
  for (uint64_t i = position(); i < count; i += step()) {
    const float value = load(found, type, i);
    const bool near = fabsf(value - wanted[i]) <= absolute + relative * fabsf(wanted[i]);
    if (!near) {
      atomicAdd(&difference->count, 1ULL);
      atomicMin(&difference->first, (unsigned long long)i);
    }
  }
}

// Computes the output of the operation in f32, each sum in parts of 256 products that are added in
// double precision. Grid: rows, columns, groups x parts. With several parts of the depth the output
// has to be 0 before. 256 threads.
extern "C" __global__ void foretune_conv(const float* input, const float* weights,
                                         const float* output, float* to, const ConvShape given,
                                         unsigned parts) {
  // Its arrays are indexed, which parameters do not allow without a copy for every thread.
  __shared__ ConvShape shape;
  if (threadIdx.x == 0) {
    shape = given;
  }
  __syncthreads();
  __shared__ float left[kDepth][kTile + 1];
  __shared__ float right[kDepth][kTile + 1];
  const Operands from{input, weights, output};
  const int group = int(blockIdx.z / parts);
  const unsigned part = blockIdx.z % parts;
  const unsigned taps = unsigned(shape.filter[0] * shape.filter[1] * shape.filter[2]);
  const unsigned in_points = unsigned(shape.in[0] * shape.in[1] * shape.in[2]) * unsigned(shape.n);
  const unsigned out_points =
      unsigned(shape.out[0] * shape.out[1] * shape.out[2]) * unsigned(shape.n);
  const bool forward = shape.operation == kForward;
  const bool to_input = shape.operation == kBackwardData;
  const unsigned rows = forward ? out_points : to_input ? in_points : unsigned(shape.k);
  const unsigned columns =
      forward ? unsigned(shape.k) : to_input ? unsigned(shape.c) : taps * unsigned(shape.c);
  const unsigned depth =
      forward ? taps * unsigned(shape.c) : to_input ? taps * unsigned(shape.k) : out_points;
  // All parts have a multiple of kDepth but the last.
  const unsigned steps = (depth + kDepth - 1) / kDepth;
  const unsigned each = (steps + parts - 1) / parts;
  const unsigned begin = min(depth, part * each * kDepth);
  const unsigned end = min(depth, begin + each * kDepth);

  const int thread = int(threadIdx.x);
  // A thread loads one row of the left and one column of the right operand, in four depths.
  const int lane = thread % kTile;
  const int first_depth = thread / kTile;
  const unsigned my_row = blockIdx.x * kTile + unsigned(lane);
  const unsigned my_column = blockIdx.y * kTile + unsigned(lane);
  const Place row_place = split_point(my_row < rows ? my_row : 0, forward ? shape.out : shape.in);
  const Place column_tap =
      split_point((my_column < columns ? my_column : 0) / unsigned(shape.c), shape.filter);
  const int column_channel = int(my_column % unsigned(shape.c));

  float sums[kPerThread][kPerThread] = {};
  double wide[kPerThread][kPerThread] = {};
  const int row0 = thread / 16 * kPerThread;
  const int column0 = thread % 16 * kPerThread;
  int step = 0;
  for (unsigned base = begin; base < end; base += kDepth) {
    for (int i = first_depth; i < kDepth; i += 256 / kTile) {
      const unsigned at = base + unsigned(i);
      float a = 0;
      float b = 0;
      if (at < end) {
        if (forward || to_input) {
          const unsigned inner = unsigned(forward ? shape.c : shape.k);
          const unsigned tap_index = at / inner;
          const int channel = int(at % inner);
          const Place tap = split_point(tap_index, shape.filter);
          if (my_row < rows && forward) {
            a = input_value(shape, from, row_place, tap, group * shape.c + channel);
          } else if (my_row < rows) {
            Place place{row_place.n, {0, 0, 0}};
            if (output_place(shape, row_place, tap, place.at)) {
              a = output_value(shape, from, place, group * shape.k + channel);
            }
          }
          if (my_column < columns) {
            b = weights[forward ? weight_at(shape, group * shape.k + int(my_column), channel,
                                            int(tap_index))
                                : weight_at(shape, group * shape.k + channel, int(my_column),
                                            int(tap_index))];
          }
        } else {
          const Place place = split_point(at, shape.out);
          if (my_row < rows) {
            a = output_value(shape, from, place, group * shape.k + int(my_row));
          }
          if (my_column < columns) {
            b = input_value(shape, from, place, column_tap, group * shape.c + column_channel);
          }
        }
      }
      left[i][lane] = a;
      right[i][lane] = b;
    }
    __syncthreads();
    for (int i = 0; i < kDepth; ++i) {
      for (int r = 0; r < kPerThread; ++r) {
        for (int c = 0; c < kPerThread; ++c) {
          sums[r][c] = fmaf(left[i][row0 + r], right[i][column0 + c], sums[r][c]);
        }
      }
    }
    __syncthreads();
    if (++step == kStepsToWiden) {
      step = 0;
      for (int r = 0; r < kPerThread; ++r) {
        for (int c = 0; c < kPerThread; ++c) {
          wide[r][c] += double(sums[r][c]);
          sums[r][c] = 0;
        }
      }
    }
  }
  for (int r = 0; r < kPerThread; ++r) {
    for (int c = 0; c < kPerThread; ++c) {
      const unsigned row = blockIdx.x * kTile + unsigned(row0 + r);
      const unsigned column = blockIdx.y * kTile + unsigned(column0 + c);
      if (row >= rows || column >= columns) {
        continue;
      }
      std::int64_t at;
      if (forward || to_input) {
        const std::int32_t* const sizes = forward ? shape.out : shape.in;
        const int channels = forward ? shape.k : shape.c;
        const Place place = split_point(row, sizes);
        at = image_at(shape, sizes, shape.groups * channels, place.n,
                      group * channels + int(column), place.at[0], place.at[1], place.at[2]);
      } else {
        at = weight_at(shape, group * shape.k + int(row), int(column % unsigned(shape.c)),
                       int(column / unsigned(shape.c)));
      }
      const float value = float(wide[r][c] + double(sums[r][c]));
      if (parts > 1) {
        atomicAdd(&to[at], value);
      } else {
        to[at] = value;
      }
    }
  }
}

// Finishes the sums of a forward pass: adds a bias of the channel and, unless it is null, a tensor
// of the same shape, then takes the larger of the sum and 0. `inner`: the elements between two
// channels.
extern "C" __global__ void foretune_conv_epilogue(float* values, uint64_t count, const float* bias,
                                                  unsigned channels, uint64_t inner,
                                                  const float* added, unsigned relu) {
  for (uint64_t i = position(); i < count; i += step()) {
    float value = values[i] + bias[i / inner % channels];
    if (added != nullptr) {
      value += added[i];
    }
    values[i] = relu != 0 ? fmaxf(value, 0.0f) : value;
  }
}
