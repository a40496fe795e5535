#include "foretune/cublaslt/session.h"

#include <utility>

#include "foretune/base/text.h"

namespace foretune::cublaslt {

Result<bool> SessionOptions::take(std::string_view name, const std::string& value) {
  if (name == "cublaslt") {
    cublaslt = {value};
    return true;
  }
  return DeviceOptions::take(name, value);
}

Result<std::shared_ptr<Session>> Session::open(const SessionOptions& options) {
  auto session = std::make_shared<Session>();
  FORETUNE_TRY_STATUS(session->open_device(options));
  FORETUNE_TRY(std::shared_ptr<const Api> api, Api::load(options.cublaslt));
  const std::size_t version = api->get_version();
  FORETUNE_TRY(session->library, Library::open(std::move(api)));
  session->fingerprint.isa += concat(" cublaslt-", version / 10000, ".", version % 10000 / 100);
  return session;
}

Result<std::unique_ptr<MatmulData>> Session::make_data(const Problem& problem,
                                                       std::uint64_t seed) const {
  FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
  return MatmulData::create(device, library, gemm, workspace_bytes, seed);
}

}  // namespace foretune::cublaslt
