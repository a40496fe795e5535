// Products of sparse matrices in memory, with kernels that a dispatcher chooses.
//
//   FORETUNE_TRY(const auto dispatcher, SparseDispatcher::for_this_cpu({}));
//   FORETUNE_TRY(sparse::Csr<float> csr,
//                sparse::csr_from_arrays<float>(rows, columns, starts, column_of, values));
//   FORETUNE_TRY(const auto matrix, dispatcher->matrix(std::move(csr)));
//   FORETUNE_TRY_STATUS(matrix->spmv(x, y));
//   FORETUNE_TRY_STATUS(matrix->spmm(128, b, c));
//
// The first product of an operation and a width decides the config and packs the matrix as it wants
// it; later ones only multiply. Where a model is shipped for the CPU and the number of threads, it
// picks, unless measured choices or trials know a better config. Elsewhere the family's textbook
// config runs. While the dispatcher measures, each config on trial gets a packed matrix of its own,
// before its clock starts.
//
// Thread safety: any number of threads may use a dispatcher and a matrix; products with several
// threads take turns. Cost: a known product takes an uncontended lock beside the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/families/sparse_cpu/sparse_plan.h"
#include "foretune/family/family.h"
#include "foretune/kernels/shared_cpu.h"
#include "foretune/problem/payload.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/csr.h"

namespace foretune {

template <class T>
class SparseMatrix;

// How often a matrix is multiplied. To describe it for a model and to pack it costs as much as many
// products with a vector.
enum class SparseUse : std::uint8_t {
  kOften,
  kOnce,  // the textbook config runs, which packs nothing; nothing is described or measured
};

class SparseDispatcher {
 public:
  // Makes a dispatcher with sparse-cpu for this machine. Takes as long as reading a model (about
  // 20 ms); nothing is measured. Errors: kMismatch for a model of another family, kInvalidArgument
  // for more threads than cores.
  static Result<std::unique_ptr<SparseDispatcher>> for_this_cpu(CpuDispatchOptions options);

  // Takes a matrix, which must not outlive this. T is float or double. With a model, a matrix of
  // many uses is described first, which takes 10 ns a non-zero; matrices of one pattern share the
  // description. Errors: kUnsupported for sizes beyond those of problems, and where memory is
  // lacking.
  template <class T>
  Result<std::unique_ptr<SparseMatrix<T>>> matrix(sparse::Csr<T> csr,
                                                  SparseUse use = SparseUse::kOften);

  // Reads a data set whose problems name files, as those of `foretune tune` and `foretune collect`
  // do: matrices of these files' patterns get the fastest configs. Finds the files in `folders` and
  // reads zipped ones where it gets a function for them. Returns how many choices were taken over.
  // Errors: those of Dispatcher::load_choices() and PayloadStore; kNotFound for a file that the
  // folders lack.
  Result<std::size_t> load_choices(const std::filesystem::path& path,
                                   std::span<const std::string> folders,
                                   InflateGzip inflate = nullptr);

  // Gives access to decisions and measured choices, for matrices of many uses.
  Dispatcher& dispatcher() { return dispatcher_; }

 private:
  template <class T>
  friend class SparseMatrix;

  SparseDispatcher(std::shared_ptr<const Family> family, const DispatchOptions& options,
                   bool has_model);
  Result<std::shared_ptr<const PayloadDescriptor>> describe(const sparse::PatternView& pattern,
                                                            const Digest& digest);

  std::shared_ptr<const Family> family_;
  Dispatcher dispatcher_;
  Dispatcher textbook_;  // without a model and trials, for matrices of one use
  SharedPool pool_;
  bool has_model_;
  ForkSafeMutex mutex_;
  // Under the mutex; the matrices own them.
  std::map<Digest, std::weak_ptr<const PayloadDescriptor>> descriptors_;
};

// Dense operands are stored by rows, without gaps, and do not overlap the result.
template <class T>
class SparseMatrix {
 public:
  // y = A x: x has a value for each column, y for each row. Errors of all products:
  // kInvalidArgument for a missing operand and a result that overlaps one, kUnsupported where
  // nothing runs the product and where memory is lacking; the result is then undefined.
  Status spmv(const T* x, T* y);
  // C = A B: B has a row of n values for each column of A, and C for each row.
  Status spmm(std::int64_t n, const T* b, T* c);
  // D = A * (B C^T) at the non-zeros of A: B has a row of n values for each row of A, and C for
  // each column. D has a value for each non-zero, in their order.
  Status sddmm(std::int64_t n, const T* b, const T* c, T* d);

  [[nodiscard]] const sparse::Csr<T>& csr() const { return csr_; }
  // Returns what runs a product, and why; n is 1 for spmv. Errors: as the products, and
  // kUnsupported for a matrix without non-zeros, which nothing runs.
  Result<Decision> decision(SparseOperation operation, std::int64_t n);

 private:
  friend class SparseDispatcher;
  using Kernel = std::shared_ptr<const SparseCpuConfig>;
  struct Packed {
    Kernel kernel;
    sparse_cpu::SparsePlan<T> plan;
  };
  // One operation with one width.
  struct Product {
    explicit Product(const SparseProblem& typed) : problem(typed), asked(typed.to_problem()) {}
    SparseProblem problem;
    Problem asked;
    // Under the matrix' mutex.
    std::shared_ptr<const Packed> settled;  // null while the dispatcher may still change its mind
    std::vector<std::shared_ptr<const Packed>> on_trial;
  };
  // Products that a matrix keeps packed; beyond this number, those that came first are packed anew
  // when they come back.
  static constexpr std::size_t kMaxProducts = 16;

  SparseMatrix(SparseDispatcher& owner, Dispatcher& dispatcher, sparse::Csr<T> csr,
               const SparseSizes& sizes, std::shared_ptr<const PayloadDescriptor> descriptor)
      : owner_(owner),
        dispatcher_(dispatcher),
        csr_(std::move(csr)),
        sizes_(sizes),
        descriptor_(std::move(descriptor)) {}
  Result<std::shared_ptr<Product>> product(SparseOperation operation, std::int64_t n);
  Result<std::shared_ptr<const Packed>> packed_for(Product& product, const Kernel& kernel,
                                                   bool is_final);
  Status run(SparseOperation operation, std::int64_t n,
             const sparse_cpu::SparseOperands<T>& operands);
  Status run_plan(const Packed& packed, const sparse_cpu::SparseOperands<T>& operands);

  SparseDispatcher& owner_;
  Dispatcher& dispatcher_;  // one of the owner's
  sparse::Csr<T> csr_;
  SparseSizes sizes_;                                    // of all products but operation and width
  std::shared_ptr<const PayloadDescriptor> descriptor_;  // null without a model
  ForkSafeMutex mutex_;
  std::vector<std::shared_ptr<Product>> products_;  // under the mutex, the oldest first
};

extern template class SparseMatrix<float>;
extern template class SparseMatrix<double>;

}  // namespace foretune
