#include "foretune/dispatch/conv_layer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <ratio>
#include <span>

#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

std::shared_ptr<const CpuConvKernel> conv_kernel_of(const Dispatcher::Turn& turn) {
  return std::static_pointer_cast<const CpuConvKernel>(turn.shared_kernel());
}

// Returns the smallest number of floats that hold so many bytes.
std::size_t floats_for(double bytes) {
  return static_cast<std::size_t>(std::ceil(bytes / sizeof(float)));
}

}  // namespace

Result<std::unique_ptr<ConvLayer>> ConvLayer::create(Dispatcher& dispatcher,
                                                     const ConvProblem& problem) {
  std::unique_ptr<ConvLayer> layer(new ConvLayer(dispatcher, problem));
  FORETUNE_TRY(const Dispatcher::Turn turn, dispatcher.best(layer->asked_));
  if (turn.is_final()) {
    layer->keep(conv_kernel_of(turn));
  }
  return layer;
}

ConvLayer::Kernel ConvLayer::final_kernel() {
  const std::lock_guard lock(mutex_);
  return final_;
}

void ConvLayer::keep(const Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  if (final_ == nullptr) {
    final_ = kernel;
  }
}

Result<std::shared_ptr<const ConvLayer::Packed>> ConvLayer::pack_for(const Kernel& kernel,
                                                                     const void* weights) {
  auto packed = std::make_shared<Packed>();
  packed->kernel = kernel;
  FORETUNE_TRY(packed->weights,
               AlignedBuffer::create(floats_for(static_cast<double>(kernel->packed_bytes()))));
  const std::span<std::byte> bytes = std::as_writable_bytes(packed->weights.view());
  FORETUNE_TRY_STATUS(kernel->pack(weights, bytes.first(kernel->packed_bytes())));
  return packed;
}

Status ConvLayer::pack(const void* weights) {
  if (!problem_.has_constant_weights()) {
    return fail(ErrorCode::kInvalidArgument,
                "weights are packed for a problem with weights=constant, not for '", asked_.text(),
                "'");
  }
  if (weights == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there are no weights to pack");
  }
  const auto made = std::make_shared<Weights>();
  if (const Kernel kernel = final_kernel()) {
    FORETUNE_TRY(std::shared_ptr<const Packed> packed, pack_for(kernel, weights));
    made->packed.push_back(std::move(packed));
  } else {
    const double bytes =
        static_cast<double>(problem_.weight_elements()) * bytes_per_element(problem_.dtype());
    FORETUNE_TRY(AlignedBuffer plain, AlignedBuffer::create(floats_for(bytes)));
    std::memcpy(plain.data(), weights, static_cast<std::size_t>(std::ceil(bytes)));
    made->plain = std::make_shared<const AlignedBuffer>(std::move(plain));
  }
  const std::lock_guard lock(mutex_);
  weights_ = made;
  return {};
}

Result<std::shared_ptr<const ConvLayer::Packed>> ConvLayer::packed_for(const Kernel& kernel,
                                                                       bool is_final) {
  std::shared_ptr<Weights> weights;
  std::shared_ptr<const AlignedBuffer> plain;
  {
    const std::lock_guard lock(mutex_);
    weights = weights_;
    if (weights == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "there are neither weights nor packed ones");
    }
    const auto known = std::ranges::find(weights->packed, kernel, &Packed::kernel);
    if (known != weights->packed.end()) {
      return *known;
    }
    plain = weights->plain;
    if (plain == nullptr) {  // another thread has seen the end of the trials
      return weights->packed.front();
    }
  }
  FORETUNE_TRY(std::shared_ptr<const Packed> made, pack_for(kernel, plain->data()));
  const std::lock_guard lock(mutex_);
  if (is_final) {
    weights->packed.clear();
    weights->plain.reset();
  }
  if (is_final || weights->plain != nullptr) {
    weights->packed.push_back(made);
  }
  return made;
}

Status ConvLayer::run(const CpuConvOperands& operands) {
  Kernel kernel = final_kernel();
  Dispatcher::Turn turn;
  if (kernel == nullptr) {
    FORETUNE_TRY(turn, dispatcher_.next(asked_));
    kernel = conv_kernel_of(turn);
    if (turn.is_final()) {
      keep(kernel);
    }
  }
  CpuConvOperands with = operands;
  with.packed_weights = nullptr;
  std::shared_ptr<const Packed> packed;
  if (operands.weights == nullptr && problem_.operation() != ConvOperation::kBackwardWeight) {
    auto found = packed_for(kernel, !turn.is_trial() && final_kernel() == kernel);
    if (!found) {
      dispatcher_.abandon(turn);
      return tl::unexpected<Error>(std::move(found).error());
    }
    packed = *std::move(found);
    with.packed_weights = packed->data();
  }
  const auto start = std::chrono::steady_clock::now();
  const Status ran = (packed == nullptr ? *kernel : *packed->kernel).run(with);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if (!ran || (packed != nullptr && packed->kernel != kernel)) {
    dispatcher_.abandon(turn);
  } else {
    dispatcher_.report(turn, elapsed.count());
  }
  return ran;
}

}  // namespace foretune
