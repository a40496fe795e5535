#include "foretune/cublaslt/matmul_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune::cublaslt {
namespace {

using cuda::bytes_of;
using cuda::kPoison;
using cuda::result_precision;

constexpr int kCheckedElements = 32;

// Each buffer has its own stream of random numbers.
constexpr std::uint64_t kStreamA = 0x0a00000000000000U;
constexpr std::uint64_t kStreamB = 0x0b00000000000000U;
constexpr std::uint64_t kStreamBias = 0x0c00000000000000U;

// Precision of a GELU with the hardware's tanh: half the error that PTX allows `tanh.approx.f32`
// (2^-11).
constexpr double kGeluPrecision = 0x1p-12;

}  // namespace

std::uint64_t MatmulData::elements_a() const {
  return static_cast<std::uint64_t>(problem_.batch() * problem_.m() * problem_.k());
}
std::uint64_t MatmulData::elements_b() const {
  return static_cast<std::uint64_t>(problem_.batch() * problem_.k() * problem_.n());
}
std::uint64_t MatmulData::elements_d() const {
  return static_cast<std::uint64_t>(problem_.batch() * problem_.m() * problem_.n());
}

Result<std::unique_ptr<MatmulData>> MatmulData::create(std::shared_ptr<cuda::Device> device,
                                                       std::shared_ptr<const Library> library,
                                                       const GemmProblem& problem,
                                                       std::size_t workspace_bytes,
                                                       std::uint64_t seed) {
  std::unique_ptr<MatmulData> data(new MatmulData(std::move(device), problem, seed));
  cuda::Device& gpu = data->device();
  if (has_bias(problem.operation())) {
    const auto count = static_cast<std::uint64_t>(problem.n());
    FORETUNE_TRY(data->bias_, gpu.allocate(bytes_of(result_type(problem.dtype()), count)));
    gpu.fill(data->bias_, result_type(problem.dtype()), count, seed + kStreamBias);
  }
  FORETUNE_TRY(data->workspace_, gpu.allocate(workspace_bytes));
  FORETUNE_TRY_STATUS(data->add_set());
  FORETUNE_TRY_STATUS(data->make_reference(library, workspace_bytes));
  FORETUNE_TRY_STATUS(data->check_reference());
  FORETUNE_TRY(data->matmul_,
               Matmul::create(std::move(library), problem, {.workspace_bytes = workspace_bytes},
                              data->bias_.address()));
  data->poison();
  return data;
}

Result<MatmulData*> MatmulData::of(const Problem& problem, ProblemData& data) {
  auto* const product = dynamic_cast<MatmulData*>(&data);
  if (product == nullptr || product->problem().to_problem() != problem) {
    return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
  }
  return product;
}

Status MatmulData::add_set() {
  const DataType type = problem_.dtype();
  Set set;
  FORETUNE_TRY(set.a, device().allocate(bytes_of(type, elements_a())));
  FORETUNE_TRY(set.b, device().allocate(bytes_of(type, elements_b())));
  FORETUNE_TRY(set.d, device().allocate(bytes_of(result_type(type), elements_d())));
  device().fill(set.a, type, elements_a(), seed_ + kStreamA);
  device().fill(set.b, type, elements_b(), seed_ + kStreamB);
  sets_.push_back(std::move(set));
  return {};
}

Status MatmulData::make_reference(const std::shared_ptr<const Library>& library,
                                  std::size_t workspace_bytes) {
  GemmSizes sizes = problem_.sizes();
  sizes.dtype = DataType::kF32;
  // The library's GELU is an approximation, so a kernel of ours computes that of the reference.
  const bool has_gelu = sizes.operation == GemmOperation::kAddmmGelu;
  if (has_gelu) {
    sizes.operation = GemmOperation::kAddmm;
  }
  FORETUNE_TRY(const GemmProblem wide, GemmProblem::create(sizes));
  const DataType type = problem_.dtype();
  std::array<cuda::Buffer, 3> inputs;
  const auto widened = [&](const cuda::Buffer& from, DataType stored, std::uint64_t count,
                           cuda::Buffer& to) -> Status {
    FORETUNE_TRY(to, device().allocate(bytes_of(DataType::kF32, count)));
    device().widen(from, stored, count, to);
    return {};
  };
  FORETUNE_TRY_STATUS(widened(sets_[0].a, type, elements_a(), inputs[0]));
  FORETUNE_TRY_STATUS(widened(sets_[0].b, type, elements_b(), inputs[1]));
  if (has_bias(problem_.operation())) {
    FORETUNE_TRY_STATUS(
        widened(bias_, result_type(type), static_cast<std::uint64_t>(problem_.n()), inputs[2]));
  }
  FORETUNE_TRY(reference_, device().allocate(bytes_of(DataType::kF32, elements_d())));
  device().set(reference_, kPoison);
  FORETUNE_TRY(const std::unique_ptr<Matmul> matmul,
               Matmul::create(library, wide, {.workspace_bytes = workspace_bytes, .pedantic = true},
                              inputs[2].address()));
  FORETUNE_TRY(const Plan plan, matmul->plan(CublasltConfig::rank(1)));
  FORETUNE_TRY_STATUS(matmul->run(plan,
                                  {.a = inputs[0].address(),
                                   .b = inputs[1].address(),
                                   .d = reference_.address(),
                                   .workspace = workspace_.address()},
                                  device().stream()));
  if (has_gelu) {
    device().gelu(reference_, elements_d());
  }
  device().synchronize();
  return {};
}

