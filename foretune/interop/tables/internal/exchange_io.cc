#include "foretune/interop/tables/internal/exchange_io.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "foretune/base/check.h"
#include "foretune/base/file.h"
#include "foretune/base/text.h"

namespace foretune::dataset_internal {

// Reasons name values; a file of nonsense has as many as rows, and nobody reads them all.
constexpr std::size_t kMaxReasons = 100;

void ImportCounter::count(Counts& counts, std::vector<std::string>& places, const std::string& what,
                          const std::string& place) {
  const auto found = std::find_if(counts.begin(), counts.end(),
                                  [&](const auto& entry) { return entry.first == what; });
  if (found != counts.end()) {
    ++found->second;
  } else if (counts.size() > kMaxReasons) {
    ++counts.back().second;
  } else if (counts.size() == kMaxReasons) {
    counts.emplace_back("for further reasons", 1);
    places.push_back(place);
  } else {
    counts.emplace_back(what, 1);
    places.push_back(place);
  }
}

ImportCounter::Counts ImportCounter::with_places(const Counts& counts,
                                                 const std::vector<std::string>& places) {
  Counts out = counts;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!places[i].empty()) {
      out[i].first += concat(out[i].second > 1 ? " (first: " : " (", places[i], ")");
    }
  }
  return out;
}

void ImportCounter::drop(const std::string& reason, const std::string& place) {
  count(report_.dropped, dropped_places_, reason, place);
}

void ImportCounter::note(const std::string& remark, const std::string& place) {
  count(report_.notes, noted_places_, remark, place);
}

Status ImportCounter::finish(ImportReport* report) const {
  const Counts dropped = with_places(report_.dropped, dropped_places_);
  if (report != nullptr) {
    *report = {.rows_read = report_.rows_read,
               .rows_kept = report_.rows_kept,
               .dropped = dropped,
               .notes = with_places(report_.notes, noted_places_)};
  }
  if (report_.rows_kept == 0 && !dropped.empty()) {
    return fail(ErrorCode::kCorrupt, "none of its ", report_.rows_read,
                " rows can be used: ", dropped[0].first);
  }
  return {};
}

double short_double(float value) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  const auto wide = parse_double(std::string_view(buffer.data(), end.ptr));
  // Rounding twice, to a double and then to a float, may end at the neighbour.
  return wide && static_cast<float>(*wide) == value ? *wide : static_cast<double>(value);
}

std::string float_text(float value) { return concat(short_double(value)); }

}  // namespace foretune::dataset_internal
