// Who may read a run's page from elsewhere, where nobody proves a key: decided from a copy of what
// the gate knows, since the page has a thread of its own. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/access/key_pair.hpp"
#include "common/access/role.hpp"
#include "common/result.hpp"
#include "master/access/access_book.hpp"

namespace gleaner {

struct PageAccess {
  std::optional<KeyPair> key;  // the master's; none where it encrypts nothing and knows no invites
  AccessBook book;
};

// As what the holder of `invite` reads. An error is a sentence for who is refused.
Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now);

}  // namespace gleaner