double MatmulData::host_element(std::int64_t batch, std::int64_t row, std::int64_t column) const {
  const std::int64_t m = problem_.m();
  const std::int64_t n = problem_.n();
  const std::int64_t k = problem_.k();
  const DataType type = problem_.dtype();
  const auto random = [&](std::uint64_t stream, std::int64_t index) {
    return static_cast<double>(
        cuda::random_element(type, seed_ + stream, static_cast<std::uint64_t>(index)));
  };
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t in_a = a_by_columns(problem_.layout()) ? i * m + row : row * k + i;
    const std::int64_t in_b = b_by_columns(problem_.layout()) ? column * k + i : i * n + column;
    sum += random(kStreamA, batch * m * k + in_a) * random(kStreamB, batch * k * n + in_b);
  }
  if (has_bias(problem_.operation())) {
    sum += static_cast<double>(cuda::random_element(result_type(type), seed_ + kStreamBias,
                                                    static_cast<std::uint64_t>(column)));
  }
  switch (problem_.operation()) {
    case GemmOperation::kAddmmRelu:
      return std::max(sum, 0.0);
    case GemmOperation::kAddmmGelu:
      return gelu(sum);
    default:
      return sum;
  }
}

Status MatmulData::check_reference() const {
  Rng rng(seed_);
  const double tolerance = 0x1p-16 * cuda::typical_sum(static_cast<double>(problem_.k())) + 0x1p-18;
  for (int i = 0; i < kCheckedElements; ++i) {
    const auto below = [&rng](std::int64_t limit) {
      return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(limit)));
    };
    const std::int64_t batch = below(problem_.batch());
    const std::int64_t row = below(problem_.m());
    const std::int64_t column = below(problem_.n());
    const double wanted = host_element(batch, row, column);
    float found = 0;
    device().read(reference_,
                  static_cast<std::uint64_t>((batch * problem_.m() + row) * problem_.n() + column),
                  std::span(&found, 1));
    if (!(std::abs(static_cast<double>(found) - wanted) <=
          tolerance + 0x1p-18 * std::abs(wanted))) {
      return fail(ErrorCode::kInternal, "the reference of '", problem_.to_problem().text(),
                  "' is wrong: element [", row, ", ", column, "] is ", static_cast<double>(found),
                  ", the host computes ", wanted);
    }
  }
  return {};
}

void MatmulData::poison() { device().set(sets_[0].d, kPoison); }

Support MatmulData::verify() {
  const DataType stored = result_type(problem_.dtype());
  const double precision =
      std::max(result_precision(problem_.dtype()),
               problem_.operation() == GemmOperation::kAddmmGelu ? kGeluPrecision : 0);
  const double absolute =
      precision * (1 + 2 * cuda::typical_sum(static_cast<double>(problem_.k())));
  const cuda::Difference difference =
      device().compare(sets_[0].d, stored, reference_, elements_d(), static_cast<float>(absolute),
                       static_cast<float>(2 * precision));
  if (difference.count == 0) {
    return Support::yes();
  }
  const auto n = static_cast<std::uint64_t>(problem_.n());
  return Support::no(difference.count, " of ", elements_d(), " elements are wrong, first [",
                     difference.first / n, ", ", difference.first % n, "], which should be ",
                     static_cast<double>(difference.wanted));
}

std::int64_t MatmulData::bytes() const {
  const DataType type = problem_.dtype();
  return static_cast<std::int64_t>(bytes_of(type, elements_a()) + bytes_of(type, elements_b()) +
                                   bytes_of(result_type(type), elements_d()));
}

Operands MatmulData::operands(std::size_t set) const {
  const Set& chosen = sets_[set % sets_.size()];
  return {.a = chosen.a.address(),
          .b = chosen.b.address(),
          .d = chosen.d.address(),
          .workspace = workspace_.address()};
}

}  // namespace foretune::cublaslt
