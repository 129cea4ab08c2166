// Adds up, from the receipts of this process's rounds, the work of each volunteer that somebody has
// checked or vouches for: a list of contributors may rank by it. Belongs to the server's thread.
// Work that the run trains again counts each time that it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "master/http/receipt_log.hpp"

namespace gleaner {

// Examples x output shards, in rounds that are whole.
struct CheckedWork {
  std::uint64_t confirmed = 0;  // an auditor got the same
  std::uint64_t trusted = 0;    // somebody vouches for the volunteer, so that nobody audits it
  std::uint64_t unaudited = 0;
  std::uint64_t audited = 0;  // of others, done again with their result

  [[nodiscard]] std::uint64_t credit() const { return confirmed + trusted + audited; }

  [[nodiscard]] std::uint64_t all() const { return credit() + unaudited; }
};

class CreditTally {
 public:
  // Beyond these, who did least is forgotten.
  static constexpr std::size_t kNamesMax = 20'000;

  void add(const LoggedReceipts& round, std::uint32_t output_shards);

  // By the name that it goes by, made printable.
  [[nodiscard]] CheckedWork of(const std::string& name) const;

 private:
  CheckedWork& work_of(const std::string& name);

  std::map<std::string, CheckedWork> work_;
};

}  // namespace gleaner
