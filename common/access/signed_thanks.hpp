// A master thanks a volunteer for its work, and signs it: whoever knows the master's key can tell
// later, without the master, that it did thank, and for what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"

namespace gleaner {

// How much of a volunteer's work others did again, to compare.
enum class Checked : std::uint8_t { kNone, kSome, kAll };

struct Thanks {
  KeyId volunteer;
  std::uint64_t seconds = 0;   // that it took part in the run, over all starts of the master
  std::uint64_t examples = 0;  // of its training units, for however many shards each was
  Checked checked = Checked::kNone;
  bool is_finished = false;        // the run is complete; otherwise the volunteer left before
  std::uint64_t wall_seconds = 0;  // since 1970, when they were signed
  std::string run;                 // its name; printable
  friend bool operator==(const Thanks&, const Thanks&) = default;
};

struct SignedThanks {
  Thanks thanks;
  PublicKey master{};
  Signature signature{};
  friend bool operator==(const SignedThanks&, const SignedThanks&) = default;
};

SignedThanks sign(Thanks thanks, const KeyPair& master);

// kIdentity, in a sentence, unless the signature is that of the key beside it.
Result<void> check(const SignedThanks& thanks);
// As check(), of thanks that `master` should have signed for `volunteer`.
Result<void> check(const SignedThanks& thanks, const KeyId& master, const KeyId& volunteer);

// One line without its end: what is signed, then key and signature, separated by tabs.
std::string to_line(const SignedThanks& thanks);
// Nullopt for what is no such line. The signature is not checked.
std::optional<SignedThanks> parse_thanks(std::string_view line);
// Whether `line` begins as those of to_line().
bool is_thanks_line(std::string_view line);

}  // namespace gleaner
