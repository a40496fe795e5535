// Files of choices: all of them are taken over and written again the same, or none with a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/dispatch/dispatcher.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

// Makes no kernels: choices are taken over before any is needed.
class Provider final : public foretune::FamilyProvider {
 public:
  Provider() {
    foretune::FamilyOptions options;
    options.fingerprint.device = "fuzzed";
    options.fingerprint.hardware.set(foretune::HardwareValue::kVectorBytes, 64);
    options.fingerprint.hardware.set(foretune::HardwareValue::kCores, 4);
    auto made = foretune::create_cpu_gemm(options);
    require(made.has_value());
    family_ = std::move(*made);
  }
  const foretune::Family& family() const override { return *family_; }
  foretune::Result<std::shared_ptr<const void>> make_kernel(
      const foretune::Problem& /*problem*/, const foretune::Config& /*config*/) const override {
    return foretune::fail(foretune::ErrorCode::kUnsupported, "not here");
  }

 private:
  std::unique_ptr<foretune::CpuGemm> family_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kProvider = std::make_shared<Provider>();
  foretune::Dispatcher dispatcher({});
  require(dispatcher.add(kProvider, std::nullopt).has_value());
  // The first byte says whether a right head is put in front: few inputs would find it.
  std::string text = size > 0 && data[0] != 0 ? dispatcher.choices_text() : std::string();
  if (size > 0) {
    text.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  }
  const auto taken = dispatcher.take_choices(text);
  if (!taken) {
    require(!taken.error().message.empty());
    return 0;
  }
  const std::string written = dispatcher.choices_text();
  foretune::Dispatcher other({});
  require(other.add(kProvider, std::nullopt).has_value());
  const auto again = other.take_choices(written);
  require(again.has_value() && *again == *taken && other.choices_text() == written);
  return 0;
}
