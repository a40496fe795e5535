// How the trainings of a neural model went: losses over epochs, as its model card keeps them
// (docs/reference/file-formats/foreign-models.md), told in a line and drawn.
//
//   const TrainingCurves trained = training_curves(model.card_json);
//   FORETUNE_TRY_STATUS(write_text_file_atomically("loss.svg", loss_svg(trained, source)));
//
// Thread safety: plain values and free functions. Cost: linear in the card.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretune {

struct TrainingCurve {
  struct Point {
    std::uint32_t epoch = 0;  // from 1
    double train_loss = 0;
    double stop_loss = 0;  // of the problems that decide when to stop; NaN without
    bool operator==(const Point&) const = default;
  };
  std::string name;       // "fold 2", "all data, network 1"
  bool is_whole = false;  // on all data: what the model asks
  std::uint32_t epochs = 0;
  Point best;                 // whose weights were kept
  std::vector<Point> points;  // some of the epochs, in their order, and the best
};

struct TrainingCurves {
  std::string loss;  // what is minimised: "mse"
  std::vector<TrainingCurve> curves;
};

// Nothing for models that have none. A curve that does not hold together is left out: cards come
// from files that others may have written.
TrainingCurves training_curves(std::string_view card_json);

// For reading; as it is where it has none.
std::string card_without_curves(const std::string& card_json);

}  // namespace foretune
