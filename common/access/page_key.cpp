#include "common/access/page_key.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/access/base32.hpp"
#include "common/access/key_pair.hpp"

namespace gleaner {

InviteSecret make_page_key() {
  const std::uint64_t bits[] = {random_bits(), random_bits()};
  InviteSecret key{};
  static_assert(sizeof(bits) == sizeof(key));
  std::memcpy(key.data(), bits, sizeof(bits));
  return key;
}

std::string page_key_text(const InviteSecret& key) {
  return to_base32({key.data(), key.size()});
}

bool is_page_key(std::string_view text, const InviteSecret& key) {
  const std::optional<Bytes> bytes = from_base32(text, key.size());
  if (!bytes) return false;
  InviteSecret given{};
  std::copy(bytes->begin(), bytes->end(), given.begin());
  return is_same_secret(given, key);
}

}  // namespace gleaner
