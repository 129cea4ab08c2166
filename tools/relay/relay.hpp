// A relay puts many volunteers behind one connection to their master. Activations and examples that
// several volunteers need cross the connection once. A batch's gradients cross it as one sum, which
// is the same in any order. Other messages pass unread. Links and clock are given, also simulated
// ones. I/O thread only.
//
// Invariants
// - The run can lose its relay: the volunteers connect again, and unsent gradients are computed
//   again.
// - A gradient is in one sum alone, unless the master asks to split the sum.
// - No gradient waits for others for longer than Options::flush_after.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/console/log.hpp"
#include "common/net/shell_interfaces.hpp"
#include "common/rates.hpp"
#include "common/result.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/messages.hpp"
#include "schema/relay_parts.hpp"
#include "tools/relay/relay_examples.hpp"

namespace gleaner {

class Relay {
 public:
  using Dialled = std::function<void(Result<std::shared_ptr<Link>>)>;

  struct Options {
    RelayHello hello;
    // Connects to the master and calls back once, on the I/O thread.
    std::function<void(Dialled)> dial;
    // Reads a volunteer's first message: returns the key of the volunteer, or an answer that ends
    // the connection.
    std::function<std::variant<KeyId, Message>(const Arrival& arrival, const Hello& hello)> admit;
    std::function<void(LogLevel, const std::string&)> on_log;
    // Called once, at the end. An error: the master refuses this relay for good.
    std::function<void(Result<void>)> on_exit;
    Millis retry_first{500};
    Millis retry_longest{30'000};
    Millis tick{100};
    Millis heartbeat{5'000};
    Millis flush_after{1'000};
    std::uint64_t seed = 1;  // of the back-off's jitter
  };

  struct Counts {
    std::size_t volunteers = 0;
    // Bytes on the connection to the master, and on the volunteers' connections.
    std::uint64_t from_master = 0, to_master = 0;
    std::uint64_t from_volunteers = 0, to_volunteers = 0;
    std::uint64_t gradients = 0;  // of one batch each, from volunteers
    std::uint64_t sums = 0;       // of these gradients, sent to the master
  };

  // `clock` outlives the relay.
  Relay(Clock& clock, Options options);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void start();
  // Takes a new connection, whose first frame must be a volunteer's.
  void receive(Arrival arrival);
  // Tells the volunteers to connect again, and calls on_exit.
  void stop();

  [[nodiscard]] bool has_master() const { return is_accepted_; }

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Child {
    Arrival arrival;
    bool is_open = false;  // the master knows of it
  };

  struct Gradient {
    RelayedUnit unit;
    Bytes packed;
  };

  // A batch with awaited or waiting gradients.
  struct Batch {
    std::shared_ptr<const QuantizedActivations> codes;
    std::vector<std::int32_t> sum;  // examples x H, of `gradients`
    std::vector<Gradient> gradients;
    std::size_t awaited = 0;
    Instant since{};  // when the first gradient came
  };

  // A sent sum, kept for a request to split it.
  struct Sent {
    std::uint64_t number = 0;
    BatchIndex batch = 0;
    std::vector<Gradient> gradients;
    std::size_t bytes = 0;
  };

  using UnitKey = std::pair<std::uint32_t, UnitId>;  // channel, unit

  // -- the master
  void dial();
  void use(std::shared_ptr<Link> link);
  void lost(const std::string& why);
  Result<void> hear(const Bytes& payload);
  // Messages for the relay itself. The table of messages says which types these are.
  Result<void> hear(RelayFrame& frame);
  Result<void> hear(RelayPart& part);
  void hear(const RelayClose& close);
  // Splits the sum.
  void hear(const RelaySplit& split);
  void hear(const Heartbeat& heartbeat);
  void hear(const Refusal& refusal);
  void hear(const Goodbye& goodbye);
  void send(const Message& message);
  void tick();
  void exit(Result<void> how);

  // -- volunteers
  void said(std::uint32_t channel, Bytes payload, std::size_t wire_bytes);
  // False if the volunteer was refused.
  bool introduce(std::uint32_t channel, Child& child, const Bytes& payload);
  void pass_up(std::uint32_t channel, Bytes payload);
  void send_up(std::uint32_t channel, Bytes payload, Lane lane);
  void pass_down(Child& child, Bytes payload, Lane lane);
  // Does nothing when the volunteer has gone.
  void pass_down(std::uint32_t channel, const Message& message);
  // Answers from the kept examples. False if nothing is left to ask of the master.
  bool answer(std::uint32_t channel, PointsRequest& request);
  // Passes examples to the volunteer that asked, and to the volunteers that wait for them.
  Result<void> share(Child& child, RelayFrame& frame, const Points& points);
  void send_away(std::uint32_t channel, const Message& last);
  void gone(std::uint32_t channel, const std::string& reason);

  // -- sums
  // Passes on a unit of training or evaluation, with its parts.
  template <typename Unit>
  Result<void> complete(const RelayFrame& frame, Unit& unit);
  // The unit's gradients may be summed.
  Result<void> await_gradients(std::uint32_t channel, const TrainUnit& unit);
  // Takes the gradients out of the result. False where they may not be summed, or do not fit.
  bool take_gradients(std::uint32_t channel, UnitResult& result);
  void await_no_more(std::map<UnitKey, std::vector<BatchIndex>>::iterator unit);
  // Sends every sum that is complete.
  void flush_whole();
  void flush(BatchIndex index, Batch& batch);
  void send_sum(BatchIndex batch, std::vector<RelayedUnit> units, Bytes gradient);

  Clock& clock_;
  const Options options_;
  Backoff backoff_;
  std::shared_ptr<Link> master_;
  std::uint64_t connection_ = 0;  // callbacks of earlier connections are void
  bool is_accepted_ = false;
  bool has_exited_ = false;
  Instant last_sent_{};
  Counts counts_;

  std::map<std::uint32_t, Child> children_;  // by channel
  std::uint32_t last_channel_ = 0;

  // State of the present connection:
  RelayParts parts_;
  RelayExamples examples_;
  std::map<UnitKey, std::vector<BatchIndex>> awaited_;  // units whose gradients are to be summed
  std::map<BatchIndex, Batch> batches_;
  std::deque<Sent> sent_;
  std::size_t sent_bytes_ = 0;
  std::uint64_t last_sum_ = 0;
  Lifetime lifetime_;
};

}  // namespace gleaner
