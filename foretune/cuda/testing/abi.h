// Compares the calling conventions of two function types, for tests that check our declarations of
// a foreign library against its header, which has other opaque types. Thread safety: constants.
#pragma once

#include <type_traits>

namespace foretune::cuda {

// Returns true for types that are passed alike: both pointers, or numbers of the same size and
// kind.
template <class Ours, class Theirs>
constexpr bool is_alike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
  }
}

template <class OurResult, class... Ours, class TheirResult, class... Theirs>
constexpr bool is_same_call(OurResult (* /*ours*/)(Ours...),
                            TheirResult (* /*theirs*/)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return is_alike<OurResult, TheirResult>() && (is_alike<Ours, Theirs>() && ...);
  }
}

template <class OurCall, class TheirCall>
constexpr bool kMatches =
    is_same_call(static_cast<OurCall>(nullptr), static_cast<TheirCall*>(nullptr));

}  // namespace foretune::cuda
