// Events and effects of the volunteer's core, a function (event, now) -> effects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/access/signed_thanks.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "schema/messages.hpp"

namespace gleaner::volunteer {

// ---- Effects -----------------------------------------------------------------------------------

// Dial the master -> Connected or ConnectFailed.
struct Connect {};

// Close the connection after all earlier messages have been sent -> Disconnected.
struct Disconnect {};

struct Send {
  Message message;
};

// Prepare for a run of this model. With a checkpoint, shards of the same run that can be stepped
// back to it are kept, and the reply is a ShardOffer of them. All other shards are forgotten.
struct Reset {  // sentence is for people, also on success
  ModelConfig model;
  std::optional<RoundIndex> checkpoint{};
  std::uint64_t test_fingerprint = 0;
  std::uint64_t generation = 0;  // of the connection
};

// Give the memory of all shards back to the machine.
struct Forget {};

using Work = std::variant<Reset, Forget, Message>;

// Work for the executor, one piece at a time -> WorkDone with the same generation. Without a hidden
// layer, results of units come later, as LaneDone.
struct StartWork {
  std::uint64_t generation = 0;  // of the connection
  Work work;
};

// The program ends.
struct Exit {
  bool success = true;
  Error error;  // its sentence is for people, in success too
};

using Effect = std::variant<Connect, Disconnect, Send, StartWork, Exit>;
using Effects = std::vector<Effect>;

// ---- Events ------------------------------------------------------------------------------------

struct Started {};

struct Connected {};

struct ConnectFailed {
  std::string reason;
};

struct Disconnected {
  std::string reason;
  bool is_starved = false;  // there was no memory for a message: offer less memory from now on
};

struct MessageReceived {
  Message message;
  std::size_t bytes = 0;  // on the wire
};

struct WorkDone {
  std::uint64_t generation = 0;
  std::vector<Message> replies;  // to be sent in this order
  std::optional<Error> error;    // the work could not be done; there are no replies
};

// A lane has performed a unit, or the part of it that it could.
struct LaneDone {
  std::uint64_t generation = 0;  // of the Reset before the unit
  std::vector<Message> replies;
  std::optional<Error> error;
};

struct StopRequested {
  std::string reason;
  std::optional<Millis> grace{};  // for the hand-over; unset: the configured grace
};

// Stop computing. Shards stay in memory for `keep`. Then they are handed over within `grace`, their
// memory is given back, and there is no connection until the pause is over. A second request
// changes the reason and may shorten the times.
struct PauseRequested {
  std::string reason;
  Millis keep{0};
  Millis grace{0};
};

struct ResumeRequested {};

// Time has passed; sent a few times a second.
struct Tick {};

using Event =
    std::variant<Started, Connected, ConnectFailed, Disconnected, MessageReceived, WorkDone,
                 StopRequested, PauseRequested, ResumeRequested, Tick, LaneDone>;

inline constexpr const char* kThanks = "finished: thank you";

// A volunteer's service to a complete run, as signed by the master; otherwise as counted by this
// process.
struct Service {
  Micros time{};               // while the master had admitted it
  std::uint64_t examples = 0;  // received to be trained
  Checked checked = Checked::kNone;
};

// The volunteer's activity and why, for the status line.
struct Snapshot {
  enum class Phase : std::uint8_t {
    kConnecting,
    kRetrying,  // until the next attempt
    kWaiting,   // connected, without a shard
    kLoading,
    kTraining,
    kLeaving,
    kPaused,
    kFinished,  // the run is complete
    kExiting,
  };
  Phase phase = Phase::kConnecting;
  std::string sentence;                // the activity and its reason
  std::optional<Service> service;      // once the run is complete
  std::optional<SignedThanks> thanks;  // the last thanks with a valid signature
  std::string thanks_refused;          // why the last thanks were refused; empty if they were not
  std::vector<ShardId> shards;         // ready
  std::uint32_t loading = 0;           // shards being loaded
  std::uint64_t units = 0;             // trained in this process's life
  std::uint64_t examples = 0;          // received to be trained, in this process's life
  bool is_connected = false;           // and admitted by the master
  std::uint64_t downloaded_bytes = 0;  // of shards, on the wire, in this process's life
  std::optional<RunNews> news;
  std::string run;      // name of the run that last admitted it
  std::string purpose;  // what its owner says that it is for; may be empty
};

}  // namespace gleaner::volunteer
