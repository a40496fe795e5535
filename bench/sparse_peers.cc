#include "bench/sparse_peers.h"

#include <utility>

#include "bench/gemm_peer_parts.h"
#include "bench/sparse_peer_parts.h"
#include "foretune/base/text.h"

// Weak, because the peers with threads may be missing.
extern "C" __attribute__((weak)) void omp_set_num_threads(int threads);  // NOLINT(*-naming)

namespace foretune {
namespace {

// The numbers of MKL's inspector-executor interface, as its reference names them.
constexpr int kNotTransposed = 10;
constexpr int kZeroBased = 0;
constexpr int kRowMajor = 101;
constexpr int kMayUseMemory = 81;
constexpr int kExpectedCalls = 100000;
struct MklDescription {
  int type = 20;  // general
  int mode = 0;
  int diagonal = 0;
};

// MKL's inspector-executor: told the products to come, it chooses a form of the matrix for them.
class SparseMkl final : public SparsePeer {
 public:
  static Result<std::unique_ptr<SparsePeer>> open(int threads) {
    FORETUNE_TRY(Mkl mkl, open_mkl(threads));
    std::unique_ptr<SparseMkl> peer(new SparseMkl(std::move(mkl)));
    if (!peer->find_functions()) {
      return fail(ErrorCode::kUnsupported, "a function of MKL is missing");
    }
    return peer;
  }

  std::string name() const override { return mkl_.name; }
  std::string library() const override { return "mkl"; }

  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    if (p.operation == SparseOperation::kSddmm) {
      return {};
    }
    const sparse::Csr<float>& matrix = *p.matrix;
    const auto held = std::make_shared<Held>();
    held->starts = starts_as<int>(matrix);
    held->destroy = destroy_;
    // It takes changeable arrays and does not change them. NOLINTBEGIN(*-const-cast)
    const int made = create_(&held->matrix, kZeroBased, static_cast<int>(matrix.rows),
                             static_cast<int>(matrix.columns), held->starts.data(),
                             held->starts.data() + 1, const_cast<int*>(matrix.column_of.data()),
                             const_cast<float*>(matrix.values.data()));
    // NOLINTEND(*-const-cast)
    if (made != 0) {
      return {};
    }
    const auto width = static_cast<int>(p.width);
    const bool is_vector = p.operation == SparseOperation::kSpmv;
    if (is_vector) {
      hint_vector_(held->matrix, kNotTransposed, {}, kExpectedCalls);
    } else {
      hint_matrix_(held->matrix, kNotTransposed, {}, kRowMajor, width, kExpectedCalls);
    }
    hint_memory_(held->matrix, kMayUseMemory);
    // A matrix that it has nothing better for is no error.
    optimise_(held->matrix);
    if (is_vector) {
      return {.run =
                  [held, p, multiply = multiply_vector_] {
                    multiply(kNotTransposed, 1.0F, held->matrix, {}, p.first, 0.0F, p.output);
                  },
              .finish = {}};
    }
    return {.run =
                [held, p, width, multiply = multiply_matrix_] {
                  multiply(kNotTransposed, 1.0F, held->matrix, {}, kRowMajor, p.first, width, width,
                           0.0F, p.output, width);
                },
            .finish = {}};
  }

 private:
  using Create = int(void** matrix, int base, int rows, int columns, int* begins, int* ends,
                     int* column_of, float* values);
  using Destroy = int(void* matrix);
  using HintVector = int(void* matrix, int operation, MklDescription, int calls);
  using HintMatrix = int(void* matrix, int operation, MklDescription, int layout, int width,
                         int calls);
  using HintMemory = int(void* matrix, int policy);
  using MultiplyVector = int(int operation, float alpha, void* matrix, MklDescription,
                             const float* x, float beta, float* y);
  using MultiplyMatrix = int(int operation, float alpha, void* matrix, MklDescription, int layout,
                             const float* b, int columns, int ldb, float beta, float* c, int ldc);

