// A tool asks a master how its run stands; this is the question and the answer. The same structs
// feed the page and `gleaner why`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/model/precision.hpp"

namespace gleaner {

// First and only message of a tool that looks at a run and takes no part in it.
struct Observe {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string invite;
  friend bool operator==(const Observe&, const Observe&) = default;
};

enum class RunStage : std::uint8_t { kWaiting, kTraining, kEvaluating, kStopping, kDone };

// How far a run has come, in figures: what the core counts, and the speeds that the shell measures
// (examples_per_second, eta_seconds, bytes_down, bytes_up). Figures that were not measured are
// negative.
struct RunProgress {
  RunStage stage = RunStage::kWaiting;
  RoundIndex round = 0, rounds = 0;     // whole checkpoints; of the run
  BatchIndex batch = 0, batches = 0;    // batches applied; of the run
  std::uint32_t epoch = 0, epochs = 0;  // epoch being trained, from 0; of the run
  std::uint32_t staleness = 0;          // lag in use, batches
  double examples_per_second = -1;
  double eta_seconds = -1;
  double loss = -1;        // of the last whole round, nats per example
  double active = -1;      // of the last whole round, active neurons per example
  Precision precision;     // of the latest evaluation
  double bytes_down = -1;  // bytes of work units per example and volunteer
  double bytes_up = -1;
  std::uint32_t volunteers = 0;  // that have joined and are still here
  std::uint32_t local = 0;       // of these, in the master's process
  std::string waiting_for;       // what holds the run up; empty while nothing does
  // In this process's life, of all volunteers together:
  std::uint64_t examples = 0;  // trained
  std::uint64_t unit_bytes_down = 0, unit_bytes_up = 0;
  friend bool operator==(const RunProgress&, const RunProgress&) = default;
};

// The figures by their names in JSON, without stage and precision, which are more than a number.
template <typename Visit>
void visit_fields(const RunProgress& p, const Visit& visit) {
  visit("batch", p.batch);
  visit("batches", p.batches);
  visit("round", p.round);
  visit("rounds", p.rounds);
  visit("epoch", p.epoch);
  visit("epochs", p.epochs);
  visit("staleness", p.staleness);
  visit("examples_per_second", p.examples_per_second);
  visit("eta_seconds", p.eta_seconds);
  visit("loss", p.loss);
  visit("active", p.active);
}

// Who can end a wait.
enum class WaitOwner : std::uint8_t {
  kNobody,      // nothing is waited for: the run is over
  kOperator,    // the person who runs the master
  kVolunteers,  // those that the sentence names
  kMaster,      // its own arithmetic
  kStore,       // its disk
};

enum class LeaseState : std::uint8_t {
  kFree,       // nobody's
  kLoading,    // granted; the holder fetches its state
  kReady,      // the holder trains it
  kReleasing,  // asked back; the holder's hand-over is awaited
};

struct VolunteerEntry {
  std::string name;
  std::string peer;       // address; empty for one in the master's process
  bool is_local = false;  // in the master's process
  bool is_leaving = false;
  std::uint32_t cores = 0;
  float speed = 0;                  // examples x shards a second, measured; 0 before the first unit
  std::int64_t round_trip_us = -1;  // negative when not measured
  std::uint64_t silent_us = 0;      // since it was heard
  std::uint32_t units_out = 0;
  bool owes = false;          // a result, a commit, or a shard to be loaded or handed over
  std::uint64_t owes_us = 0;  // since it last did what it owed, or began to owe
  std::string no_shards;      // why it has none; empty when it has, or is to get some
  std::uint64_t here_us = 0;  // since it connected
  friend bool operator==(const VolunteerEntry&, const VolunteerEntry&) = default;
};

// The fields of a volunteer by their names in JSON. Times are in seconds; a negative one was not
// measured. Where an empty text stands in JSON, it is null.
template <typename Visit>
void visit_fields(const VolunteerEntry& v, const Visit& visit) {
  const auto seconds = [](auto us) { return static_cast<double>(us) / 1e6; };
  visit("name", v.name);
  visit("address", v.peer);
  visit("is_local", v.is_local);
  visit("threads", v.cores);
  visit("speed", double{v.speed});
  visit("round_trip_seconds", v.round_trip_us < 0 ? -1.0 : seconds(v.round_trip_us));
  visit("here_seconds", seconds(v.here_us));
  visit("silent_seconds", seconds(v.silent_us));
  visit("units_out", v.units_out);
  visit("owes_seconds", v.owes ? seconds(v.owes_us) : -1.0);
  visit("no_shards", v.no_shards);
}

struct ShardEntry {
  LeaseState state = LeaseState::kFree;
  std::optional<std::uint32_t> holder;  // its place among the volunteers; none for a free shard
  std::uint64_t since_us = 0;           // of the state
  RoundIndex committed = 0;             // rounds whose commits of it are stored
  BatchIndex next_batch = 0;            // the next to be handed to the holder
  std::uint32_t chunks = 0;             // of its state, to be loaded
  std::uint32_t chunks_sent = 0;
  std::string held_before;  // by whom; empty at first
  std::string moved_why;    // why it left there, or is to leave the present holder
  friend bool operator==(const ShardEntry&, const ShardEntry&) = default;
};

// The fields of a shard by their names in JSON, as of a volunteer. Its state and its holder's name
// follow from more than the entry.
template <typename Visit>
void visit_fields(const ShardEntry& s, const Visit& visit) {
  visit("since_seconds", static_cast<double>(s.since_us) / 1e6);
  visit("version", s.committed);
  visit("next_batch", s.next_batch);
  visit("loaded", s.chunks == 0 ? -1.0 : double{1} * s.chunks_sent / s.chunks);
  visit("held_before", s.held_before);
  visit("moved_why", s.moved_why);
}

// A volunteer that has gone.
struct DepartureEntry {
  std::string name;
  std::string reason;
  std::uint64_t ago_us = 0;
  std::uint32_t shards = 0;  // that others took over
  friend bool operator==(const DepartureEntry&, const DepartureEntry&) = default;
};

// The answer: the run at one instant, with what tables need. Of the progress a message carries
// everything but bytes and `waiting_for`, and of the precision P@1 alone.
struct RunStatus {
  std::uint32_t protocol = 0;
  std::string build;
  std::string run;         // which run it is, as backups name it
  std::uint64_t life = 0;  // which start of its master
  RunProgress progress;
  WaitOwner wait_owner = WaitOwner::kNobody;
  bool is_held_up = false;        // the run waits for something besides work, or for late work
  std::string waits_for;          // what the run waits for now
  std::uint64_t waits_us = 0;     // and since when
  std::uint64_t store_bytes = 0;  // of late; 0 when not measured
  std::uint64_t free_bytes = 0;   // on its disk
  std::vector<VolunteerEntry> volunteers;  // all holders of shards, and others if there is room
  std::vector<ShardEntry> shards;          // output shards, then the input shards that are lent
  std::vector<DepartureEntry> gone;        // the last few, oldest first
  std::uint32_t input_shards = 0;          // of the shards, the last ones
  friend bool operator==(const RunStatus&, const RunStatus&) = default;
};

// An administrator asks a master about who may do what; these are requests and answers. The same
// structs serve a store that no master trains; see master/door.
enum class AccessVerb : std::uint8_t {
  kListInvites,
  kCreateInvite,
  kRevokeInvite,
  kListPeers,
  kApprove,  // a stranger is trusted from now on
  kBan,      // a key is refused, whatever its invite
  kUnban,
};

// First and only message of a connection that administers.
struct AccessRequest {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;   // version of the program, for people
  std::string invite;  // of an administrator, as text
  AccessVerb verb = AccessVerb::kListInvites;
  // An invite's id; or a peer: its id, the begin of it, or its name. Of a ban the reason follows in
  // `label`.
  std::string subject;
  // Wishes for an invite that is to be made.
  Role role = Role::kVolunteer;
  bool is_trusted = false;
  bool is_reusable = false;
  std::uint64_t expires_s = 0;  // from now; 0: never
  std::string label;            // for people
  friend bool operator==(const AccessRequest&, const AccessRequest&) = default;
};

struct InviteEntry {
  std::string id;
  Role role = Role::kVolunteer;
  bool is_trusted = false;
  bool is_reusable = false;
  std::string state;               // "open", "used", "expired", "revoked"
  std::uint64_t created_wall = 0;  // seconds since 1970
  std::uint64_t expires_wall = 0;  // 0: never
  std::string address;             // to be pasted; empty unless the invite is open or used
  std::string label;
  friend bool operator==(const InviteEntry&, const InviteEntry&) = default;
};

struct PeerEntry {
  std::string id;      // of its key
  std::string name;    // as it calls itself
  std::string peer;    // address; empty when it was not seen since the master started
  std::string invite;  // by which it came last; empty when not known
  bool is_here = false;
  bool is_trusted = false;
  bool is_banned = false;
  std::string reason;  // of a ban
  friend bool operator==(const PeerEntry&, const PeerEntry&) = default;
};

struct AccessAnswer {
  std::uint32_t protocol = 0;
  std::string sentence;  // what was done; empty for a list
  std::vector<InviteEntry> invites;
  std::vector<PeerEntry> peers;
  friend bool operator==(const AccessAnswer&, const AccessAnswer&) = default;
};

}  // namespace gleaner
