#include "foretune/dispatch/sparse_dispatch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <mutex>
#include <ratio>
#include <span>
#include <utility>

#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/kernel_provider.h"
#include "foretune/families/sparse_cpu/sparse_cpu.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/sparse/sparse_payload.h"
#include "foretune/sparse/describe.h"

namespace foretune {
namespace {

// A kernel is a config: only the matrix can be packed, which the dispatcher does not know.
class SparseProvider final : public FamilyProvider {
 public:
  SparseProvider(std::shared_ptr<const Family> family, int trials)
      : family_(std::move(family)), trials_(trials) {}
  const Family& family() const override { return *family_; }
  Result<std::shared_ptr<const void>> make_kernel(const Problem& problem,
                                                  const Config& config) const override {
    FORETUNE_TRY(const SparseCpuConfig typed, sparse_cpu_config(family_->info(), problem, config));
    return std::make_shared<const SparseCpuConfig>(typed);
  }
  std::vector<Config> variants(const Problem& problem) const override {
    return drawn_neighbours(*family_, problem, trials_);
  }

 private:
  std::shared_ptr<const Family> family_;
  int trials_;
};

// Names a pattern by its content.
Digest digest_of(const sparse::PatternView& pattern) {
  const std::array<Digest, 2> parts{Digest::of(std::as_bytes(pattern.starts)),
                                    Digest::of(std::as_bytes(pattern.column_of))};
  return Digest::of(std::as_bytes(std::span(parts)));
}

// Returns the problem as the dispatcher asks it: named by the pattern of its file.
Result<Problem> named_by_pattern(const Problem& problem, PayloadStore& store) {
  FORETUNE_TRY(const SparseProblem typed, SparseProblem::from(problem));
  FORETUNE_TRY(const std::shared_ptr<const Payload> file, store.load(problem.payload()));
  FORETUNE_TRY(const sparse::Coordinates coordinates, read_sparse_payload(typed, file->bytes()));
  FORETUNE_TRY(const sparse::Csr<float> csr, sparse::csr_from<float>(coordinates));
  SparseSizes sizes = typed.sizes();
  sizes.payload = digest_of(csr.pattern());
  sizes.origin = 0;
  return SparseProblem::create(sizes).map(
      [](const SparseProblem& named) { return named.to_problem(); });
}

// Products with it do not overflow, since extents are below 2^31 as well.
Status check_width(std::int64_t n) {
  if (n < 1 || n > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::kInvalidArgument, "n is ", n, "; it is from 1 to 2^31 - 1");
  }
  return {};
}

template <class T>
bool overlap(const T* a, std::int64_t a_size, const T* b, std::int64_t b_size) {
  const auto begin = [](const T* values) { return reinterpret_cast<std::uintptr_t>(values); };
  const auto end = [&](const T* values, std::int64_t size) {
    return begin(values) + static_cast<std::uintptr_t>(size) * sizeof(T);
  };
  return begin(a) < end(b, b_size) && begin(b) < end(a, a_size);
}

}  // namespace

SparseDispatcher::SparseDispatcher(std::shared_ptr<const Family> family,
                                   const DispatchOptions& options, bool has_model)
    : family_(std::move(family)),
      dispatcher_(options),
      textbook_(DispatchOptions{}),
      pool_(static_cast<std::size_t>(family_->info().max_threads)),
      has_model_(has_model) {}

Result<std::unique_ptr<SparseDispatcher>> SparseDispatcher::for_this_cpu(
    CpuDispatchOptions options) {
  FamilyOptions family_options;
  const CpuFacts facts = read_cpu_facts();
  // The legality of kernels depends only on the facts; peaks would have to be measured.
  family_options.fingerprint = cpu_fingerprint(facts, CpuPeaks{});
  family_options.threads = options.threads;
  FORETUNE_TRY(std::shared_ptr<const Family> family, create_sparse_cpu(family_options));
  if (!options.model) {
    options.model = default_cpu_model(family->info().name, facts.isa, family->info().max_threads);
  }
  std::unique_ptr<SparseDispatcher> out(
      new SparseDispatcher(family, options.dispatch, options.model.has_value()));
  FORETUNE_TRY_STATUS(
      out->textbook_.add(std::make_shared<SparseProvider>(family, 0), std::nullopt));
  FORETUNE_TRY_STATUS(out->dispatcher_.add(
      std::make_shared<SparseProvider>(std::move(family), options.dispatch.measure_top),
      std::move(options.model)));
  return out;
}

