// A peer that a running master knows and the book does not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "master/door/access_book.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// A peer that a running master knows besides those in the book.
struct SeenPeer {
  KeyId key;
  std::string name;
  std::string peer;  // ADDRESS:PORT
  InviteId invite{};
  bool is_here = false;
};

// Performs an administrator's request on the book. The error is a sentence for the administrator;
// the book is unchanged then.
Result<AccessAnswer> manage(AccessBook& book, const KeyPair& master, const AccessRequest& request,
                            const std::vector<SeenPeer>& seen, std::int64_t now);

// The join line of an invite, for a master that listens, or last listened, at `where`.
std::string invite_address(const std::string& where, const KeyPair& master, InviteId id);

}  // namespace gleaner
