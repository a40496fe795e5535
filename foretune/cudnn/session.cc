#include "foretune/cudnn/session.h"

#include <utility>

#include "foretune/base/text.h"

namespace foretune::cudnn {

Result<SessionOptions> SessionOptions::parse(const FamilyOptions& options, std::string_view family,
                                             std::string_view file_option) {
  SessionOptions parsed;
  for (const auto& [name, value] : options.parameters) {
    if (name == file_option) {
      parsed.file = value;
      continue;
    }
    if (name == "cudnn") {
      parsed.cudnn = {value};
      continue;
    }
    if (name == "deterministic") {
      FORETUNE_TRY(const std::int64_t flag, cuda::parse_option_number(name, value, 0, 1));
      parsed.deterministic = flag != 0;
      continue;
    }
    FORETUNE_TRY(const bool is_known, parsed.take(name, value));
    if (!is_known) {
      return fail(ErrorCode::kInvalidArgument, family, " has no option '", name,
                  "'; it has: ", file_option,
                  ", deterministic, device, workspace_mb, clock_log, driver, nvml, cudnn");
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
  FORETUNE_TRY(std::shared_ptr<const Api> api, Api::load(options.cudnn));
  const std::size_t version = api->get_version();
  FORETUNE_TRY(session->library, Library::open(std::move(api), session->device->stream()));
  session->fingerprint.isa += concat(" cudnn-", version / 10000, ".", version % 10000 / 100);
  session->deterministic = options.deterministic;
  if (options.deterministic) {
    // Ranks count only what may be used, so that they mean other kernels.
    session->fingerprint.isa += " deterministic";
  }
  return session;
}

Result<std::unique_ptr<ConvData>> Session::make_data(const Problem& problem,
                                                     std::uint64_t seed) const {
  FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
  return ConvData::create(device, conv, workspace_bytes, seed);
}

Result<std::shared_ptr<Convolution>> Session::convolution(const Problem& problem) {
  FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
  if (last_ == nullptr || last_->problem() != conv) {
    FORETUNE_TRY(last_, Convolution::create(
                            library, conv,
                            {.workspace_bytes = workspace_bytes, .deterministic = deterministic}));
  }
  return last_;
}

Result<std::vector<std::shared_ptr<const Library>>> Session::libraries(std::size_t count) {
  while (libraries_.size() < count) {
    FORETUNE_TRY(std::shared_ptr<const Library> another,
                 Library::open(library->api(), device->stream()));
    libraries_.push_back(std::move(another));
  }
  return std::vector<std::shared_ptr<const Library>>(
      libraries_.begin(), libraries_.begin() + static_cast<std::ptrdiff_t>(count));
}

Support fits_memory(const ConvProblem& problem, double memory_bytes) {
  const double wide = 4.0 * problem.bytes() / bytes_per_element(problem.dtype());
  return cuda::fits_memory(problem.bytes() + wide, memory_bytes);
}

}  // namespace foretune::cudnn
