#include "master/core/accounts.hpp"

namespace gleaner {

AccountRecord& Accounts::of(const SessionState& session) {
  AccountRecord& record = records_[session.standing.identity];
  record.identity = session.standing.identity;
  if (record.name != session.hello.name) record.name = session.name();
  return record;
}

void Accounts::end(const SessionState& session) {
  AccountRecord& record = of(session);
  record.units_expired += session.units.size();
  if (record.units_issued == 0 && record.faults == 0 && !record.is_stored) {
    records_.erase(session.standing.identity);
  }
}

std::vector<AccountRecord> Accounts::hand_in(const std::set<KeyId>& present) {
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

std::vector<AccountRecord> Accounts::all() const {
  std::vector<AccountRecord> all;
  all.reserve(records_.size());
  for (const auto& [identity, record] : records_) all.push_back(record);
  return all;
}

}  // namespace gleaner
