// The kernels that a model learned from, as its card lists them.
// Thread safety: free functions. Cost: linear in the card.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace foretune {

// Returns the numbers of the training data for a field that names kernels
// (ProblemField::is_identifier); none for other fields and for cards that do not say.
std::vector<std::int64_t> card_identifiers(std::string_view card_json, std::string_view field);

}  // namespace foretune
