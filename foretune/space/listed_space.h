// A space given by a list of its configs: recorded ones, or those worth trying in a space too large
// to walk.
// Thread safety: immutable after creation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/space.h"

namespace foretune {

class ListedSpace final : public Space, public EnumerableSpace {
 public:
  // `configs` are ascending and distinct. `rules` (may be null) says why a config is not legal,
  // listed or not. A config that it allows but that is not listed is refused with `unlisted`, or is
  // legal when `unlisted` is empty.
  ListedSpace(ConfigSchema schema, std::vector<Config> configs,
              std::shared_ptr<const CompiledSpace> rules, Problem problem, const Hardware& hardware,
              std::string unlisted)
      : schema_(std::move(schema)),
        configs_(std::move(configs)),
        rules_(std::move(rules)),
        problem_(std::move(problem)),
        hardware_(hardware),
        unlisted_(std::move(unlisted)) {}

  const ConfigSchema& schema() const override { return schema_; }
  Support why_not(const Config& config) const override;
  Result<Config> sample(Rng& rng) const override;
  // Returns for every parameter the listed configs with the nearest values below and above, all
  // other parameters equal.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override { return config; }
  const EnumerableSpace* enumerable() const override { return this; }
  std::uint64_t count() const override { return configs_.size(); }
  Config unrank(std::uint64_t index) const override;

 private:
  ConfigSchema schema_;
  std::vector<Config> configs_;
  std::shared_ptr<const CompiledSpace> rules_;
  Problem problem_;
  Hardware hardware_;
  std::string unlisted_;
};

}  // namespace foretune
