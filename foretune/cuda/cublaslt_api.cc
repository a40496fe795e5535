#include "foretune/cuda/cublaslt_api.h"

#include "foretune/base/text.h"

namespace foretune::cublaslt {

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
  FORETUNE_TRY_STATUS(library.find("cublasLtGetVersion", api->get_version));
  FORETUNE_TRY_STATUS(library.find("cublasLtGetStatusString", api->get_status_string));
  FORETUNE_TRY_STATUS(library.find("cublasLtCreate", api->create));
  FORETUNE_TRY_STATUS(library.find("cublasLtDestroy", api->destroy));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulDescCreate", api->descriptor_create));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulDescDestroy", api->descriptor_destroy));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulDescSetAttribute", api->descriptor_set));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulDescGetAttribute", api->descriptor_get));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatrixLayoutCreate", api->layout_create));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatrixLayoutDestroy", api->layout_destroy));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatrixLayoutSetAttribute", api->layout_set));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatrixLayoutGetAttribute", api->layout_get));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulPreferenceCreate", api->preference_create));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulPreferenceDestroy", api->preference_destroy));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulPreferenceSetAttribute", api->preference_set));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoGetIds", api->algorithm_ids));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoInit", api->algorithm_init));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoCheck", api->algorithm_check));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoGetHeuristic", api->algorithm_heuristic));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoCapGetAttribute", api->capability_get));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoConfigSetAttribute", api->config_set));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmulAlgoConfigGetAttribute", api->config_get));
  FORETUNE_TRY_STATUS(library.find("cublasLtMatmul", api->matmul));
  return api;
}

Status Api::check(int status, std::string_view call) const {
  if (status == kSuccess) {
    return {};
  }
  const bool about_config = status == kNotSupported || status == kInvalidValue;
  const char* const text = get_status_string(status);
  return fail(about_config ? ErrorCode::kUnsupported : ErrorCode::kIo, call, ": ",
              text == nullptr ? "unknown status" : text, " (", status, ")");
}

}  // namespace foretune::cublaslt
