#include "foretune/cuda/cudnn_api.h"

#include <array>

#include "foretune/base/text.h"

namespace foretune::cudnn {

Result<std::shared_ptr<const Api>> Api::load(const std::vector<std::string>& libraries) {
  FORETUNE_TRY(const cuda::SharedLibrary library, cuda::SharedLibrary::open_first(libraries));
  return of(library);
}

Result<std::shared_ptr<const Api>> Api::load_or_share(const std::vector<std::string>& libraries) {
  FORETUNE_TRY(const cuda::SharedLibrary library,
               cuda::SharedLibrary::share_or_open_first(libraries));
  return of(library);
}

Result<std::shared_ptr<const Api>> Api::of(const cuda::SharedLibrary& library) {
  auto api = std::make_shared<Api>();
  FORETUNE_TRY_STATUS(library.find("cudnnGetVersion", api->get_version));
  const std::size_t version = api->get_version();
  if (version < kLeastVersion) {
    return fail(ErrorCode::kUnsupported, "cuDNN 9 is needed, and the library's version is ",
                version);
  }
  FORETUNE_TRY_STATUS(library.find("cudnnGetErrorString", api->get_error_string));
  FORETUNE_TRY_STATUS(library.find("cudnnGetLastErrorString", api->get_last_error));
  FORETUNE_TRY_STATUS(library.find("cudnnCreate", api->create));
  FORETUNE_TRY_STATUS(library.find("cudnnDestroy", api->destroy));
  FORETUNE_TRY_STATUS(library.find("cudnnSetStream", api->set_stream));
  FORETUNE_TRY_STATUS(library.find("cudnnGetStream", api->get_stream));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendCreateDescriptor", api->descriptor_create));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendDestroyDescriptor", api->descriptor_destroy));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendFinalize", api->finalize));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendSetAttribute", api->set));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendGetAttribute", api->get));
  FORETUNE_TRY_STATUS(library.find("cudnnBackendExecute", api->execute));
  return api;
}

Status Api::check(int status, std::string_view call) const {
  if (status == kSuccess) {
    return {};
  }
  const char* const text = get_error_string(status);
  std::array<char, 512> detail{};
  get_last_error(detail.data(), detail.size() - 1);
  // An engine may also fail when it is executed, by an internal error that leaves the context
  // usable.
  const bool is_refusal = status >= kBadParameter && status < kExecutionFailed;
  return fail(is_refusal ? ErrorCode::kUnsupported : ErrorCode::kIo, call, ": ",
              text == nullptr ? "unknown status" : text, " (", status, ")",
              detail.front() == '\0' ? "" : ": ", detail.data());
}

}  // namespace foretune::cudnn
