// SuiteSparse:GraphBLAS as a peer. A product with a dense operand can be written in two ways: as a
// new result, or as zeros to which the product is added. The faster one for the problem counts.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/sparse_peer_parts.h"
#include "foretune/base/text.h"

#ifdef FORETUNE_HAS_GRAPHBLAS
// Its functions are in C, which the header leaves to whoever includes it.
extern "C" {
#include <GraphBLAS.h>
}
#endif

namespace foretune {

#ifdef FORETUNE_HAS_GRAPHBLAS
namespace {

// Owns one of the library's objects.
template <class Object, GrB_Info (*free_object)(Object*)>
class Handle {
 public:
  explicit Handle(Object object) : object_(object) {}
  ~Handle() { free_object(&object_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] Object get() const { return object_; }

 private:
  Object object_;
};
using MatrixHandle = Handle<GrB_Matrix, &GrB_Matrix_free>;
using VectorHandle = Handle<GrB_Vector, &GrB_Vector_free>;
using SharedMatrix = std::shared_ptr<MatrixHandle>;
using SharedVector = std::shared_ptr<VectorHandle>;

SharedVector empty_vector(std::int64_t size) {
  GrB_Vector vector = nullptr;
  GrB_Vector_new(&vector, GrB_FP32, static_cast<GrB_Index>(size));
  return std::make_shared<VectorHandle>(vector);
}

SharedMatrix empty_matrix(std::int64_t rows, std::int64_t columns) {
  GrB_Matrix matrix = nullptr;
  GrB_Matrix_new(&matrix, GrB_FP32, static_cast<GrB_Index>(rows), static_cast<GrB_Index>(columns));
  return std::make_shared<MatrixHandle>(matrix);
}

// Copies values to memory that the library takes over and frees.
void* copied(const float* values, std::size_t count) {
  void* const copy = std::malloc(count * sizeof(float));  // NOLINT(*-no-malloc)
  std::copy_n(values, count, static_cast<float*>(copy));
  return copy;
}

SharedMatrix dense_matrix(const float* values, std::int64_t rows, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(rows * columns);
  SharedMatrix out = empty_matrix(rows, columns);
  void* copy = copied(values, count);
  GxB_Matrix_pack_FullR(out->get(), &copy, count * sizeof(float), false, nullptr);
  return out;
}

SharedVector dense_vector(const float* values, std::int64_t size) {
  const auto count = static_cast<std::size_t>(size);
  SharedVector out = empty_vector(size);
  void* copy = copied(values, count);
  GxB_Vector_pack_Full(out->get(), &copy, count * sizeof(float), false, nullptr);
  return out;
}

SharedMatrix sparse_matrix(const sparse::Csr<float>& matrix) {
  const std::vector<GrB_Index> starts = starts_as<GrB_Index>(matrix);
  const std::vector<GrB_Index> columns(matrix.column_of.data(),
                                       matrix.column_of.data() + matrix.size());
  GrB_Matrix out = nullptr;
  GrB_Matrix_import_FP32(&out, GrB_FP32, static_cast<GrB_Index>(matrix.rows),
                         static_cast<GrB_Index>(matrix.columns), starts.data(), columns.data(),
                         matrix.values.data(), starts.size(), columns.size(), columns.size(),
                         GrB_CSR_FORMAT);
  return std::make_shared<MatrixHandle>(out);
}

double seconds_of(const std::function<void()>& run) {
  run();
  const double start = bench::seconds_now();
  run();
  return bench::seconds_now() - start;
}

// Copies the entries of a result to its places by rows; those without an entry are 0.
void copy_dense(GrB_Matrix result, std::int64_t rows, std::int64_t width, float* out) {
  GrB_Index count = 0;
  GrB_Matrix_nvals(&count, result);
  std::vector<GrB_Index> row_of(count);
  std::vector<GrB_Index> column_of(count);
  std::vector<float> values(count);
  GrB_Matrix_extractTuples_FP32(row_of.data(), column_of.data(), values.data(), &count, result);
  std::fill_n(out, rows * width, 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    out[row_of[i] * static_cast<GrB_Index>(width) + column_of[i]] = values[i];
  }
}

void copy_vector(GrB_Vector result, std::int64_t size, float* out) {
  GrB_Index count = 0;
  GrB_Vector_nvals(&count, result);
  std::vector<GrB_Index> places(count);
  std::vector<float> values(count);
  GrB_Vector_extractTuples_FP32(places.data(), values.data(), &count, result);
  std::fill_n(out, size, 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    out[places[i]] = values[i];
  }
}

// Copies the entries of a result with the pattern of the matrix, row by row.
void copy_sampled(GrB_Matrix result, const sparse::Csr<float>& matrix, float* out) {
  GrB_Index count = 0;
  GrB_Matrix_nvals(&count, result);
  std::vector<GrB_Index> row_of(count);
  std::vector<GrB_Index> column_of(count);
  std::vector<float> values(count);
  GrB_Matrix_extractTuples_FP32(row_of.data(), column_of.data(), values.data(), &count, result);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t* const begin = matrix.column_of.data() + matrix.starts[row_of[i]];
    const std::int32_t* const end = matrix.column_of.data() + matrix.starts[row_of[i] + 1];
    const std::int32_t* const place =
        std::lower_bound(begin, end, static_cast<std::int32_t>(column_of[i]));
    if (place != end) {
      out[place - matrix.column_of.data()] = values[i];
    }
  }
}

class GraphBlas final : public SparsePeer {
 public:
  explicit GraphBlas(int threads) {
    GrB_init(GrB_NONBLOCKING);
    GxB_Global_Option_set_INT32(GxB_GLOBAL_NTHREADS, threads);
    GxB_Global_Option_set_INT32(GxB_FORMAT, GxB_BY_ROW);
  }
  ~GraphBlas() override { GrB_finalize(); }
  std::string name() const override {
    return concat("GraphBLAS ", GxB_IMPLEMENTATION_MAJOR, ".", GxB_IMPLEMENTATION_MINOR, ".",
                  GxB_IMPLEMENTATION_SUB);
  }
  std::string library() const override { return "graphblas"; }

