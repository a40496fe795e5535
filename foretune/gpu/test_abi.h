// Whether a function of ours is called as another: for tests that hold our declarations of a
// foreign library beside its header, whose opaque types are others. Thread safety: constants.
#pragma once

#include <type_traits>

namespace foretune::gpu {

// Passed alike: both pointers, or numbers of one size.
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

}  // namespace foretune::gpu
