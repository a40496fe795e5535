#include "foretune/model/applicability_domain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// A size that hardly varied in training is not measured with a finer ruler than this (log2).
constexpr double kMinDeviation = 0.5;
// Quantile of the distances between training problems that still counts as inside.
constexpr double kInsideQuantile = 0.99;

double log2_size(std::int64_t size) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(size, 1)));
}

// Logarithms of the sizes that nearly all problems have: computing the twenty of a convolution
// takes as long as everything else about it.
constexpr std::int64_t kTabulated = 2048;
using Logarithms = std::array<float, kTabulated>;

Logarithms tabulate() {
  Logarithms out{};
  for (std::size_t size = 0; size < out.size(); ++size) {
    out[size] = static_cast<float>(log2_size(static_cast<std::int64_t>(size)));
  }
  return out;
}

float log2_float(std::int64_t size) {
  static const Logarithms table = tabulate();
  return size < kTabulated ? table[static_cast<std::size_t>(std::max<std::int64_t>(size, 0))]
                           : static_cast<float>(log2_size(size));
}

double standard_deviation(std::span<const double> values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

void split_fields(const ProblemSchema& schema, std::span<const Problem> problems,
                  ApplicabilityDomain& domain) {
  std::vector<double> logs(problems.size());
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].is_origin) {
      continue;
    }
    const auto field = static_cast<std::uint8_t>(i);
    const std::size_t labels = schema.fields[i].labels.size();
    if (labels > 0 && labels <= ApplicabilityDomain::kMaxLabels) {
      std::uint64_t seen = 0;
      for (const Problem& problem : problems) {
        seen |= std::uint64_t{1} << static_cast<unsigned>(problem.field(i));
      }
      domain.labels.push_back({.field = field, .seen = seen});
    } else if (labels == 0 && domain.sizes.size() < ApplicabilityDomain::kMaxSizes) {
      std::transform(problems.begin(), problems.end(), logs.begin(),
                     [i](const Problem& problem) { return log2_size(problem.field(i)); });
      domain.sizes.push_back(
          {.field = field,
           .per_log2 = static_cast<float>(1 / std::max(kMinDeviation, standard_deviation(logs)))});
    }
  }
}

using Point = std::array<float, ApplicabilityDomain::kMaxSizes>;

Point point_of(const ApplicabilityDomain& domain, std::span<const std::int64_t> fields) {
  Point point{};
  for (std::size_t i = 0; i < domain.sizes.size(); ++i) {
    point[i] = domain.coordinate(i, fields);
  }
  return point;
}

float squared_distance(std::span<const float> a, const Point& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

// The distance of every point to the nearest other one.
std::vector<double> gaps_between(const ApplicabilityDomain& domain) {
  const std::size_t width = domain.sizes.size();
  const std::size_t count = domain.points.size() / width;
  const auto at = [&](std::size_t i) { return std::span(domain.points).subspan(i * width, width); };
  std::vector<double> gaps;
  for (std::size_t i = 0; i < count; ++i) {
    Point point{};
    std::copy(at(i).begin(), at(i).end(), point.begin());
    float nearest = std::numeric_limits<float>::infinity();
    for (std::size_t k = 0; k < count; ++k) {
      nearest = k == i ? nearest : std::min(nearest, squared_distance(at(k), point));
    }
    gaps.push_back(std::sqrt(static_cast<double>(nearest)));
  }
  return gaps;
}

}  // namespace

ApplicabilityDomain ApplicabilityDomain::fit(std::span<const Problem> problems) {
  FORETUNE_CHECK(!problems.empty());
  ApplicabilityDomain domain;
  split_fields(problems[0].schema(), problems, domain);
  // Problems of the same sizes are one point. In order of value, whatever the order of measuring.
  std::set<Point> distinct;
  for (const Problem& problem : problems) {
    distinct.insert(point_of(domain, problem.fields()));
  }
  const std::size_t step = (distinct.size() + kMaxPoints - 1) / kMaxPoints;
  std::size_t number = 0;
  for (const Point& point : distinct) {
    if (number++ % step == 0) {
      domain.points.insert(domain.points.end(), point.begin(),
                           point.begin() + static_cast<std::ptrdiff_t>(domain.sizes.size()));
    }
  }
  if (!domain.sizes.empty() && domain.points.size() > domain.sizes.size()) {
    domain.limit = static_cast<float>(quantile(gaps_between(domain), kInsideQuantile));
  }
  return domain;
}

float ApplicabilityDomain::coordinate(std::size_t size,
                                      std::span<const std::int64_t> fields) const noexcept {
  return log2_float(fields[sizes[size].field]) * sizes[size].per_log2;
}

