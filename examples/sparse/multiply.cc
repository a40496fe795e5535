// Reads a sparse matrix from a MatrixMarket file and multiplies it with a vector: by the textbook's
// config, and by the fastest of the eight that a model of other matrices expects to be best.
//
//   multiply MATRIX.mtx MODEL.ftm
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/dispatch/sparse_dispatch.h"
#include "foretune/model/model_file.h"
#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/csr.h"

namespace {

using foretune::Decision;
using foretune::ErrorCode;
using foretune::Result;
using foretune::SparseDispatcher;
using foretune::SparseOperation;
using foretune::Status;
using foretune::sparse::Csr;

Result<Csr<float>> read_matrix(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return foretune::fail(ErrorCode::kNotFound, path, " cannot be read");
  }
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  FORETUNE_TRY(const foretune::sparse::Coordinates entries,
               foretune::sparse::read_coordinates(std::as_bytes(std::span(text))));
  return foretune::sparse::csr_from<float>(entries);
}

// Computes y = A x so often that all candidates are tried before. Returns the shortest of the later
// times, in seconds.
Result<double> multiply(SparseDispatcher& dispatcher, const std::string& path,
                        const std::vector<float>& x, std::vector<float>& y) {
  FORETUNE_TRY(Csr<float> csr, read_matrix(path));
  FORETUNE_TRY(const auto matrix, dispatcher.matrix(std::move(csr)));
  constexpr int kTrials = 30;  // enough for 8 configs, 3 times each
  double best = 1e9;
  for (int call = 0; call < 5 * kTrials; ++call) {
    const auto start = std::chrono::steady_clock::now();
    FORETUNE_TRY_STATUS(matrix->spmv(x.data(), y.data()));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = call < kTrials ? best : std::min(best, elapsed.count());
  }
  FORETUNE_TRY(const Decision decision, matrix->decision(SparseOperation::kSpmv, 1));
  std::printf("%8.1f us  %s: %s\n", 1e6 * best, std::string(to_string(decision.source)).c_str(),
              decision.config_text.c_str());
  return best;
}

Status run(const std::string& path, const std::string& model_path) {
  FORETUNE_TRY(const Csr<float> csr, read_matrix(path));
  std::printf("%s: %lld x %lld with %lld non-zeros\n", path.c_str(),
              static_cast<long long>(csr.rows), static_cast<long long>(csr.columns),
              static_cast<long long>(csr.size()));
  std::vector<float> x(static_cast<std::size_t>(csr.columns));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 7) - 3;
  }
  std::vector<float> expected(static_cast<std::size_t>(csr.rows));
  std::vector<float> y(expected.size());

  FORETUNE_TRY(const auto textbook, SparseDispatcher::for_this_cpu({.threads = 1}));
  FORETUNE_TRY(const double before, multiply(*textbook, path, x, expected));
  FORETUNE_TRY(foretune::Model model, foretune::read_model(model_path));
  FORETUNE_TRY(const auto learned,
               SparseDispatcher::for_this_cpu(
                   {.threads = 1, .model = std::move(model), .dispatch = {.measure_top = 8}}));
  FORETUNE_TRY(const double after, multiply(*learned, path, x, y));
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::abs(y[i] - expected[i]) > 1e-4F * (1 + std::abs(expected[i]))) {
      return foretune::fail(ErrorCode::kInternal, "two kernels differ at row ", i);
    }
  }
  std::printf("%.2f times as fast, with the same result\n", before / after);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: multiply MATRIX.mtx MODEL.ftm\n");
    return 2;
  }
  if (const Status status = run(argv[1], argv[2]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
