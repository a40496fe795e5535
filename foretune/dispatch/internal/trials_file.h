// The file of trials that the interfaces in C are opened with. Internal to the module.
// Thread safety: free functions.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/dispatch/dispatcher.h"

namespace foretune::dispatch_internal {

// Returns make(options), a front end (ConvDispatcher, CudnnDispatcher) that has read the file if
// there is one yet, and keeps trials for save_trials(). An empty path: neither. Errors also: as
// Dispatcher::load_choices().
template <class Make, class Options>
auto open_with_trials(Make make, Options options, const std::filesystem::path& path)
    -> decltype(make(std::move(options))) {
  options.dispatch.keep_trials = !path.empty();
  auto made = make(std::move(options));
  std::error_code none;
  if (made && std::filesystem::exists(path, none)) {
    FORETUNE_TRY_STATUS((*made)->dispatcher().load_choices(path));
  }
  return made;
}

// Appends to the file what trials measured since the last call. Errors: kInvalidArgument for an
// empty path; else as Dispatcher::append_trials().
inline Status save_trials(Dispatcher& dispatcher, const std::filesystem::path& path,
                          std::string_view family) {
  if (path.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no file was given for trials");
  }
  FORETUNE_TRY_STATUS(dispatcher.append_trials(path, family));
  return {};
}

}  // namespace foretune::dispatch_internal
