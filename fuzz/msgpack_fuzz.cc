// MessagePack documents, ours and torch-diode's.
#include "fuzz/exchange_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foretune::fuzz::try_document(std::as_bytes(std::span(data, size)),
                               foretune::ExchangeFormat::kMsgpack,
                               foretune::ExchangeFormat::kDiodeMsgpack);
  return 0;
}
