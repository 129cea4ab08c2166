#include "common/access/hide_secrets.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/access/master_address.hpp"

namespace gleaner {

void hide_secrets(std::span<char* const> arguments) {
  for (char* const argument : arguments) {
    const std::string_view text(argument);
    if (const std::size_t hash = text.find('#'); text.starts_with("http") && hash < text.size()) {
      std::fill(argument + hash + 1, argument + text.size(), 'x');
      continue;
    }
    const std::size_t begin = find_address_scheme(text);
    if (begin == std::string_view::npos) continue;
    const std::size_t key = text.find('/', begin + kAddressScheme.size());
    const std::size_t invite = key == std::string_view::npos ? key : text.find('.', key);
    if (invite == std::string_view::npos) continue;
    std::fill(argument + invite + 1, argument + text.size(), 'x');
  }
}

}  // namespace gleaner
