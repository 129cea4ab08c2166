// The core's reports about a round, an evaluation and its volunteers; the shell turns these into
// stored records and progress lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "common/access/standing.hpp"
#include "common/console/log.hpp"
#include "common/ids.hpp"
#include "schema/messages.hpp"
#include "schema/records.hpp"

namespace gleaner {

// Notices are the core's account of a run for people and programs. The console, its JSON
// (EVENTS.md) and the run's page show them as they are. Plain values; unknown numbers are negative.

struct VolunteerJoined {
  std::string name;
  std::string address;  // empty for a local one
  std::uint32_t threads = 0;
  std::uint64_t memory_bytes = 0;
  std::string simd;
  std::uint32_t volunteers = 0;  // now
};

struct VolunteerLeft {
  std::string name;
  std::string reason;        // "said goodbye", "connection lost: …"
  bool polite = false;       // it handed its shards over
  std::uint32_t shards = 0;  // that others take over
  std::uint32_t volunteers = 0;
};

// A round is whole and durable.
struct CheckpointSaved {
  RoundRecord record;
  RoundIndex rounds = 0;  // of the run
  std::uint32_t epochs = 0;
  bool ends_epoch = false;
  std::shared_ptr<const Receipts> receipts{};  // null where the round was folded before
};

struct Evaluated {
  RoundIndex checkpoint = 0;
  std::uint32_t epoch = 0, epochs = 0;  // complete; of the run
  Evaluation evaluation;
  double seconds = -1;  // that it took
};

// Any other event worth a sentence. `kind` names its sort, for programs that read no sentences.
struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string message;
  std::string kind = {};
  std::string peer = {};  // the address that the message begins with, where it begins with one
};

// The store's disk is full. Training waits for room and goes on when there is some.
struct Paused {
  std::string reason;
};

struct Resumed {
  double seconds = 0;  // since it was paused
};

// A connection to a relay, numbered within this process.
enum class RelayId : std::uint64_t {};

// A volunteer whose session may be over.
struct Volunteer {
  SessionId session{};
  KeyId identity;
  InviteId invite{};
  std::string name;
};

// A volunteer's answer was false, and the volunteer is to be kept out.
struct Conviction {
  Volunteer who;
  std::string what;        // "the answer for batches 12 to 15 is not what a trusted volunteer gets"
  bool is_holder = false;  // its work is in the open rounds, which must be trained again
};

// An audit needs a trusted volunteer and none is here: see kRefereeIdentity.
struct RefereeWanted {};

using Notice = std::variant<VolunteerJoined, VolunteerLeft, CheckpointSaved, Evaluated, LogLine,
                            Paused, Resumed, Conviction, RefereeWanted>;

}  // namespace gleaner
