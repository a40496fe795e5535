// The factors of low rank, apart because Eigen takes long to compile.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/graph/run/reduction.h"

namespace foretune::graph {

Factors factorise(std::span<const float> matrix, std::int64_t rows, std::int64_t rank) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto columns = static_cast<std::int64_t>(matrix.size()) / rows;
  const Matrix m = Eigen::Map<const Floats>(matrix.data(), rows, columns).cast<double>();
  // The eigenvectors of the smaller product with itself are the singular vectors of that side.
  const bool is_wide = rows <= columns;
  const Matrix square = is_wide ? Matrix(m * m.transpose()) : Matrix(m.transpose() * m);
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(square);
  const Matrix vectors = solver.eigenvectors().rightCols(rank);  // eigenvalues ascend
  const Matrix left = is_wide ? vectors : Matrix(m * vectors);
  const Matrix right = is_wide ? Matrix(vectors.transpose() * m) : Matrix(vectors.transpose());
  Factors made;
  made.left.resize(static_cast<std::size_t>(rows * rank));
  made.right.resize(static_cast<std::size_t>(rank * columns));
  Eigen::Map<Floats>(made.left.data(), rows, rank) = left.cast<float>();
  Eigen::Map<Floats>(made.right.data(), rank, columns) = right.cast<float>();
  return made;
}

}  // namespace foretune::graph
