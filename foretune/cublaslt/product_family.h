// Base of the families of products on NVIDIA's devices. `Opened` is Session or derives from it;
// `Base` is Family or an interface that derives from it.
// Thread safety: see Family. Cost: the first use of the device opens it, in about a second.
#pragma once

#include <cstdint>
#include <memory>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cublaslt/session.h"
#include "foretune/cuda/measuring/device_family.h"
#include "foretune/family/family.h"

namespace foretune::cublaslt {

template <class Opened, class Base = Family>
class ProductFamily : public cuda::DeviceFamily<Opened, Base> {
 public:
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const final {
    FORETUNE_TRY(std::unique_ptr<MatmulData> data, matmul_data(problem, seed));
    return data;
  }

 protected:
  using cuda::DeviceFamily<Opened, Base>::DeviceFamily;

  Result<std::unique_ptr<MatmulData>> matmul_data(const Problem& problem,
                                                  std::uint64_t seed) const {
    if (const Support support = this->supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const std::shared_ptr<Opened> session, this->session());
    return session->make_data(problem, seed);
  }
};

}  // namespace foretune::cublaslt
