// Whether a type is one of several, for choices among messages.
#pragma once

#include <type_traits>

namespace gleaner {

template <typename T, typename... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

}  // namespace gleaner
