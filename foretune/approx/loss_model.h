// Predicts how much quality a whole network loses from what each knob does alone.
//
//   const LossModel model = LossModel::learn(effects, samples);
//   ChangeSum sum(effects);
//   sum.choose(3, 2);
//   const double points = model.loss(sum);
//
// P1 adds the changes of the outputs up, P2 the losses: the models of Sharif et al., "ApproxTuner"
// (PPoPP 2021), section 3. Changes of several layers are often smaller together than their sum, and
// what one layer does to another looks like noise. The joint model damps the sum, and counts the
// images that an output with noise still classifies rightly, by their margins. The union counts an
// image once, however many layers lose it. Both are of qualities that count images by the ranks of
// outputs (QualityMetric::ranks()). Networks that were measured decide between the models. Losses
// are in the metric's unit.
//
// Thread safety: plain values, each used by one thread. Cost: at each function; "rows" are images
// times classes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/approx/judge.h"

namespace foretune::approx {

// A position among the knobs of each layer, 0 for the exact one.
using Choices = std::vector<std::uint8_t>;

// How several layers act on each other.
struct Interplay {
  // The change of a layer is divided by 1 and this times the sizes of all other changes.
  double damping = 0;
  // The square of the noise, over that of the outputs' spread, for the product of two sizes.
  double noise = 0;
};

// The losses that models predict; by P1 and P2 alone, others 0, where ranks do not make quality.
struct LossTerms {
  enum Term : std::size_t { kJoint, kP1, kP2, kUnion, kUnionSquared, kCount };
  std::array<double, kCount> values{};  // the square in tenths of the unit
};

// The changes of all layers' choices together. Layers begin exact. Borrows the effects.
class ChangeSum {
 public:
  explicit ChangeSum(const Effects& effects);
  // Cost: one pass over the rows; none for the choice that stands.
  void choose(std::size_t layer, std::uint8_t choice);
  void choose_all(const Choices& choices);
  [[nodiscard]] const Choices& choices() const { return choices_; }
  [[nodiscard]] const Effects& effects() const { return effects_; }

  // Returns the loss by P1. Cost: that of the scores of all images.
  [[nodiscard]] double loss() const;
  // Returns the losses by all models. Cost: as loss(), and a few ns for each image.
  [[nodiscard]] LossTerms losses(const Interplay& interplay) const;
  // The same as if a layer had another choice.
  [[nodiscard]] LossTerms losses_with(const Interplay& interplay, std::size_t layer,
                                      std::uint8_t choice) const;
  // Compares the exact network with P1's. Cost: as loss().
  [[nodiscard]] PairedScores compare() const;

 private:
  // A layer with another choice.
  struct Change {
    std::size_t layer = 0;
    std::uint8_t choice = 0;
  };
  // Factors of the joint model's outputs and of its margins.
  struct JointFactors {
    float sum = 1;       // of the changes that stand
    float weighted = 0;  // of those times their sizes
    float now = 1;       // of the change of the new choice
    float old = 1;       // of that which it replaces
    double margin = 0;
  };
  // Weights of images, by model.
  struct Rights {
    double joint = 0;
    double p1 = 0;
  };
  void count_flips();
  [[nodiscard]] std::vector<double> scores() const;
  [[nodiscard]] double p2_loss(const Change& change) const;
  [[nodiscard]] double p1_loss(const Change& change) const;
  [[nodiscard]] JointFactors joint_factors(const Interplay& interplay, const Change& change) const;
  // For one rank, and for more.
  [[nodiscard]] Rights largest_rights(const Change& change, const JointFactors& factors) const;
  [[nodiscard]] Rights ranked_rights(const Change& change, const JointFactors& factors) const;
  [[nodiscard]] double lost_by_any(const Change& change) const;
  [[nodiscard]] const std::vector<float>& changes_of(std::size_t layer, std::uint8_t choice) const;
  [[nodiscard]] double size_of(std::size_t layer, std::uint8_t choice) const {
    return effects_.layers[layer].knobs[choice].size;
  }

  // Returns -1 for each image that the choice alone loses, 1 for each that it gains; nothing where
  // there are no ranks.
  [[nodiscard]] const std::vector<std::int8_t>& flips_of(std::size_t layer,
                                                         std::uint8_t choice) const {
    return flips_[layer][choice];
  }

  const Effects& effects_;
  std::vector<float> none_;
  std::vector<std::vector<std::vector<std::int8_t>>> flips_;
  double spread_ = 0;  // of the exact outputs
  Choices choices_;
  std::vector<float> changes_;        // their sum
  std::vector<float> weighted_;       // the sum of changes times their sizes
  std::vector<std::uint8_t> losing_;  // layers that lose an image alone
  std::vector<std::uint8_t> gaining_;
  double sizes_ = 0;
  double squares_ = 0;  // of sizes
};

// A network that was measured on the images of the effects.
struct LossSample {
  Choices choices;
  double loss = 0;
};

class LossModel {
 public:
  // The joint model, alone or weighed with P2 or with the union.
  enum class Kind : std::uint8_t { kP1, kP2, kJoint, kJointAndP2, kJointAndUnion };

  // P1.
  LossModel() = default;
  // Fits every kind that the quality has, and takes the one that predicts networks best that it was
  // not fitted to, in five parts of the samples. P1 for fewer than ten samples.
  static LossModel learn(const Effects& effects, std::span<const LossSample> samples);

  // Returns the predicted loss. Cost: as ChangeSum::losses().
  [[nodiscard]] double loss(const LossTerms& terms) const;
  [[nodiscard]] double loss(const ChangeSum& sum) const { return loss(sum.losses(interplay_)); }
  [[nodiscard]] const Interplay& interplay() const { return interplay_; }
  [[nodiscard]] std::span<const double> weights() const { return weights_; }
  [[nodiscard]] Kind kind() const { return kind_; }
  // Returns the mean absolute error over samples that the model was not fitted to; 0 for none.
  [[nodiscard]] double error() const { return error_; }

 private:
  Interplay interplay_;
  std::array<double, LossTerms::kCount> weights_{0, 1};
  Kind kind_ = Kind::kP1;
  double error_ = 0;
};

// Returns the name of a kind, as JSON has it.
[[nodiscard]] std::string_view to_string(LossModel::Kind kind);

}  // namespace foretune::approx
