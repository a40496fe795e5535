#include "foretune/dispatch/sgemm.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "foretune/base/fork.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

// Returns true when `trans` makes op(X) a transpose. Real numbers are their own conjugates.
bool is_trans(int trans) { return trans == FORETUNE_TRANS || trans == FORETUNE_CONJ_TRANS; }
bool is_known(int trans) { return trans == FORETUNE_NO_TRANS || is_trans(trans); }

// A matrix in memory: `lines` pieces of `length` elements, `stride` apart.
struct Extent {
  const float* start = nullptr;
  std::ptrdiff_t lines = 0;
  std::ptrdiff_t length = 0;
  std::ptrdiff_t stride = 0;
  [[nodiscard]] std::uintptr_t begin(std::ptrdiff_t line) const {
    return reinterpret_cast<std::uintptr_t>(start) +
           static_cast<std::uintptr_t>(line * stride) * sizeof(float);
  }
  [[nodiscard]] std::uintptr_t end(std::ptrdiff_t line) const {
    return begin(line) + static_cast<std::uintptr_t>(length) * sizeof(float);
  }
};

// Returns true when two matrices share a byte. Matrices side by side in one array share none,
// although their ranges of addresses overlap.
bool overlap(const Extent& x, const Extent& y) {
  if (x.lines == 0 || x.length == 0 || y.lines == 0 || y.length == 0 ||
      x.begin(0) >= y.end(y.lines - 1) || y.begin(0) >= x.end(x.lines - 1)) {
    return false;
  }
  // Both are sorted, so each step skips the line that ends first.
  std::ptrdiff_t i = 0;
  std::ptrdiff_t j = 0;
  while (i < x.lines && j < y.lines) {
    if (x.begin(i) < y.end(j) && y.begin(j) < x.end(i)) {
      return true;
    }
    if (x.end(i) <= y.end(j)) {
      ++i;
    } else {
      ++j;
    }
  }
  return false;
}

std::atomic<int>& allowed_threads() {
  static std::atomic<int> threads{0};
  return threads;
}

constexpr int kMaxThreads = 64;

// Returns the number of cores of the process at the first call, whatever cores the calling thread
// is bound to.
int all_cores() {
  static std::atomic<int> known{0};
  int count = known.load(std::memory_order_relaxed);
  if (count == 0) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    const bool is_known = ::sched_getaffinity(::getpid(), sizeof cores, &cores) == 0;
    count = std::clamp(is_known ? CPU_COUNT(&cores) : 1, 1, kMaxThreads);
    known.store(count, std::memory_order_relaxed);
  }
  return count;
}

// Returns the dispatcher for a number of threads, which is made when it is first needed, and kept.
GemmDispatcher* dispatcher_of(int threads) {
  static std::array<std::atomic<GemmDispatcher*>, kMaxThreads + 1> known{};
  static ForkSafeMutex mutex;
  threads = threads == 0 ? all_cores() : std::clamp(threads, 1, all_cores());
  std::atomic<GemmDispatcher*>& place = known[static_cast<std::size_t>(threads)];
  if (GemmDispatcher* ready = place.load(std::memory_order_acquire)) {
    return ready;
  }
  const std::lock_guard lock(mutex);
  if (GemmDispatcher* ready = place.load(std::memory_order_acquire)) {
    return ready;
  }
  auto made = GemmDispatcher::for_this_cpu({.threads = threads});
  if (!made) {  // this thread is bound to fewer cores than the process
    made = GemmDispatcher::for_this_cpu({.threads = 1});
  }
  if (!made) {
    return nullptr;
  }
  // The dispatcher is never freed: threads of the program may still multiply while it exits.
  place.store(made->release(), std::memory_order_release);
  return place.load(std::memory_order_relaxed);
}

// C = beta * C.
void scale(float* c, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t stride,
           float beta) {
  for (std::ptrdiff_t i = 0; i < rows && beta != 1.0F; ++i) {
    float* const row = c + i * stride;
    if (beta == 0.0F) {
      std::fill_n(row, columns, 0.0F);
      continue;
    }
    for (std::ptrdiff_t j = 0; j < columns; ++j) {
      row[j] *= beta;
    }
  }
}

// A product with a row-major C.
struct RowMajor {
  bool trans_a = false;
  bool trans_b = false;
  int m = 0;
  int n = 0;
  int k = 0;
  const float* a = nullptr;
  int lda = 0;
  const float* b = nullptr;
  int ldb = 0;
};

// The properties of a product on which the choice of its kernel depends.
struct Shape {
  int m = 0;
  int n = 0;
  int k = 0;
  GemmLayout layout = GemmLayout::kRrr;
  int threads = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The kernels that a thread of the program has used lately. Finding a kernel here takes some
// nanoseconds; a look-up in the dispatcher takes longer than a tiny product itself.
class RecentKernels {
 public:
  // Returns null when the shape has no kernel.
  const CpuGemmKernel* find(const Shape& shape) {
    Recent& recent = recent_[place_of(shape)];
    if (recent.kernel == nullptr || recent.shape != shape) {
      const auto problem =
          GemmProblem::create({.m = shape.m, .n = shape.n, .k = shape.k, .layout = shape.layout});
      GemmDispatcher* const dispatcher = dispatcher_of(shape.threads);
      if (!problem || dispatcher == nullptr) {
        return nullptr;
      }
      auto kernel = dispatcher->kernel(*problem);
      if (!kernel) {
        return nullptr;
      }
      recent = {shape, *std::move(kernel)};
    }
    return recent.kernel.get();
  }

