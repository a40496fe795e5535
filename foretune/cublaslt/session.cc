#include "foretune/cublaslt/session.h"

#include <utility>

#include "foretune/base/text.h"

namespace foretune::cublaslt {

Result<SessionOptions> SessionOptions::parse(const FamilyOptions& options, std::string_view family,
                                             std::string_view file_option) {
  SessionOptions parsed;
  for (const auto& [name, value] : options.parameters) {
    if (name == file_option) {
      parsed.file = value;
      continue;
    }
    if (name == "cublaslt") {
      parsed.cublaslt = {value};
      continue;
    }
    FORETUNE_TRY(const bool is_known, parsed.take(name, value));
    if (!is_known) {
      return fail(ErrorCode::kInvalidArgument, family, " has no option '", name,
                  "'; it has: ", file_option,
                  ", device, workspace_mb, clock_log, driver, nvml, cublaslt");
    }
  }
  return parsed;
}

Support SessionOptions::available(const Result<SessionOptions>& parsed) {
  return parsed ? parsed->DeviceOptions::available() : Support::yes();
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

Support fits_memory(const GemmProblem& problem, double memory_bytes) {
  const double wide = 4.0 * problem.bytes() / bytes_per_element(problem.dtype());
  return cuda::fits_memory(problem.bytes() + wide, memory_bytes);
}

}  // namespace foretune::cublaslt
