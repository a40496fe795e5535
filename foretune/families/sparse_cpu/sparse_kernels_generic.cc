#include "foretune/families/sparse_cpu/internal/kernel_table_inl.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"

namespace foretune::sparse_cpu {
namespace {

// Sixteen bytes, which compilers keep in a vector register where the architecture has any.
template <class T>
struct Generic {
  using Value = T;
  static constexpr int kLanes = static_cast<int>(16 / sizeof(T));
  static constexpr int kSums = 8;
  static constexpr int kBlockRegisters = 16;
  struct Vector {
    T lanes[static_cast<std::size_t>(kLanes)];
  };
  using Mask = int;  // the number of lanes
  static Mask mask(int count) { return count; }
  static Vector zero() { return {}; }
  static Vector broadcast(T value) {
    Vector out;
    for (T& lane : out.lanes) {
      lane = value;
    }
    return out;
  }
  static Vector load(const T* from) { return load(from, kLanes); }
  static Vector load(const T* from, Mask count) {
    Vector out{};
    for (int i = 0; i < count; ++i) {
      out.lanes[i] = from[i];
    }
    return out;
  }
  static void store(T* to, const Vector& value) { store(to, value, kLanes); }
  static void store(T* to, const Vector& value, Mask count) {
    for (int i = 0; i < count; ++i) {
      to[i] = value.lanes[i];
    }
  }
  static void stream(T* to, const Vector& value) { store(to, value, kLanes); }
  static void fence() {}
  static Vector fma(const Vector& a, const Vector& b, const Vector& sum) {
    Vector out;
    for (int i = 0; i < kLanes; ++i) {
      out.lanes[i] = a.lanes[i] * b.lanes[i] + sum.lanes[i];
    }
    return out;
  }
  static Vector add(const Vector& a, const Vector& b) {
    Vector out;
    for (int i = 0; i < kLanes; ++i) {
      out.lanes[i] = a.lanes[i] + b.lanes[i];
    }
    return out;
  }
  static Vector gather(const T* base, const std::int32_t* indices) {
    return gather(base, indices, kLanes);
  }
  static Vector gather(const T* base, const std::int32_t* indices, Mask count) {
    Vector out{};
    for (int i = 0; i < count; ++i) {
      out.lanes[i] = base[indices[i]];
    }
    return out;
  }
  static Vector gather_by_loads(const T* base, const std::int32_t* indices) {
    return gather(base, indices, kLanes);
  }
  static bool is_run(const std::int32_t* indices) {
    bool is_run = indices[0] >= 0;
    for (int i = 1; i < kLanes; ++i) {
      is_run = is_run && indices[i] == indices[0] + i;
    }
    return is_run;
  }
  static void sum4(const Vector* sums, T* to) {
    for (int i = 0; i < 4; ++i) {
      to[i] = sum(sums[i]);
    }
  }
  static T sum(const Vector& value) {
    T out = 0;
    for (const T lane : value.lanes) {
      out += lane;
    }
    return out;
  }
};

constexpr SparseKernels<float> kGenericF32 = kernels_of<Generic<float>>();
constexpr SparseKernels<double> kGenericF64 = kernels_of<Generic<double>>();

}  // namespace

SparseKernelTables generic_sparse_kernels() { return {&kGenericF32, &kGenericF64}; }

}  // namespace foretune::sparse_cpu
