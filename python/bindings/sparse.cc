// Bindings for products of sparse matrices with NumPy's arrays, with kernels that the dispatcher
// chooses.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dispatch/sparse_dispatch.h"
#include "foretune/formats/gzip.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/csr.h"
#include "python/bindings/bindings.h"
#include "python/bindings/cpu_dispatcher.h"

namespace foretune::python {
namespace {

template <class T>
using Given = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Computed = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class A>
auto view(const A& array) {
  return std::span(array.data(), array.size());
}

template <class T, class I>
std::unique_ptr<SparseMatrix<T>> take(SparseDispatcher& dispatcher, std::int64_t rows,
                                      std::int64_t columns, const Given<I>& starts,
                                      const Given<I>& column_of, const Given<T>& values,
                                      bool is_once) {
  return checked(without_lock([&]() -> Result<std::unique_ptr<SparseMatrix<T>>> {
    FORETUNE_TRY(sparse::Csr<T> csr,
                 (sparse::csr_from_arrays<T, I>(rows, columns, view(starts), view(column_of),
                                                view(values))));
    return dispatcher.matrix(std::move(csr), is_once ? SparseUse::kOnce : SparseUse::kOften);
  }));
}

// An array of another size would let a kernel leave its memory.
template <class A>
void check_size(const char* name, const A& array, std::int64_t wanted) {
  if (array.size() != static_cast<std::size_t>(wanted)) {
    raise({ErrorCode::kInvalidArgument,
           concat(name, " has ", array.size(), " elements; the product wants ", wanted)});
  }
}

// Returns the length of the rows of an array, 1 for a vector.
template <class A>
std::int64_t width_of(const A& array) {
  return array.ndim() < 2 ? 1 : static_cast<std::int64_t>(array.shape(1));
}

template <class T>
void run_spmv(SparseMatrix<T>& matrix, const Given<T>& x, const Computed<T>& y) {
  check_size("the vector", x, matrix.csr().columns);
  check_size("the result", y, matrix.csr().rows);
  checked(with_callbacks([&] { return matrix.spmv(x.data(), y.data()); }));
}

template <class T>
void run_spmm(SparseMatrix<T>& matrix, const Given<T>& b, const Computed<T>& c) {
  const std::int64_t n = width_of(b);
  check_size("the dense operand", b, matrix.csr().columns * n);
  check_size("the result", c, matrix.csr().rows * n);
  checked(with_callbacks([&] { return matrix.spmm(n, b.data(), c.data()); }));
}

template <class T>
void run_sddmm(SparseMatrix<T>& matrix, const Given<T>& left, const Given<T>& right,
               const Computed<T>& out) {
  const std::int64_t n = width_of(left);
  check_size("left", left, matrix.csr().rows * n);
  check_size("right", right, matrix.csr().columns * n);
  check_size("the result", out, matrix.csr().size());
  checked(with_callbacks([&] { return matrix.sddmm(n, left.data(), right.data(), out.data()); }));
}

template <class T>
std::string explain(SparseMatrix<T>& matrix, const std::string& operation, std::int64_t n) {
  for (const SparseOperation known :
       {SparseOperation::kSpmv, SparseOperation::kSpmm, SparseOperation::kSddmm}) {
    if (to_string(known) == operation) {
      const std::int64_t width = known == SparseOperation::kSpmv ? 1 : n;
      return checked(with_callbacks([&] { return matrix.decision(known, width); })).text();
    }
  }
  raise({ErrorCode::kInvalidArgument,
         concat("an operation is spmv, spmm or sddmm, not '", operation, "'")});
}

template <class T>
void bind_matrix(nb::module_& module, const char* name) {
  nb::class_<SparseMatrix<T>>(module, name)
      .def("spmv", &run_spmv<T>, nb::arg("x").noconvert(), nb::arg("y").noconvert())
      .def("spmm", &run_spmm<T>, nb::arg("b").noconvert(), nb::arg("c").noconvert())
      .def("sddmm", &run_sddmm<T>, nb::arg("left").noconvert(), nb::arg("right").noconvert(),
           nb::arg("out").noconvert())
      .def("explain", &explain<T>, nb::arg("operation"), nb::arg("n"));
}

template <class T, class I, class Class>
void bind_take(Class& dispatcher) {
  dispatcher.def("matrix", &take<T, I>, nb::arg("rows"), nb::arg("columns"),
                 nb::arg("starts").noconvert(), nb::arg("column_of").noconvert(),
                 nb::arg("values").noconvert(), nb::arg("is_once"), nb::keep_alive<0, 1>());
}

}  // namespace

void bind_sparse(nb::module_& module) {
  bind_matrix<float>(module, "SparseMatrixF32");
  bind_matrix<double>(module, "SparseMatrixF64");
  nb::class_<SparseDispatcher> dispatcher(module, "SparseDispatcher");
  bind_dispatcher(dispatcher, "sparse-cpu");
  dispatcher.def(
      "load_choices_of_files",
      [](SparseDispatcher& of, const std::string& path, const std::string& folder) {
        const std::vector<std::string> folders{folder};
        return checked(
            without_lock([&] { return of.load_choices(path, folders, &formats::inflate_gzip); }));
      },
      nb::arg("path"), nb::arg("folder"));
  bind_take<float, std::int32_t>(dispatcher);
  bind_take<float, std::int64_t>(dispatcher);
  bind_take<double, std::int32_t>(dispatcher);
  bind_take<double, std::int64_t>(dispatcher);
}

}  // namespace foretune::python