bool ApplicabilityDomain::is_inside(std::span<const std::int64_t> fields) const noexcept {
  for (const Label& label : labels) {
    if (!label.occurred(fields[label.field])) {
      return false;
    }
  }
  const std::size_t width = sizes.size();
  const Point point = point_of(*this, fields);
  const float most = limit * limit;
  for (std::size_t at = 0; at < points.size(); at += width) {
    if (squared_distance(std::span(points).subspan(at, width), point) <= most) {
      return true;
    }
  }
  return sizes.empty();
}

DomainDistance ApplicabilityDomain::distance(std::span<const std::int64_t> fields) const noexcept {
  DomainDistance out;
  for (const Label& label : labels) {
    if (!label.occurred(fields[label.field])) {
      return {.inside = false, .is_label = true, .field = label.field};
    }
  }
  const std::size_t width = sizes.size();
  const Point point = point_of(*this, fields);
  float nearest = std::numeric_limits<float>::infinity();
  std::size_t nearest_at = 0;
  for (std::size_t at = 0; at < points.size(); at += width) {
    const float squared = squared_distance(std::span(points).subspan(at, width), point);
    if (squared < nearest) {
      nearest = squared;
      nearest_at = at;
    }
  }
  if (width == 0) {
    return out;
  }
  out.inside = nearest <= limit * limit;
  out.distance = std::sqrt(static_cast<double>(nearest));
  float most = -1;
  for (std::size_t i = 0; i < width; ++i) {
    const float apart = std::abs(points[nearest_at + i] - point[i]);
    if (apart > most) {
      most = apart;
      out.field = sizes[i].field;
      out.nearest_value =
          std::round(std::exp2(static_cast<double>(points[nearest_at + i] / sizes[i].per_log2)));
    }
  }
  return out;
}

std::string ApplicabilityDomain::explain(const ProblemSchema& schema,
                                         std::span<const std::int64_t> fields) const {
  const DomainDistance found = distance(fields);
  if (found.inside) {
    return {};
  }
  const ProblemField& field = schema.fields[found.field];
  const std::int64_t value = fields[found.field];
  if (found.is_label) {
    const bool known = value >= 0 && static_cast<std::size_t>(value) < field.labels.size();
    return concat(
        "no training problem has ", field.name, "=",
        known ? std::string(field.labels[static_cast<std::size_t>(value)]) : concat(value));
  }
  return concat(field.name, "=", value, " is far from every training problem: the nearest has ",
                field.name, "=", found.nearest_value, " and is ", fixed(found.distance, 2),
                " standard deviations away, where at most ", fixed(static_cast<double>(limit), 2),
                " count as inside");
}

Status ApplicabilityDomain::validate(std::size_t fields) const {
  bool good = sizes.size() <= kMaxSizes && limit >= 0 && std::isfinite(limit) &&
              (sizes.empty() ? points.empty()
                             : !points.empty() && points.size() % sizes.size() == 0 &&
                                   points.size() / sizes.size() <= kMaxPoints);
  for (const Size& size : sizes) {
    good = good && size.field < fields && size.per_log2 > 0 && std::isfinite(size.per_log2);
  }
  for (const Label& label : labels) {
    good = good && label.field < fields;
  }
  for (const float value : points) {
    good = good && std::isfinite(value);
  }
  return good
             ? Status()
             : Status(fail(ErrorCode::kCorrupt, "the model's applicability domain makes no sense"));
}

void put_applicability_domain(ByteWriter& writer, const ApplicabilityDomain& domain) {
  writer.put_varint(domain.sizes.size());
  for (const ApplicabilityDomain::Size& size : domain.sizes) {
    writer.put(size.field, size.per_log2);
  }
  writer.put_varint(domain.labels.size());
  for (const ApplicabilityDomain::Label& label : domain.labels) {
    writer.put(label.field, label.seen);
  }
  writer.put(domain.limit);
  writer.put_varint(domain.points.size());
  for (const float value : domain.points) {
    writer.put(value);
  }
}

Result<ApplicabilityDomain> get_applicability_domain(ByteReader& reader) {
  ApplicabilityDomain domain;
  domain.sizes.resize(reader.get_count(1 + sizeof(float)));
  for (ApplicabilityDomain::Size& size : domain.sizes) {
    size.field = reader.get<std::uint8_t>();
    size.per_log2 = reader.get<float>();
  }
  domain.labels.resize(reader.get_count(1 + sizeof(std::uint64_t)));
  for (ApplicabilityDomain::Label& label : domain.labels) {
    label.field = reader.get<std::uint8_t>();
    label.seen = reader.get<std::uint64_t>();
  }
  domain.limit = reader.get<float>();
  domain.points.resize(reader.get_count(sizeof(float)));
  for (float& value : domain.points) {
    value = reader.get<float>();
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the applicability domain is damaged");
  }
  return domain;
}

}  // namespace foretune
