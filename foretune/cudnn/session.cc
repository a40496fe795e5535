#include "foretune/cudnn/session.h"

#include <utility>

#include "foretune/base/text.h"

namespace foretune::cudnn {

Result<bool> SessionOptions::take(std::string_view name, const std::string& value) {
  if (name == "cudnn") {
    cudnn = {value};
    return true;
  }
  if (name == "deterministic") {
    FORETUNE_TRY(const std::int64_t flag, cuda::parse_option_number(name, value, 0, 1));
    deterministic = flag != 0;
    return true;
  }
  return DeviceOptions::take(name, value);
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

}  // namespace foretune::cudnn
