#include "foretune/dispatch/sparse_product.h"

#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "foretune/base/c_errors.h"
#include "foretune/base/c_text.h"
#include "foretune/dispatch/internal/plan_options.h"
#include "foretune/dispatch/sparse_dispatch.h"
#include "foretune/sparse/csr.h"

namespace foretune {
namespace {

static_assert(static_cast<int>(SparseOperation::kSpmv) == FORETUNE_SPMV);
static_assert(static_cast<int>(SparseOperation::kSpmm) == FORETUNE_SPMM);
static_assert(static_cast<int>(SparseOperation::kSddmm) == FORETUNE_SDDMM);

using AnyMatrix =
    std::variant<std::unique_ptr<SparseMatrix<float>>, std::unique_ptr<SparseMatrix<double>>>;

}  // namespace
}  // namespace foretune

struct foretune_sparse_matrix {
  foretune::internal::PlanOptions options;
  foretune::SparseDispatcher* dispatcher = nullptr;
  foretune::AnyMatrix matrix;
};

namespace foretune {
namespace {

template <class T, class I>
Result<AnyMatrix> take(SparseDispatcher& dispatcher, const foretune_csr& csr, SparseUse use) {
  const auto* const starts = static_cast<const I*>(csr.starts);
  const std::span<const I> all_starts(starts, static_cast<std::size_t>(csr.rows) + 1);
  if (all_starts.back() < 0) {
    return fail(ErrorCode::kInvalidArgument, "the last start is ", all_starts.back());
  }
  const auto size = static_cast<std::size_t>(all_starts.back());
  FORETUNE_TRY(sparse::Csr<T> copy,
               (sparse::csr_from_arrays<T, I>(csr.rows, csr.columns, all_starts,
                                              std::span(static_cast<const I*>(csr.column_of), size),
                                              std::span(static_cast<const T*>(csr.values), size))));
  FORETUNE_TRY(std::unique_ptr<SparseMatrix<T>> matrix, dispatcher.matrix(std::move(copy), use));
  return AnyMatrix(std::move(matrix));
}

Result<AnyMatrix> take(SparseDispatcher& dispatcher, const foretune_csr& csr, SparseUse use) {
  if (csr.index_bytes == 4) {
    return csr.value_bytes == 4 ? take<float, std::int32_t>(dispatcher, csr, use)
                                : take<double, std::int32_t>(dispatcher, csr, use);
  }
  return csr.value_bytes == 4 ? take<float, std::int64_t>(dispatcher, csr, use)
                              : take<double, std::int64_t>(dispatcher, csr, use);
}

Status create(const foretune_csr* csr, const foretune_sparse_options* options,
              foretune_sparse_matrix** out) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "out must not be NULL");
  }
  *out = nullptr;
  if (csr == nullptr || csr->starts == nullptr || csr->column_of == nullptr ||
      csr->values == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "csr and its arrays must not be NULL");
  }
  for (const int bytes : {csr->index_bytes, csr->value_bytes}) {
    if (bytes != 4 && bytes != 8) {
      return fail(ErrorCode::kInvalidArgument, "indices and values have 4 or 8 bytes, not ", bytes);
    }
  }
  if (csr->rows < 0 || csr->columns < 0) {
    return fail(ErrorCode::kInvalidArgument, "a matrix cannot have ", csr->rows, " x ",
                csr->columns, " elements");
  }
  auto made = std::make_unique<foretune_sparse_matrix>();
  FORETUNE_TRY(made->options, internal::plan_options(options));
  FORETUNE_TRY(made->dispatcher, internal::front_end_of<SparseDispatcher>(made->options));
  const bool is_once = options != nullptr && options->is_used_once != 0;
  FORETUNE_TRY(made->matrix,
               take(*made->dispatcher, *csr, is_once ? SparseUse::kOnce : SparseUse::kOften));
  *out = made.release();
  return {};
}

// Calls `work` with the typed matrix.
template <class Work>
Status with_matrix(foretune_sparse_matrix* matrix, const Work& work) {
  if (matrix == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "the matrix must not be NULL");
  }
  return std::visit([&](auto& typed) -> Status { return work(*typed); }, matrix->matrix);
}

template <class T>
const T* input(const SparseMatrix<T>& /*of*/, const void* values) {
  return static_cast<const T*>(values);
}
template <class T>
T* output(const SparseMatrix<T>& /*of*/, void* values) {
  return static_cast<T*>(values);
}

}  // namespace
}  // namespace foretune

int foretune_sparse_create(const foretune_csr* csr, const foretune_sparse_options* options,
                           foretune_sparse_matrix** out, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size,
                                 [&] { return foretune::create(csr, options, out); });
}

void foretune_sparse_destroy(foretune_sparse_matrix* matrix) { delete matrix; }

int foretune_spmv(foretune_sparse_matrix* a, const void* x, void* y, char* message,
                  size_t message_size) {
  return foretune::report_errors(message, message_size, [&] {
    return foretune::with_matrix(a, [&](auto& matrix) {
      return matrix.spmv(foretune::input(matrix, x), foretune::output(matrix, y));
    });
  });
}

int foretune_spmm(foretune_sparse_matrix* a, int64_t n, const void* b, void* c, char* message,
                  size_t message_size) {
  return foretune::report_errors(message, message_size, [&] {
    return foretune::with_matrix(a, [&](auto& matrix) {
      return matrix.spmm(n, foretune::input(matrix, b), foretune::output(matrix, c));
    });
  });
}

int foretune_sddmm(foretune_sparse_matrix* a, int64_t n, const void* b, const void* c, void* d,
                   char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&] {
    return foretune::with_matrix(a, [&](auto& matrix) {
      return matrix.sddmm(n, foretune::input(matrix, b), foretune::input(matrix, c),
                          foretune::output(matrix, d));
    });
  });
}

size_t foretune_sparse_explain(foretune_sparse_matrix* a, int operation, int64_t n, char* text,
                               size_t size) {
  foretune::copy_text("", text, size);
  if (a == nullptr || operation < FORETUNE_SPMV || operation > FORETUNE_SDDMM) {
    return 0;
  }
  try {
    return std::visit(
        [&](auto& matrix) -> std::size_t {
          const auto decision =
              matrix->decision(static_cast<foretune::SparseOperation>(operation), n);
          return decision ? foretune::copy_text(decision->text(), text, size) : 0;
        },
        a->matrix);
  } catch (const std::exception&) {  // memory is short
    return 0;
  }
}

int foretune_sparse_save(foretune_sparse_matrix* a, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&]() -> foretune::Status {
    if (a == nullptr) {
      return foretune::fail(foretune::ErrorCode::kInvalidArgument, "the matrix must not be NULL");
    }
    return foretune::internal::save_trials(*a->dispatcher, a->options, "sparse-cpu");
  });
}
