#include "epoch_log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"

namespace foretune::network_training {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Five digits are enough for people.
std::string short_text(double value) {
  return std::isfinite(value) ? significant(value, 5) : "nan";
}

Status print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return fail(ErrorCode::kCancelled, "nobody reads the progress any more");
    }
    text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return {};
}

std::string table_of(const std::vector<TrainedNetwork::Epoch>& epochs) {
  std::string out = "epoch,train_loss,stop_loss,stop_efficiency,learning_rate,seconds\n";
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const TrainedNetwork::Epoch& epoch = epochs[i];
    const auto cell = [](double value) {
      return std::isnan(value) ? std::string() : concat(value);
    };
    out += concat(i + 1, ",", epoch.train_loss, ",", cell(epoch.stop_loss), ",",
                  cell(epoch.stop_efficiency), ",", epoch.learning_rate, ",", epoch.seconds, "\n");
  }
  return out;
}

}  // namespace

Result<EpochLog> EpochLog::create(const TrainOptions& options) {
  EpochLog log;
  log.shows_progress_ = options.shows_progress;
  log.num_epochs_ = options.num_epochs;
  log.folder_ = options.log_dir;
  if (!log.folder_.empty()) {
    FORETUNE_TRY(log.curves_, formats::TensorboardWriter::create(log.folder_, now_s(), "train"));
  }
  return log;
}

Status EpochLog::add(const std::vector<TrainedNetwork::Epoch>& epochs, double samples_per_second) {
  const TrainedNetwork::Epoch& epoch = epochs.back();
  if (curves_) {
    FORETUNE_TRY_STATUS(
        add_curves(epoch, static_cast<std::int64_t>(epochs.size()), samples_per_second));
    FORETUNE_TRY_STATUS(write_text_file_atomically(folder_ / "epochs.csv", table_of(epochs)));
  }
  if (!shows_progress_) {
    return {};
  }
  return print(concat(
      "epoch ", epochs.size(), " of ", num_epochs_, " train ", short_text(epoch.train_loss),
      " stop ", short_text(epoch.stop_loss), " efficiency ", short_text(epoch.stop_efficiency),
      " lr ", short_text(epoch.learning_rate), " seconds ", short_text(epoch.seconds), "\n"));
}

Status EpochLog::add_curves(const TrainedNetwork::Epoch& epoch, std::int64_t number,
                            double samples_per_second) {
  const std::array<std::pair<std::string_view, double>, 5> scalars{
      {{"loss/train", epoch.train_loss},
       {"loss/stop", epoch.stop_loss},
       {"efficiency/stop", epoch.stop_efficiency},
       {"learning_rate", epoch.learning_rate},
       {"samples_per_second", samples_per_second}}};
  for (const auto& [tag, value] : scalars) {
    if (std::isfinite(value)) {
      FORETUNE_TRY_STATUS(curves_->add_scalar(tag, number, value, now_s()));
    }
  }
  return {};
}

}  // namespace foretune::network_training
