// Goodbyes: the signed thanks of a volunteer that goes, and the news, for volunteers that were lost
// shortly before the end of a run and come back, that the run is over. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <map>
#include <string>
#include <vector>

#include "common/access/signed_thanks.hpp"
#include "common/access/standing.hpp"
#include "common/time.hpp"
#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "master/core/reports.hpp"
#include "master/see/console.hpp"
#include "schema/messages.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Remembers what each volunteer did for the run over all starts of the master, so that it can be
// thanked for all of that.
class ThanksBook {
 public:
  // `accounts` are those in the store when the core began. `audit` tells how strangers' work is
  // audited.
  ThanksBook(std::string run, AuditMode audit, const std::vector<AccountRecord>& accounts);

  // To be called before the core's effects are performed: final records are gone afterwards.
  void note(const Effects& effects);

  // Adds earlier starts' work to the core's thanks, and signs them. Removes the thanks without a
  // `key` and for a local volunteer.
  void complete(Goodbye& goodbye, const Standing& standing, const KeyPair* key) const;
  // Completes the thanks for a volunteer that comes after the end; `records` are the core's last
  void thank(Goodbye& goodbye, const Standing& standing, const KeyPair* key,
             const std::vector<AccountRecord>& records) const;

 private:
  void note(const std::vector<AccountRecord>& records);

  const std::string run_;
  const AuditMode audit_;
  std::map<KeyId, AccountRecord> earlier_;  // without the work in the core's present records
};

class Farewell {
 public:
  void note(const VolunteerJoined& joined) { lost_.erase(joined.name); }

  void note(const VolunteerLeft& left) {
    if (!left.polite) lost_[left.name] = monotonic_now();
  }

  // The answer to the first message of a connection after the end.
  [[nodiscard]] Goodbye answer(const Message& first);

  // Runs `io` until all lately lost volunteers have come back, somebody asks to end, or `most` has
  // passed. The console says so, if there is anybody to wait for.
  void wait(asio::io_context& io, Millis most, const bool& is_asked_to_end, Console& console);

 private:
  std::map<std::string, Instant> lost_;  // by name: when it was lost
};

}  // namespace gleaner
