#include "foretune/cuda/event_clock.h"

#include <utility>

namespace foretune::cuda {

EventClock::Span::Span(Span&& other) noexcept { *this = std::move(other); }

EventClock::Span& EventClock::Span::operator=(Span&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  return *this;
}

EventClock::Span::~Span() {
  for (const Event event : {begin_, end_}) {
    if (event != nullptr) {
      api_->event_destroy(event);  // the driver waits until it has passed
    }
  }
}

bool EventClock::is_capturing(Stream stream) const {
  int status = 0;
  return api_->stream_is_capturing(stream, &status) != kDriverSuccess || status != kCaptureNone;
}

std::optional<EventClock::Span> EventClock::begin(Stream stream) const {
  if (is_capturing(stream)) {
    return std::nullopt;
  }
  Span span(api_);
  if (api_->event_create(&span.begin_, kEventDefault) != kDriverSuccess ||
      api_->event_create(&span.end_, kEventDefault) != kDriverSuccess ||
      api_->event_record(span.begin_, stream) != kDriverSuccess) {
    return std::nullopt;
  }
  return span;
}

bool EventClock::end(const Span& span, Stream stream) const {
  return api_->event_record(span.end_, stream) == kDriverSuccess;
}

Result<std::optional<double>> EventClock::read(const Span& span) const {
  float milliseconds = 0;
  const int code = api_->event_elapsed_ms(&milliseconds, span.begin_, span.end_);
  if (code == kDriverNotReady) {
    return std::optional<double>();
  }
  FORETUNE_TRY_STATUS(api_->check(code, "cuEventElapsedTime"));
  return std::optional(1e6 * static_cast<double>(milliseconds));
}

}  // namespace foretune::cuda
