// Accounts of what each volunteer, by its identity, did since the core began or since its last
// final record. Owns one record per identity. Used from the core only. Invariant: each unit sent
// ends in exactly one counter of its volunteer's record: units_issued = units + units_refused +
// units_expired + those that are out.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "common/ids.hpp"
#include "master/core/session.hpp"
#include "schema/records.hpp"

namespace gleaner {

class Accounts {
 public:
  // The record of a session that has introduced itself, which begins here if there is none.
  AccountRecord& of(const SessionState& session);

  // The session is over. What it had not answered is expired, and whoever came and went without
  // having done anything leaves nothing behind.
  void end(const SessionState& session);

  // The records to be stored. Those of identities that are not `present` are final, and forgotten.
  std::vector<AccountRecord> hand_in(const std::set<KeyId>& present);

  [[nodiscard]] std::vector<AccountRecord> all() const;

 private:
  std::map<KeyId, AccountRecord> records_;
};

}  // namespace gleaner
