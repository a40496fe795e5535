// An open GPU with cuDNN, and the family options that select it.
//
//   FORETUNE_TRY(const auto parsed, cuda::parse_options<SessionOptions>(given, name, "configs"));
//   FORETUNE_TRY(const std::shared_ptr<Session> session, Session::open(parsed));
//
// Thread safety: plain values; a session belongs to one thread. Cost: opening takes seconds,
// because the library is large.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/cudnn/conv_data.h"
#include "foretune/cudnn/convolution.h"
#include "foretune/family/family.h"

namespace foretune::cudnn {

// Engines of other algorithms than sums of products need hundreds of megabytes.
inline constexpr std::int64_t kDefaultWorkspaceMb = 1024;

struct SessionOptions : cuda::DeviceOptions {
  SessionOptions() { workspace_mb = kDefaultWorkspaceMb; }

  std::vector<std::string> cudnn{"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  bool deterministic = false;

  static constexpr std::string_view kNames =
      "deterministic, device, workspace_mb, clock_log, driver, nvml, cudnn";
  // As DeviceOptions::take(), with `cudnn` and `deterministic`.
  Result<bool> take(std::string_view name, const std::string& value);
};

struct Session : cuda::DeviceSession {
  std::shared_ptr<const Library> library;
  bool deterministic = false;

  // Errors: kUnsupported when there is no device or library, kIo.
  static Result<std::shared_ptr<Session>> open(const SessionOptions& options);
  // Makes the inputs and the reference of a convolution.
  Result<std::unique_ptr<ConvData>> make_data(const Problem& problem, std::uint64_t seed) const;
  // Returns the convolution of a problem with the plans that it has made. Only the last one is
  // kept.
  Result<std::shared_ptr<Convolution>> convolution(const Problem& problem);
  // Returns `count` handles of the library for threads that work at once.
  Result<std::vector<std::shared_ptr<const Library>>> libraries(std::size_t count);

 private:
  std::shared_ptr<Convolution> last_;
  std::vector<std::shared_ptr<const Library>> libraries_;
};

}  // namespace foretune::cudnn
