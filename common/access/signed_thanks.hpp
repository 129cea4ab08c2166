// A master's signed thanks to a volunteer for its work. With the master's key, anybody can verify
// them later without the master.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"

namespace gleaner {

// How much of a volunteer's work others did again to compare the results.
enum class Checked : std::uint8_t { kNone, kSome, kAll };

struct Thanks {
  KeyId volunteer;
  std::uint64_t seconds = 0;   // time in the run, over all starts of the master
  std::uint64_t examples = 0;  // of its training units, whatever their number of shards
  Checked checked = Checked::kNone;
  bool is_finished = false;        // the run is complete; otherwise the volunteer left before
  std::uint64_t wall_seconds = 0;  // since 1970, at signing
  std::string run;                 // the run's name; printable
  friend bool operator==(const Thanks&, const Thanks&) = default;
};

struct SignedThanks {
  Thanks thanks;
  PublicKey master{};
  Signature signature{};
  friend bool operator==(const SignedThanks&, const SignedThanks&) = default;
};

SignedThanks sign(Thanks thanks, const KeyPair& master);

// kIdentity, as a sentence, unless the signature belongs to the key beside it.
Result<void> check(const SignedThanks& thanks);
// As check(), and `master` must have signed the thanks for `volunteer`.
Result<void> check(const SignedThanks& thanks, const KeyId& master, const KeyId& volunteer);

// One line without its end: the signed text, then key and signature, separated by tabs.
std::string to_line(const SignedThanks& thanks);
// Nullopt for another line. The signature is not checked.
std::optional<SignedThanks> parse_thanks(std::string_view line);
// Whether `line` begins like a line of to_line().
bool is_thanks_line(std::string_view line);

}  // namespace gleaner
