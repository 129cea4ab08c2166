// Remembers what each volunteer did for the run over all starts of the master, so that it can be
// thanked for all of that. I/O thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/access/role.hpp"
#include "common/access/signed_thanks.hpp"
#include "master/core/events/core_config.hpp"
#include "master/core/events/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class ThanksBook {
 public:
  // `accounts` are those that the store held when the core began; `audit` is what becomes of the
  // work of strangers.
  ThanksBook(std::string run, AuditMode audit, const std::vector<VolunteerAccount>& accounts);

  // Before the core's effects are performed: records that end would be missing later.
  void note(const Effects& effects);

  // Completes what the core says of its own life, and signs it. Takes the thanks out where nobody
  // is to be thanked: without a `key`, and a local volunteer.
  void complete(Goodbye& goodbye, const Standing& standing, const KeyPair* key) const;
  // As complete(), for a volunteer that comes after the end; `records` are the core's last ones.
  void thank(Goodbye& goodbye, const Standing& standing, const KeyPair* key,
             const std::vector<AccountRecord>& records) const;

 private:
  struct Work {
    Micros here{};
    std::uint64_t examples = 0;
  };

  void note(const std::vector<AccountRecord>& records);

  const std::string run_;
  const AuditMode audit_;
  std::map<KeyId, Work> earlier_;  // without what the core's present records say
};

}  // namespace gleaner
