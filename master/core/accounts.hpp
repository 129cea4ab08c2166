// Accounts of the work of each volunteer, one record per identity, since the core began or since
// the identity's last final record. Used from the core only.
// Invariant: each unit sent ends in exactly one counter of its volunteer's record: units_issued =
// units + units_refused + units_expired + units still out.
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
  // The record of an introduced session; begins a record if there is none.
  AccountRecord& of(const SessionState& session);

  // The session is over. Its unanswered units count as expired. A volunteer without units and
  // faults leaves no record.
  void end(const SessionState& session);

  // Returns the records to be stored. Records of identities that are not `present` are final and
  // forgotten here.
  std::vector<AccountRecord> hand_in(const std::set<KeyId>& present);

  [[nodiscard]] std::vector<AccountRecord> all() const;

 private:
  std::map<KeyId, AccountRecord> records_;
};

inline AccountRecord& Accounts::of(const SessionState& session) {
  AccountRecord& record = records_[session.standing.identity];
  record.identity = session.standing.identity;
  if (record.name != session.hello.name) record.name = session.name();
  return record;
}

inline void Accounts::end(const SessionState& session) {
  AccountRecord& record = of(session);
  record.units_expired += session.units.size();
  if (record.units_issued == 0 && record.faults == 0 && !record.is_stored) {
    records_.erase(session.standing.identity);
  }
}

inline std::vector<AccountRecord> Accounts::hand_in(const std::set<KeyId>& present) {
  std::vector<AccountRecord> all;
  all.reserve(records_.size());
  for (auto& [identity, record] : records_) {
    record.is_final = !present.contains(identity);
    all.push_back(record);
    record.is_stored = true;
  }
  std::erase_if(records_, [](const auto& entry) { return entry.second.is_final; });
  return all;
}

inline std::vector<AccountRecord> Accounts::all() const {
  std::vector<AccountRecord> all;
  all.reserve(records_.size());
  for (const auto& [identity, record] : records_) all.push_back(record);
  return all;
}

}  // namespace gleaner
