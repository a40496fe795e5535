// Eigen as a peer: its expressions on mapped arrays, compiled for this CPU.
#include <memory>
#include <utility>

#include "bench/sparse_peer_parts.h"
#include "foretune/base/text.h"

#ifdef FORETUNE_HAS_EIGEN
// A compiler without OpenMP's header still checks this file.
#if defined(_OPENMP) && !__has_include(<omp.h>)
#define EIGEN_DONT_PARALLELIZE  // NOLINT(readability-identifier-naming): Eigen names it
#endif
#include <Eigen/Core>
#include <Eigen/SparseCore>
#endif

namespace foretune {

#ifdef FORETUNE_HAS_EIGEN
namespace {

using EigenMatrix = Eigen::SparseMatrix<float, Eigen::RowMajor, int>;
using EigenDense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

class EigenPeer final : public SparsePeer {
 public:
  explicit EigenPeer(int threads) { Eigen::setNbThreads(threads); }
  std::string name() const override {
    return concat("Eigen ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".",
                  EIGEN_MINOR_VERSION);
  }
  std::string library() const override { return "eigen"; }
  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    if (p.operation == SparseOperation::kSddmm) {
      return {};
    }
    const sparse::Csr<float>& matrix = *p.matrix;
    const std::vector<int> starts = starts_as<int>(matrix);
    const Eigen::Map<const EigenMatrix> mapped(static_cast<int>(matrix.rows),
                                               static_cast<int>(matrix.columns),
                                               static_cast<int>(matrix.size()), starts.data(),
                                               matrix.column_of.data(), matrix.values.data());
    const auto a = std::make_shared<EigenMatrix>(mapped);
    if (p.operation == SparseOperation::kSpmv) {
      return {.run =
                  [a, p] {
                    const Eigen::Map<const Eigen::VectorXf> x(p.first, a->cols());
                    Eigen::Map<Eigen::VectorXf> y(p.output, a->rows());
                    y.noalias() = *a * x;
                  },
              .finish = {}};
    }
    return {.run =
                [a, p] {
                  const Eigen::Map<const EigenDense> b(p.first, a->cols(), p.width);
                  Eigen::Map<EigenDense> c(p.output, a->rows(), p.width);
                  c.noalias() = *a * b;
                },
            .finish = {}};
  }
};

}  // namespace

std::unique_ptr<SparsePeer> make_eigen(int threads) { return std::make_unique<EigenPeer>(threads); }

#else

std::unique_ptr<SparsePeer> make_eigen(int /*threads*/) { return nullptr; }

#endif

}  // namespace foretune
