// Model cards, any text: what is read of how networks were trained can be drawn, with numbers
// alone.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "foretune/evaluate/training_curves.h"
#include "foretune/report/evaluation_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string card(reinterpret_cast<const char*>(data), size);
  foretune::TrainingCurves trained = foretune::training_curves(card);
  trained.loss.clear();  // may say anything
  const std::string svg = foretune::loss_svg(trained, "source");
  for (const std::string_view word : {"nan", "inf"}) {
    if (svg.find(word) != std::string::npos) {
      std::abort();
    }
  }
  if (!foretune::training_curves(foretune::card_without_curves(card)).curves.empty()) {
    std::abort();
  }
  return 0;
}
