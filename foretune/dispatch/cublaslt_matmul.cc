#include "foretune/dispatch/cublaslt_matmul.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "foretune/base/c_errors.h"
#include "foretune/base/c_text.h"
#include "foretune/dispatch/cublaslt_dispatch.h"
#include "foretune/dispatch/internal/trials_file.h"
#include "foretune/model/model_file.h"

struct foretune_cublaslt {
  std::unique_ptr<foretune::CublasltDispatcher> dispatcher;
  std::filesystem::path trials_path;  // empty: none
};

namespace foretune {
namespace {

static_assert(static_cast<int>(ErrorCode::kInvalidArgument) == FORETUNE_CUBLASLT_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kNotFound) == FORETUNE_CUBLASLT_NOT_FOUND);
static_assert(static_cast<int>(ErrorCode::kCorrupt) == FORETUNE_CUBLASLT_CORRUPT);
static_assert(static_cast<int>(ErrorCode::kMismatch) == FORETUNE_CUBLASLT_MISMATCH);
static_assert(static_cast<int>(ErrorCode::kUnsupported) == FORETUNE_CUBLASLT_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kIo) == FORETUNE_CUBLASLT_IO);
static_assert(static_cast<int>(ErrorCode::kInternal) == FORETUNE_CUBLASLT_INTERNAL);

Status open(const foretune_cublaslt_options& options, foretune_cublaslt** out) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "out must not be NULL");
  }
  *out = nullptr;
  if (!std::isfinite(options.margin)) {
    return fail(ErrorCode::kInvalidArgument, "a margin is a number, not ", options.margin);
  }
  CublasltDispatchOptions cpp;
  cpp.dispatch.fast = options.fast != 0;
  if (options.margin != 0) {
    cpp.dispatch.margin = std::max(0.0, options.margin);
  }
  if (options.model_path != nullptr) {
    FORETUNE_TRY(cpp.model, read_model(options.model_path));
  }
  if (options.cublaslt_library != nullptr) {
    cpp.cublaslt = {options.cublaslt_library};
  }
  if (options.driver_library != nullptr) {
    cpp.driver = options.driver_library;
  }
  cpp.dispatch.measure_top = options.measure_top;
  auto opened = std::make_unique<foretune_cublaslt>();
  if (options.trials_path != nullptr) {
    opened->trials_path = options.trials_path;
  }
  FORETUNE_TRY(opened->dispatcher,
               dispatch_internal::open_with_trials(CublasltDispatcher::open, std::move(cpp),
                                                   opened->trials_path));
  *out = opened.release();
  return {};
}

Status save(const foretune_cublaslt* opened) {
  if (opened == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "foretune must not be NULL");
  }
  return dispatch_internal::save_trials(opened->dispatcher->dispatcher(), opened->trials_path,
                                        "cublaslt");
}

}  // namespace
}  // namespace foretune

int foretune_cublaslt_open(const char* model_path, foretune_cublaslt** out) {
  foretune_cublaslt_options options = {};
  options.model_path = model_path;
  return foretune_cublaslt_open_with(&options, out, nullptr, 0);
}

int foretune_cublaslt_open_with(const foretune_cublaslt_options* options, foretune_cublaslt** out,
                                char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&] {
    return foretune::open(options == nullptr ? foretune_cublaslt_options{} : *options, out);
  });
}

void foretune_cublaslt_close(foretune_cublaslt* foretune) { delete foretune; }

int foretune_cublaslt_save(foretune_cublaslt* foretune, char* message, size_t message_size) {
  return ::foretune::report_errors(message, message_size,
                                   [foretune] { return ::foretune::save(foretune); });
}

int foretune_cublaslt_matmul(foretune_cublaslt* foretune, void* handle, void* matmul_desc,
                             const void* alpha, const void* a, void* a_desc, const void* b,
                             void* b_desc, const void* beta, const void* c, void* c_desc, void* d,
                             void* d_desc, const void* algo, void* workspace,
                             size_t workspace_bytes, void* stream) {
  namespace cublaslt = ::foretune::cublaslt;
  if (foretune == nullptr) {
    return cublaslt::kInvalidValue;
  }
  return foretune->dispatcher->matmul({.handle = static_cast<cublaslt::Handle>(handle),
                                       .descriptor = static_cast<cublaslt::Descriptor>(matmul_desc),
                                       .alpha = alpha,
                                       .a = a,
                                       .a_layout = static_cast<cublaslt::Layout>(a_desc),
                                       .b = b,
                                       .b_layout = static_cast<cublaslt::Layout>(b_desc),
                                       .beta = beta,
                                       .c = c,
                                       .c_layout = static_cast<cublaslt::Layout>(c_desc),
                                       .d = d,
                                       .d_layout = static_cast<cublaslt::Layout>(d_desc),
                                       .algorithm = static_cast<const cublaslt::Algorithm*>(algo),
                                       .workspace = workspace,
                                       .workspace_bytes = workspace_bytes,
                                       .stream = static_cast<::foretune::cuda::Stream>(stream)});
}

size_t foretune_cublaslt_explain(foretune_cublaslt* foretune, void* handle, void* matmul_desc,
                                 void* a_desc, void* b_desc, void* c_desc, void* d_desc,
                                 size_t workspace_bytes, char* text, size_t size) {
  namespace cublaslt = ::foretune::cublaslt;
  ::foretune::copy_text("", text, size);
  if (foretune == nullptr) {
    return 0;
  }
  try {
    const auto decision = foretune->dispatcher->decision(
        {.handle = static_cast<cublaslt::Handle>(handle),
         .descriptor = static_cast<cublaslt::Descriptor>(matmul_desc),
         .a_layout = static_cast<cublaslt::Layout>(a_desc),
         .b_layout = static_cast<cublaslt::Layout>(b_desc),
         .c_layout = static_cast<cublaslt::Layout>(c_desc),
         .d_layout = static_cast<cublaslt::Layout>(d_desc),
         .workspace_bytes = workspace_bytes});
    return decision ? ::foretune::copy_text(decision->text(), text, size) : 0;
  } catch (const std::exception&) {  // memory is short
    return 0;
  }
}