  // A matrix of MKL's and the array of ours that it reads.
  struct Held {
    Held() = default;
    ~Held() {
      if (matrix != nullptr) {
        destroy(matrix);
      }
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    void* matrix = nullptr;
    std::vector<int> starts;
    Destroy* destroy = nullptr;
  };

  explicit SparseMkl(Mkl mkl) : mkl_(std::move(mkl)) {}

  bool find_functions() {
    const PeerLibrary& library = mkl_.library;
    create_ = library.find<Create>("mkl_sparse_s_create_csr");
    destroy_ = library.find<Destroy>("mkl_sparse_destroy");
    hint_vector_ = library.find<HintVector>("mkl_sparse_set_mv_hint");
    hint_matrix_ = library.find<HintMatrix>("mkl_sparse_set_mm_hint");
    hint_memory_ = library.find<HintMemory>("mkl_sparse_set_memory_hint");
    optimise_ = library.find<Destroy>("mkl_sparse_optimize");
    multiply_vector_ = library.find<MultiplyVector>("mkl_sparse_s_mv");
    multiply_matrix_ = library.find<MultiplyMatrix>("mkl_sparse_s_mm");
    return create_ != nullptr && destroy_ != nullptr && hint_vector_ != nullptr &&
           hint_matrix_ != nullptr && hint_memory_ != nullptr && optimise_ != nullptr &&
           multiply_vector_ != nullptr && multiply_matrix_ != nullptr;
  }

  Mkl mkl_;
  Create* create_ = nullptr;
  Destroy* destroy_ = nullptr;
  HintVector* hint_vector_ = nullptr;
  HintMatrix* hint_matrix_ = nullptr;
  HintMemory* hint_memory_ = nullptr;
  Destroy* optimise_ = nullptr;
  MultiplyVector* multiply_vector_ = nullptr;
  MultiplyMatrix* multiply_matrix_ = nullptr;
};

class TacoCsr final : public SparsePeer {
 public:
  explicit TacoCsr(int threads) : threads_(threads) {}
  std::string name() const override { return "CSR as TACO generates it"; }
  std::string library() const override { return "taco_csr"; }
  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    const auto held = std::make_shared<Held>();
    held->starts = starts_as<std::int32_t>(*p.matrix);
    held->matrix = {static_cast<std::int32_t>(p.matrix->rows), held->starts.data(),
                    p.matrix->column_of.data(), p.matrix->values.data(), threads_};
    const auto width = static_cast<std::int32_t>(p.width);
    switch (p.operation) {
      case SparseOperation::kSpmv:
        return {.run = [=] { taco_spmv(held->matrix, p.first, p.output); }, .finish = {}};
      case SparseOperation::kSddmm:
        return {.run = [=] { taco_sddmm(held->matrix, p.first, p.second, width, p.output); },
                .finish = {}};
      default:
        return {.run = [=] { taco_spmm(held->matrix, p.first, width, p.output); }, .finish = {}};
    }
  }

 private:
  struct Held {
    std::vector<std::int32_t> starts;
    TacoMatrix matrix;
  };

  int threads_;
};

}  // namespace

SparsePeers load_sparse_peers(int threads) {
  if (omp_set_num_threads != nullptr) {
    omp_set_num_threads(threads);
  }
  SparsePeers peers;
  if (auto mkl = SparseMkl::open(threads)) {
    peers.found.push_back(*std::move(mkl));
  } else {
    peers.missing.push_back(concat("MKL is left out: ", mkl.error().message, "."));
  }
  const auto add = [&](const char* name, std::unique_ptr<SparsePeer> peer) {
    if (peer != nullptr) {
      peers.found.push_back(std::move(peer));
    } else {
      peers.missing.push_back(concat(name, " is left out: it was not found when this was built."));
    }
  };
  add("librsb", make_librsb(threads));
  add("Eigen", make_eigen(threads));
  add("GraphBLAS", make_graphblas(threads));
  if (threads == 1) {  // its kernels use one
    add("LIBXSMM", make_sparse_libxsmm());
  }
  peers.found.push_back(std::make_unique<TacoCsr>(threads));
  return peers;
}

}  // namespace foretune
