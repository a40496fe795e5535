// librsb as a peer: its recursive blocks, chosen by its own tuner for the product.
#include <memory>

#include "bench/sparse_peer_parts.h"

#ifdef FORETUNE_HAS_LIBRSB
#include <rsb.h>
#endif

namespace foretune {

#ifdef FORETUNE_HAS_LIBRSB
namespace {

// Seconds that the tuner may take for one product.
constexpr double kTuneSeconds = 10;

class LibRsb final : public SparsePeer {
 public:
  explicit LibRsb(int threads) {
    rsb_lib_init(RSB_NULL_INIT_OPTIONS);
    const rsb_int_t count = threads;
    rsb_lib_set_opt(RSB_IO_WANT_EXECUTING_THREADS, &count);
  }
  std::string name() const override { return "librsb 1.3"; }
  std::string library() const override { return "librsb"; }
  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    if (p.operation == SparseOperation::kSddmm) {
      return {};
    }
    const sparse::Csr<float>& matrix = *p.matrix;
    const std::vector<rsb_coo_idx_t> starts = starts_as<rsb_coo_idx_t>(matrix);
    rsb_err_t error = RSB_ERR_NO_ERROR;
    rsb_mtx_t* made = rsb_mtx_alloc_from_csr_const(
        matrix.values.data(), starts.data(), matrix.column_of.data(),
        static_cast<rsb_nnz_idx_t>(matrix.size()), RSB_NUMERICAL_TYPE_FLOAT,
        static_cast<rsb_coo_idx_t>(matrix.rows), static_cast<rsb_coo_idx_t>(matrix.columns), 1, 1,
        RSB_FLAG_NOFLAGS, &error);
    if (made == nullptr || error != RSB_ERR_NO_ERROR) {
      return {};
    }
    static constexpr float kOne = 1;
    static constexpr float kZero = 0;
    const auto width = static_cast<rsb_coo_idx_t>(p.width);
    // A tuner that finds nothing better reports no error and leaves the matrix as it is.
    rsb_tune_spmm(&made, nullptr, nullptr, 0, kTuneSeconds, RSB_TRANSPOSITION_N, &kOne, nullptr,
                  width, RSB_FLAG_WANT_ROW_MAJOR_ORDER, p.first, width, &kZero, p.output, width);
    const std::shared_ptr<rsb_mtx_t> a(made, [](rsb_mtx_t* m) { rsb_mtx_free(m); });
    if (p.operation == SparseOperation::kSpmv) {
      return {.run =
                  [a, p] {
                    rsb_spmv(RSB_TRANSPOSITION_N, &kOne, a.get(), p.first, 1, &kZero, p.output, 1);
                  },
              .finish = {}};
    }
    return {.run =
                [a, p, width] {
                  rsb_spmm(RSB_TRANSPOSITION_N, &kOne, a.get(), width,
                           RSB_FLAG_WANT_ROW_MAJOR_ORDER, p.first, width, &kZero, p.output, width);
                },
            .finish = {}};
  }
};

}  // namespace

std::unique_ptr<SparsePeer> make_librsb(int threads) { return std::make_unique<LibRsb>(threads); }

#else

std::unique_ptr<SparsePeer> make_librsb(int /*threads*/) { return nullptr; }

#endif

}  // namespace foretune
