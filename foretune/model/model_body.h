// The part of a model that its kind alone understands: trees, networks, whole models of several
// metrics. A folder below kinds/ defines each, with a row in the table of kinds (model_kind.h).
//
// Thread safety: bodies are immutable once a model holds them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace foretune {

class ModelBody {
 public:
  virtual ~ModelBody() = default;
  // Returns true when the other one, of any kind, predicts the same by the same means.
  [[nodiscard]] virtual bool equals(const ModelBody& other) const = 0;
};

// A body as a model holds it: shared between copies, compared by its content.
class SharedBody {
 public:
  SharedBody() = default;
  template <typename Body>
  SharedBody(std::shared_ptr<Body> body)  // NOLINT(google-explicit-constructor)
      : body_(std::move(body)) {}

  // nullptr where the model was read without it.
  [[nodiscard]] const ModelBody* get() const { return body_.get(); }
  explicit operator bool() const { return body_ != nullptr; }
  bool operator==(const SharedBody& other) const {
    return body_ == other.body_ ||
           (body_ != nullptr && other.body_ != nullptr && body_->equals(*other.body_));
  }

 private:
  std::shared_ptr<const ModelBody> body_;
};

// The body of a model that is a list of parts: of trees, of networks.
template <typename Part>
class PartsBody final : public ModelBody {
 public:
  explicit PartsBody(std::vector<Part> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] bool equals(const ModelBody& other) const override {
    const auto* const same = dynamic_cast<const PartsBody*>(&other);
    return same != nullptr && same->parts_ == parts_;
  }

 private:
  std::vector<Part> parts_;
};

// The body as the type that one kind gives it; nullptr where it is of another kind or not there.
template <typename Body>
const Body* body_as(const SharedBody& body) {
  return dynamic_cast<const Body*>(body.get());
}

// Returns the parts of a PartsBody; none where the body is of another kind or not there.
template <typename Part>
const std::vector<Part>& parts_of(const SharedBody& body) {
  static const std::vector<Part> none;
  const auto* const parts = body_as<PartsBody<Part>>(body);
  return parts == nullptr ? none : parts->parts();
}

}  // namespace foretune