Result<std::size_t> SparseDispatcher::load_choices(const std::filesystem::path& path,
                                                   std::span<const std::string> folders,
                                                   InflateGzip inflate) {
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> store, PayloadStore::open(folders, inflate));
  FORETUNE_TRY(const Dataset by_file, read_dataset(path));
  if (by_file.header().problem_type != kSparseProblem) {
    return dispatcher_.take_choices(by_file);  // says that the family is another
  }
  std::vector<std::optional<Problem>> named;
  for (const Problem& problem : by_file.problems()) {
    const SparseProblem typed = *SparseProblem::from(problem);
    if (typed.sizes().depth > 1) {
      named.emplace_back();  // a tensor
      continue;
    }
    FORETUNE_TRY(named.emplace_back(), named_by_pattern(problem, *store));
  }
  Dataset by_pattern(by_file.header());
  for (RowIndex row = 0; row < by_file.size(); ++row) {
    if (const auto& problem = named[by_file.rows()[row].problem]; problem) {
      Measurement measured = by_file.measurement(row);
      measured.problem = *problem;
      by_pattern.add(measured);
    }
  }
  return dispatcher_.take_choices(std::move(by_pattern));
}

Result<std::shared_ptr<const PayloadDescriptor>> SparseDispatcher::describe(
    const sparse::PatternView& pattern, const Digest& digest) {
  const std::lock_guard lock(mutex_);
  if (const auto known = descriptors_.find(digest); known != descriptors_.end()) {
    if (std::shared_ptr<const PayloadDescriptor> shared = known->second.lock(); shared != nullptr) {
      return shared;
    }
  }
  FORETUNE_TRY(const sparse::MatrixDescription description, sparse::describe(pattern));
  auto made = std::make_shared<PayloadDescriptor>();
  made->info = &sparse_payload_info();
  made->payload = digest;
  made->values.resize(kSparseValues);
  sparse_values(description, 1, made->values);
  std::erase_if(descriptors_, [](const auto& described) { return described.second.expired(); });
  descriptors_[digest] = made;
  return std::shared_ptr<const PayloadDescriptor>(std::move(made));
}

template <class T>
Result<std::unique_ptr<SparseMatrix<T>>> SparseDispatcher::matrix(sparse::Csr<T> csr,
                                                                  SparseUse use) {
  const bool is_once = use == SparseUse::kOnce;
  Dispatcher& dispatcher = is_once ? textbook_ : dispatcher_;
  if (csr.size() == 0) {  // its products are zeros
    return std::unique_ptr<SparseMatrix<T>>(
        new SparseMatrix<T>(*this, dispatcher, std::move(csr), SparseSizes{}, nullptr));
  }
  const SparseSizes sizes{.operation = SparseOperation::kSpmv,
                          .rows = csr.rows,
                          .columns = csr.columns,
                          .non_zeros = csr.size(),
                          .dtype = sizeof(T) == sizeof(double) ? DataType::kF64 : DataType::kF32,
                          // The textbook config follows from the sizes.
                          .payload = is_once ? Digest{} : digest_of(csr.pattern())};
  if (const auto problem = SparseProblem::create(sizes); !problem) {
    return fail(ErrorCode::kUnsupported, problem.error().message);
  }
  std::shared_ptr<const PayloadDescriptor> descriptor;
  if (has_model_ && !is_once) {
    FORETUNE_TRY(descriptor, describe(csr.pattern(), sizes.payload));
  }
  return std::unique_ptr<SparseMatrix<T>>(
      new SparseMatrix<T>(*this, dispatcher, std::move(csr), sizes, std::move(descriptor)));
}

template Result<std::unique_ptr<SparseMatrix<float>>> SparseDispatcher::matrix(sparse::Csr<float>,
                                                                               SparseUse);
template Result<std::unique_ptr<SparseMatrix<double>>> SparseDispatcher::matrix(sparse::Csr<double>,
                                                                                SparseUse);

template <class T>
Result<std::shared_ptr<typename SparseMatrix<T>::Product>> SparseMatrix<T>::product(
    SparseOperation operation, std::int64_t n) {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Product>& known : products_) {
    const SparseSizes& sizes = known->problem.sizes();
    if (sizes.operation == operation && sizes.width == n) {
      return known;
    }
  }
  SparseSizes sizes = sizes_;
  sizes.operation = operation;
  sizes.width = n;
  FORETUNE_TRY(const SparseProblem problem, SparseProblem::create(sizes));
  auto made = std::make_shared<Product>(problem);
  made->asked.set_descriptor(descriptor_.get());
  if (products_.size() == kMaxProducts) {
    products_.erase(products_.begin());
  }
  products_.push_back(made);
  return made;
}

