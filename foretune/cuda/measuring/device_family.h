// Base of the families on NVIDIA's devices: everything that does not depend on their kernels.
// `Opened` is DeviceSession or derives from it; `Base` is Family or an interface that derives from
// it.
// Thread safety: see Family. Cost: the first use of the device opens it, in about a second.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/family/family.h"

namespace foretune::cuda {

template <class Opened, class Base = Family>
class DeviceFamily : public Base {
 public:
  const FamilyInfo& info() const final { return info_; }

  std::string artifact_key(const Problem& /*problem*/, const Config& config) const final {
    return to_text(info_.config_schema, config);
  }

  Result<Fingerprint> read_device() const final {
    FORETUNE_TRY(const std::shared_ptr<Opened> session, this->session());
    return session->fingerprint;
  }

  std::optional<DeviceConditions> conditions() const final {
    const std::shared_ptr<Opened> session = if_open();
    return session == nullptr ? DeviceConditions{} : session->conditions();
  }

  Result<double> read_energy_j() const final {
    FORETUNE_TRY(const std::shared_ptr<Opened> session, this->session());
    return session->read_energy_j();
  }

 protected:
  explicit DeviceFamily(FamilyInfo info) : info_(std::move(info)) {}

  virtual Result<std::shared_ptr<Opened>> open() const = 0;

  // Opens the session when it is first needed, and keeps it. Errors: those of open(), which is
  // called again the next time.
  Result<std::shared_ptr<Opened>> session() const {
    const std::lock_guard lock(mutex_);
    if (session_ == nullptr) {
      FORETUNE_TRY(session_, open());
    }
    return session_;
  }

 private:
  std::shared_ptr<Opened> if_open() const {
    const std::lock_guard lock(mutex_);
    return session_;
  }

  FamilyInfo info_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Opened> session_;
};

}  // namespace foretune::cuda
