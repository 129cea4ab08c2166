// A relay as a process on a machine: the real `Relay` over a simulated clock and links, with its
// own network towards its volunteers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/sim/master_process.hpp"
#include "tests/sim/network/sim_link.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/support/relay_lies.hpp"
#include "tools/relay/relay.hpp"

namespace gleaner::sim {

class RelayProcess {
 public:
  // `index` names its machine, as for volunteers.
  RelayProcess(SimContext& context, MasterProcess& master, std::size_t index);

  // Makes a third of the messages false, where `lie` can, and counts them in `told`.
  void tell(RelayLie lie, std::uint64_t& told) {
    lie_ = std::move(lie);
    told_ = &told;
  }

  [[nodiscard]] bool is_liar() const { return told_ != nullptr; }

  void start();
  // Dies and starts again later. `is_told`: its kernel closes the connections.
  void kill(bool is_told);

  [[nodiscard]] bool is_running() const { return relay_ != nullptr; }

  // The network to its volunteers, on which the relay has the master's end.
  [[nodiscard]] Network& network() { return network_; }

  [[nodiscard]] const LinkShape& shape() const { return context_.options.relays.link; }

  // A connection arrived from a volunteer with this key.
  ConnectionId admit(std::size_t volunteer, const KeyId& key, Network::Hearing other);

 private:
  void dial(const Relay::Dialled& on_dialled);
  void connect(const Relay::Dialled& on_dialled);
  void live();
  // The packet of the payload, after a possible lie.
  Packet pack(Bytes payload, Lane lane, const Lie& lie);

  SimContext& context_;
  MasterProcess& master_;
  const std::size_t index_;
  const std::string name_;
  Rng random_;
  Network network_;
  RelayLie lie_;
  std::uint64_t* told_ = nullptr;  // null: the relay is honest
  std::uint64_t life_ = 0;  // grows with every start and end; closures of earlier lives are void
  std::shared_ptr<SimLink> last_link_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace gleaner::sim