 private:
  struct Recent {
    Shape shape;
    std::shared_ptr<const CpuGemmKernel> kernel;
  };
  static constexpr unsigned kPlacesLog2 = 7;
  static std::size_t place_of(const Shape& shape) {
    // Multiplicative hashing (Knuth): the upper bits are mixed best.
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
    std::uint64_t hash = 0;
    for (const int value :
         {shape.m, shape.n, shape.k, static_cast<int>(shape.layout) + 8 * shape.threads}) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * kFactor;
    }
    return hash >> (64U - kPlacesLog2);
  }
  std::array<Recent, std::size_t{1} << kPlacesLog2> recent_;
};

int multiply(const RowMajor& p, float alpha, float beta, float* c, int ldc) {
  thread_local RecentKernels kernels;
  const Extent of_c{c, p.m, p.n, ldc};
  const Extent of_a{p.a, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.lda};
  const Extent of_b{p.b, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.ldb};
  if (overlap(of_c, of_a) || overlap(of_c, of_b)) {
    return FORETUNE_SGEMM_OVERLAP;
  }
  const GemmLayout layout = p.trans_a ? (p.trans_b ? GemmLayout::kCcr : GemmLayout::kCrr)
                                      : (p.trans_b ? GemmLayout::kRcr : GemmLayout::kRrr);
  const CpuGemmKernel* const kernel =
      kernels.find({p.m, p.n, p.k, layout, allowed_threads().load(std::memory_order_relaxed)});
  if (kernel == nullptr) {
    return FORETUNE_SGEMM_UNSUPPORTED;
  }
  const Status status = kernel->run({.a = p.a,
                                     .a_stride = p.lda,
                                     .b = p.b,
                                     .b_stride = p.ldb,
                                     .c_in = c,
                                     .c_in_stride = ldc,
                                     .c = c,
                                     .c_stride = ldc,
                                     .alpha = alpha,
                                     .beta = beta});
  return status ? 0 : FORETUNE_SGEMM_NO_MEMORY;
}

// Returns the position of the first wrong argument, or 0.
int first_wrong(int order, int trans_a, int trans_b, int m, int n, int k, const float* a, int lda,
                const float* b, int ldb, const float* c, int ldc, bool reads_operands) {
  const bool rows = order == FORETUNE_ROW_MAJOR;
  const auto least = [&](bool trans, int along, int across) {
    return std::max(1, rows != trans ? across : along);
  };
  const bool wrong[] = {
      !rows && order != FORETUNE_COLUMN_MAJOR,
      !is_known(trans_a),
      !is_known(trans_b),
      m < 0,
      n < 0,
      k < 0,
      false,
      reads_operands && a == nullptr,
      lda < least(is_trans(trans_a), m, k),
      reads_operands && b == nullptr,
      ldb < least(is_trans(trans_b), k, n),
      false,
      m > 0 && n > 0 && c == nullptr,
      ldc < std::max(1, rows ? n : m),
  };
  const auto* const first = std::find(std::begin(wrong), std::end(wrong), true);
  return first == std::end(wrong) ? 0 : static_cast<int>(first - std::begin(wrong)) + 1;
}

}  // namespace
}  // namespace foretune

int foretune_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                   const float* a, int lda, const float* b, int ldb, float beta, float* c,
                   int ldc) {
  using namespace foretune;  // NOLINT(google-build-using-namespace)
  const bool reads_operands = m > 0 && n > 0 && k > 0 && alpha != 0.0F;
  const int wrong =
      first_wrong(order, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, reads_operands);
  if (wrong != 0) {
    return wrong;
  }
  if (m == 0 || n == 0) {
    return 0;
  }
  // A column-major product is the row-major product of the transposes in reverse order.
  if (order == FORETUNE_COLUMN_MAJOR) {
    std::swap(m, n);
    std::swap(a, b);
    std::swap(lda, ldb);
    std::swap(trans_a, trans_b);
  }
  if (!reads_operands) {
    scale(c, m, n, ldc, beta);
    return 0;
  }
  try {
    return multiply({.trans_a = is_trans(trans_a),
                     .trans_b = is_trans(trans_b),
                     .m = m,
                     .n = n,
                     .k = k,
                     .a = a,
                     .lda = lda,
                     .b = b,
                     .ldb = ldb},
                    alpha, beta, c, ldc);
  } catch (const std::exception&) {  // the standard library's, when memory is short
    return FORETUNE_SGEMM_NO_MEMORY;
  }
}

int foretune_set_num_threads(int threads) {
  using namespace foretune;  // NOLINT(google-build-using-namespace)
  const int used = threads <= 0 ? all_cores() : std::min(threads, all_cores());
  allowed_threads().store(used);
  return used;
}