  SparsePeerRun prepare(const SparsePeerProduct& p) override {
    const SharedMatrix a = sparse_matrix(*p.matrix);
    switch (p.operation) {
      case SparseOperation::kSpmv:
        return vector_product(p, a);
      case SparseOperation::kSddmm:
        return sampled(p, a);
      default:
        return product(p, a);
    }
  }

 private:
  static SparsePeerRun vector_product(const SparsePeerProduct& p, const SharedMatrix& a) {
    const std::int64_t rows = p.matrix->rows;
    const SharedVector x = dense_vector(p.first, p.matrix->columns);
    const SharedVector fresh = empty_vector(rows);
    const SharedVector sums = empty_vector(rows);
    std::function<void()> anew = [=] {
      GrB_mxv(fresh->get(), nullptr, nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, a->get(), x->get(),
              nullptr);
    };
    std::function<void()> added = [=] {
      GrB_Vector_assign_FP32(sums->get(), nullptr, nullptr, 0.0F, GrB_ALL,
                             static_cast<GrB_Index>(rows), nullptr);
      GrB_mxv(sums->get(), nullptr, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a->get(), x->get(),
              nullptr);
    };
    const bool is_fresh = seconds_of(anew) < seconds_of(added);
    return {.run = is_fresh ? std::move(anew) : std::move(added),
            .finish = [=] { copy_vector((is_fresh ? fresh : sums)->get(), rows, p.output); }};
  }

  static SparsePeerRun product(const SparsePeerProduct& p, const SharedMatrix& a) {
    const std::int64_t rows = p.matrix->rows;
    const SharedMatrix b = dense_matrix(p.first, p.matrix->columns, p.width);
    const SharedMatrix fresh = empty_matrix(rows, p.width);
    const SharedMatrix sums = empty_matrix(rows, p.width);
    std::function<void()> anew = [=] {
      GrB_mxm(fresh->get(), nullptr, nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, a->get(), b->get(),
              nullptr);
    };
    std::function<void()> added = [=] {
      GrB_Matrix_assign_FP32(sums->get(), nullptr, nullptr, 0.0F, GrB_ALL,
                             static_cast<GrB_Index>(rows), GrB_ALL, static_cast<GrB_Index>(p.width),
                             nullptr);
      GrB_mxm(sums->get(), nullptr, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a->get(), b->get(),
              nullptr);
    };
    const bool is_fresh = seconds_of(anew) < seconds_of(added);
    return {.run = is_fresh ? std::move(anew) : std::move(added), .finish = [=] {
              copy_dense((is_fresh ? fresh : sums)->get(), rows, p.width, p.output);
            }};
  }

  // The product of B with C transposed where A has an entry, then times A.
  static SparsePeerRun sampled(const SparsePeerProduct& p, const SharedMatrix& a) {
    const SharedMatrix b = dense_matrix(p.first, p.matrix->rows, p.width);
    const SharedMatrix c = dense_matrix(p.second, p.matrix->columns, p.width);
    const SharedMatrix d = empty_matrix(p.matrix->rows, p.matrix->columns);
    return {.run =
                [=] {
                  GrB_mxm(d->get(), a->get(), nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, b->get(),
                          c->get(), GrB_DESC_RST1);
                  GrB_Matrix_eWiseMult_BinaryOp(d->get(), nullptr, nullptr, GrB_TIMES_FP32,
                                                d->get(), a->get(), nullptr);
                },
            .finish = [=] { copy_sampled(d->get(), *p.matrix, p.output); }};
  }
};

}  // namespace

std::unique_ptr<SparsePeer> make_graphblas(int threads) {
  return std::make_unique<GraphBlas>(threads);
}

#else

std::unique_ptr<SparsePeer> make_graphblas(int /*threads*/) { return nullptr; }

#endif

}  // namespace foretune
