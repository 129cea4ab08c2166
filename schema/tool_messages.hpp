// Messages with which a tool asks a master for the state of its run. The same structs feed the page
// and `gleaner why`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/model/precision.hpp"

namespace gleaner {

// First and only message of a tool that reads the run's state and takes no part in it.
struct Observe {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string invite;
  friend bool operator==(const Observe&, const Observe&) = default;
};

enum class RunStage : std::uint8_t { kWaiting, kTraining, kEvaluating, kStopping, kDone };

// The progress of a run in figures: the core counts, and the shell measures the speeds
// (examples_per_second, eta_seconds, bytes_down, bytes_up). Figures that were not measured are
// negative.
struct RunProgress {
  RunStage stage = RunStage::kWaiting;
  RoundIndex round = 0, rounds = 0;     // complete checkpoints; planned
  BatchIndex batch = 0, batches = 0;    // applied batches; planned
  std::uint32_t epoch = 0, epochs = 0;  // epoch in training, from 0; planned
  std::uint32_t staleness = 0;          // lag in use, batches
  double examples_per_second = -1;
  double eta_seconds = -1;
  double loss = -1;        // of the last complete round, nats per example
  double active = -1;      // of the last complete round, active neurons per example
  Precision precision;     // of the latest evaluation
  double bytes_down = -1;  // bytes of work units per example and volunteer
  double bytes_up = -1;
  std::uint32_t volunteers = 0;  // that have joined and are still connected
  std::uint32_t local = 0;       // of these, in the master's process
  std::string waiting_for;       // why the run waits; empty while it does not
  // Since the start of this process, over all volunteers:
  std::uint64_t examples = 0;  // trained
  std::uint64_t unit_bytes_down = 0, unit_bytes_up = 0;
  friend bool operator==(const RunProgress&, const RunProgress&) = default;
};

// The figures by their names in JSON, except stage and precision, which are not plain numbers.
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

// The party that can end a wait.
enum class WaitOwner : std::uint8_t {
  kNobody,      // the run is over
  kOperator,    // the person who runs the master
  kVolunteers,  // those named in the sentence
  kMaster,      // its arithmetic
  kStore,       // the master's disk
};

enum class LeaseState : std::uint8_t {
  kFree,       // without a holder
  kLoading,    // granted; the holder loads its state
  kReady,      // the holder trains it
  kReleasing,  // requested back; the hand-over is awaited
};

struct VolunteerEntry {
  std::string name;
  std::string peer;       // address; empty in the master's process
  bool is_local = false;  // in the master's process
  bool is_leaving = false;
  std::uint32_t cores = 0;
  float speed = 0;  // examples x shards per second, measured; 0 before the first unit
  std::int64_t round_trip_us = -1;  // negative when not measured
  std::uint64_t silent_us = 0;      // since its last message
  std::uint32_t units_out = 0;
  bool owes = false;          // outstanding: a result, a commit, or a shard to load or hand over
  std::uint64_t owes_us = 0;  // since its last progress on that, or since its begin
  std::string no_shards;      // why it has none; empty when it has or will get some
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
  std::optional<std::uint32_t> holder;  // index in `volunteers`; none for a free shard
  std::uint64_t since_us = 0;           // time in this state
  RoundIndex committed = 0;             // rounds whose commits of the shard are stored
  BatchIndex next_batch = 0;            // to be sent to the holder next
  std::uint32_t chunks = 0;             // of its state, to be loaded
  std::uint32_t chunks_sent = 0;
  std::string held_before;  // name of the last holder; empty at first
  std::string moved_why;    // why it left the last holder, or will leave the present one
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
  std::uint32_t shards = 0;  // shards that others took over
  friend bool operator==(const DepartureEntry&, const DepartureEntry&) = default;
};

// The run at one instant, for people. A message carries all of the progress except bytes and
// `waiting_for`, and only P@1 of the precision.
struct RunStatus {
  std::uint32_t protocol = 0;
  std::string build;
  std::string run;         // the run's name, as in backups
  std::uint64_t life = 0;  // identifies this start of the master
  RunProgress progress;
  WaitOwner wait_owner = WaitOwner::kNobody;
  bool is_held_up = false;        // the run waits for something besides work, or for late work
  std::string waits_for;          // why the run waits
  std::uint64_t waits_us = 0;     // for how long
  std::uint64_t store_bytes = 0;  // recently measured; 0 when not measured
  std::uint64_t free_bytes = 0;   // on the store's disk
  std::vector<VolunteerEntry> volunteers;  // all holders of shards, and others if there is room
  std::vector<ShardEntry> shards;          // output shards, then input shards that volunteers hold
  std::vector<DepartureEntry> gone;        // the last few, oldest first
  std::uint32_t input_shards = 0;          // number of input shards at the end of `shards`
  // For people who think about lending a machine; empty and zero from older masters.
  std::string name;     // of the run's store, by which people know the run
  std::string purpose;  // of the run, in its owner's words; may be empty
  std::uint32_t features = 0, labels = 0, hidden = 0;  // of the model
  std::uint64_t shard_bytes = 0;                       // a volunteer's memory for an output shard
  std::uint64_t holder_bytes = 0;                      // its memory besides shards
  // Sums over the volunteers since the master's start, those in its process left out:
  std::uint64_t served_us = 0;  // connected
  std::uint64_t served_bytes_down = 0, served_bytes_up = 0;
  friend bool operator==(const RunStatus&, const RunStatus&) = default;
};

// Requests of an administrator to a master about access, and their answers. They also serve a store
// that no master trains; see master/door.
enum class AccessVerb : std::uint8_t {
  kListInvites,
  kCreateInvite,
  kRevokeInvite,
  kListPeers,
  kApprove,  // trusts a stranger
  kBan,      // refuses a key, whatever its invite
  kUnban,
};

// First and only message of an administrator's connection.
struct AccessRequest {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;   // version of the program, for people
  std::string invite;  // of an administrator, as text
  AccessVerb verb = AccessVerb::kListInvites;
  // An invite's id, or a peer: its id, the beginning of its id, or its name. For kBan `label` has
  // the reason.
  std::string subject;
  // For kCreateInvite:
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
  std::string name;    // chosen by the volunteer
  std::string peer;    // address; empty when not seen since the master's start
  std::string invite;  // its latest invite; empty when unknown
  bool is_here = false;
  bool is_trusted = false;
  bool is_banned = false;
  std::string reason;  // of a ban
  friend bool operator==(const PeerEntry&, const PeerEntry&) = default;
};

struct AccessAnswer {
  std::uint32_t protocol = 0;
  std::string sentence;  // the result; empty for a list
  std::vector<InviteEntry> invites;
  std::vector<PeerEntry> peers;
  friend bool operator==(const AccessAnswer&, const AccessAnswer&) = default;
};

}  // namespace gleaner