template <class T>
Result<std::shared_ptr<const typename SparseMatrix<T>::Packed>> SparseMatrix<T>::packed_for(
    Product& product, const Kernel& kernel, bool is_final) {
  {
    const std::lock_guard lock(mutex_);
    if (product.settled != nullptr) {  // another thread has seen the end of the trials
      return product.settled;
    }
    const auto known = std::ranges::find_if(
        product.on_trial, [&](const auto& packed) { return packed->kernel == kernel; });
    if (known != product.on_trial.end()) {
      std::shared_ptr<const Packed> packed = *known;
      if (is_final) {
        product.settled = packed;
        product.on_trial.clear();
      }
      return packed;
    }
  }
  const bool is_parallel = kernel->threads > 1;
  ThreadPool* const pool = is_parallel ? &owner_.pool_.pool() : nullptr;
  std::unique_lock<ForkSafeTurn> turn;
  if (is_parallel) {
    turn = std::unique_lock(owner_.pool_.turn());
  }
  FORETUNE_TRY(sparse_cpu::SparsePlan<T> plan,
               sparse_cpu::SparsePlan<T>::create(csr_, product.problem.sizes(), *kernel, pool,
                                                 max_packed_bytes(owner_.family_->info())));
  auto made = std::make_shared<const Packed>(Packed{kernel, std::move(plan)});
  const std::lock_guard lock(mutex_);
  if (is_final) {
    product.settled = made;
    product.on_trial.clear();
  } else if (product.settled == nullptr) {
    product.on_trial.push_back(made);
  }
  return made;
}

template <class T>
Status SparseMatrix<T>::run(SparseOperation operation, std::int64_t n,
                            const sparse_cpu::SparseOperands<T>& operands) {
  if (csr_.size() == 0) {
    std::fill_n(operands.output, csr_.rows * n, T{0});
    return {};
  }
  FORETUNE_TRY(const std::shared_ptr<Product> product, this->product(operation, n));
  {
    std::shared_ptr<const Packed> settled;
    {
      const std::lock_guard lock(mutex_);
      settled = product->settled;
    }
    if (settled != nullptr) {
      return run_plan(*settled, operands);
    }
  }
  FORETUNE_TRY(Dispatcher::Turn turn, dispatcher_.next(product->asked));
  const auto kernel_of = [](const Dispatcher::Turn& of) {
    return std::static_pointer_cast<const SparseCpuConfig>(of.shared_kernel());
  };
  auto packed = packed_for(*product, kernel_of(turn), turn.is_final());
  while (!packed && packed.error().code == ErrorCode::kUnsupported) {
    // A storage that this matrix is too large or too uneven for.
    FORETUNE_TRY(turn, dispatcher_.replace(product->asked, turn, packed.error().message));
    packed = packed_for(*product, kernel_of(turn), turn.is_final());
  }
  if (!packed) {
    dispatcher_.abandon(turn);
    return fail_because(packed.error());
  }
  const auto start = std::chrono::steady_clock::now();
  const Status ran = run_plan(**packed, operands);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if ((*packed)->kernel == kernel_of(turn)) {
    dispatcher_.report(turn, elapsed.count());
  } else {
    dispatcher_.abandon(turn);
  }
  return ran;
}

template <class T>
Status SparseMatrix<T>::run_plan(const Packed& packed,
                                 const sparse_cpu::SparseOperands<T>& operands) {
  if (packed.kernel->threads > 1) {
    const std::lock_guard lock(owner_.pool_.turn());
    packed.plan.run(operands);
  } else {
    packed.plan.run(operands);
  }
  return {};
}

template <class T>
Status SparseMatrix<T>::spmv(const T* x, T* y) {
  if (x == nullptr || y == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "x and y must not be null");
  }
  if (overlap(x, csr_.columns, y, csr_.rows)) {
    return fail(ErrorCode::kInvalidArgument, "x and y overlap");
  }
  return run(SparseOperation::kSpmv, 1, {x, nullptr, y});
}

template <class T>
Status SparseMatrix<T>::spmm(std::int64_t n, const T* b, T* c) {
  FORETUNE_TRY_STATUS(check_width(n));
  if (b == nullptr || c == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "b and c must not be null");
  }
  if (overlap(b, csr_.columns * n, c, csr_.rows * n)) {
    return fail(ErrorCode::kInvalidArgument, "b and c overlap");
  }
  return run(SparseOperation::kSpmm, n, {b, nullptr, c});
}

template <class T>
Status SparseMatrix<T>::sddmm(std::int64_t n, const T* b, const T* c, T* d) {
  FORETUNE_TRY_STATUS(check_width(n));
  if (csr_.size() == 0) {
    return {};
  }
  if (b == nullptr || c == nullptr || d == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "b, c and d must not be null");
  }
  if (overlap(b, csr_.rows * n, d, csr_.size()) || overlap(c, csr_.columns * n, d, csr_.size())) {
    return fail(ErrorCode::kInvalidArgument, "d overlaps b or c");
  }
  return run(SparseOperation::kSddmm, n, {b, c, d});
}

template <class T>
Result<Decision> SparseMatrix<T>::decision(SparseOperation operation, std::int64_t n) {
  if (csr_.size() == 0) {
    return fail(ErrorCode::kUnsupported, "the matrix has no non-zeros: nothing runs");
  }
  FORETUNE_TRY(const std::shared_ptr<Product> product, this->product(operation, n));
  return dispatcher_.decision(product->asked);
}

template class SparseMatrix<float>;
template class SparseMatrix<double>;

}  // namespace foretune
