// LIBXSMM as a peer: its sparse times dense product, which it makes from a dense matrix, so that it
// is for matrices that one would hold densely as well.
#include <memory>
#include <vector>

#include "bench/sparse_peer_parts.h"
#include "foretune/base/text.h"

#ifdef FORETUNE_HAS_LIBXSMM
#include <libxsmm.h>
#endif

namespace foretune {

#ifdef FORETUNE_HAS_LIBXSMM
namespace {

// Elements of the largest dense matrix that is converted.
constexpr std::int64_t kMaxDense = std::int64_t{1} << 24U;

// A matrix in the library's own form.
struct Slices {
  Slices() = default;
  ~Slices() { libxsmm_spmdm_destroy(&handle); }
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  libxsmm_spmdm_handle handle{};
  libxsmm_CSR_sparseslice* slices = nullptr;
};

class SparseXsmm final : public SparsePeer {
 public:
  SparseXsmm() { libxsmm_init(); }
  ~SparseXsmm() override { libxsmm_finalize(); }
  std::string name() const override { return concat("LIBXSMM ", LIBXSMM_VERSION); }
  std::string library() const override { return "libxsmm"; }
  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    const sparse::Csr<float>& matrix = *p.matrix;
    if (p.operation != SparseOperation::kSpmm || matrix.rows * matrix.columns > kMaxDense) {
      return {};
    }
    std::vector<float> dense(static_cast<std::size_t>(matrix.rows * matrix.columns));
    for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
      float* const line = dense.data() + row * static_cast<std::size_t>(matrix.columns);
      for (std::int64_t i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
        line[matrix.column_of[static_cast<std::size_t>(i)]] =
            matrix.values[static_cast<std::size_t>(i)];
      }
    }
    const auto made = std::make_shared<Slices>();
    libxsmm_spmdm_init(static_cast<int>(matrix.rows), static_cast<int>(p.width),
                       static_cast<int>(matrix.columns), 1, &made->handle, &made->slices);
    const int slices = libxsmm_spmdm_get_num_createSparseSlice_blocks(&made->handle);
    for (int i = 0; i < slices; ++i) {
      libxsmm_spmdm_createSparseSlice_fp32_thread(&made->handle, 'N', dense.data(), made->slices, i,
                                                  0, 1);
    }
    const int blocks = libxsmm_spmdm_get_num_compute_blocks(&made->handle);
    return {.run =
                [made, blocks, p] {
                  const float alpha = 1;
                  const float beta = 0;
                  for (int i = 0; i < blocks; ++i) {
                    libxsmm_spmdm_compute_fp32_thread(&made->handle, 'N', 'N', &alpha, made->slices,
                                                      p.first, 'N', &beta, p.output, i, 0, 1);
                  }
                },
            .finish = {}};
  }
};

}  // namespace

std::unique_ptr<SparsePeer> make_sparse_libxsmm() { return std::make_unique<SparseXsmm>(); }

#else

std::unique_ptr<SparsePeer> make_sparse_libxsmm() { return nullptr; }

#endif

}  // namespace foretune
