#include "foretune/families/cublaslt/portfolio.h"

#include <span>
#include <string>

#include "foretune/base/check.h"
#include "foretune/base/embedded_text.h"
#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"

namespace foretune {

std::span<const EmbeddedText> cublaslt_portfolio_texts();

Result<std::vector<Config>> parse_cublaslt_configs(std::string_view text) {
  std::vector<Config> configs;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const Result<Config> config = parse_config(cublaslt_schema(), line);
    if (!config) {
      return fail(ErrorCode::kInvalidArgument, "line ", number, ": ", config.error().message);
    }
    configs.push_back(*config);
  }
  return configs;
}

std::vector<Config> cublaslt_portfolio(std::string_view isa) {
  std::vector<Config> configs;
  for (std::int32_t rank = 1; rank <= kCublasltHeuristicRanks; ++rank) {
    configs.push_back(CublasltConfig::rank(rank).to_config());
  }
  for (const EmbeddedText& entry : cublaslt_portfolio_texts()) {
    if (entry.name == isa) {
      const Result<std::vector<Config>> listed = parse_cublaslt_configs(entry.text);
      FORETUNE_CHECK(listed.has_value());
      configs.insert(configs.end(), listed->begin(), listed->end());
    }
  }
  return configs;
}

}  // namespace foretune
