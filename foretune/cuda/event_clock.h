// Times work that a program enqueues on its own streams, without ever waiting for it: a pair of
// events encloses the work, and their distance is read when both have passed.
//
//   auto span = clock.begin(stream);
//   launch(stream);
//   if (span && clock.end(*span, stream)) spans.push_back(*std::move(span));
//   ... later ...
//   if (const auto ns = clock.read(span)) ...
//
// The time includes what the device waits for the host between the two events, some microseconds
// where it has nothing else to do.
//
// Thread safety: any number of threads, each with spans of its own. Cost: two records, about a
// microsecond each.
#pragma once

#include <memory>
#include <optional>

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::cuda {

class EventClock {
 public:
  // Two events, which it destroys.
  class Span {
   public:
    Span(Span&& other) noexcept;
    Span& operator=(Span&& other) noexcept;
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span();

   private:
    friend class EventClock;
    explicit Span(std::shared_ptr<const DriverApi> api) : api_(std::move(api)) {}
    std::shared_ptr<const DriverApi> api_;
    Event begin_ = nullptr;
    Event end_ = nullptr;
  };

  explicit EventClock(std::shared_ptr<const DriverApi> api) : api_(std::move(api)) {}

  // Returns nothing where the stream is being captured, because a captured event has no time, and
  // where the driver refuses.
  [[nodiscard]] std::optional<Span> begin(Stream stream) const;
  // Returns false where the driver refuses; the span then has no time.
  [[nodiscard]] bool end(const Span& span, Stream stream) const;
  // Returns nanoseconds; nothing while the work goes on. Errors: kIo.
  [[nodiscard]] Result<std::optional<double>> read(const Span& span) const;
  // Returns true while the stream is being captured, and where the driver does not say.
  [[nodiscard]] bool is_capturing(Stream stream) const;

 private:
  std::shared_ptr<const DriverApi> api_;
};

}  // namespace foretune::cuda
