// A volunteer's core whose network, executor and clock move only on a test's call.
#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tiny_run.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::volunteer {

class VolunteerDriver {
 public:
  explicit VolunteerDriver(VolunteerCoreConfig config = tiny_config()) : core_(std::move(config)) {}

  static VolunteerCoreConfig tiny_config();
  static Welcome welcome();

  // Starts, connects, gets its welcome, and does the first work (the reset).
  void join();

  void handle(Event event);
  void tick(Micros passed = Micros(0));

  void receive(Message message) { handle(MessageReceived{std::move(message)}); }

  // Ends the work under way.
  void finish_work(std::vector<Message> replies = {});

  // Takes the oldest sent message, which must be of this type.
  template <typename T>
  T take() {
    REQUIRE_FALSE(sent.empty());
    INFO("sent " << message_name(sent.front()));
    REQUIRE(std::holds_alternative<T>(sent.front()));
    T message = std::get<T>(std::move(sent.front()));
    sent.pop_front();
    return message;
  }

  [[nodiscard]] const VolunteerCore& core() const { return core_; }

  [[nodiscard]] Snapshot snapshot() const { return core_.snapshot(); }

  [[nodiscard]] Instant now() const { return now_; }

  std::deque<Message> sent;
  std::deque<StartWork> work;  // at most one is under way
  std::uint32_t connects = 0;
  std::uint32_t disconnects = 0;
  std::optional<Exit> exit;

 private:
  VolunteerCore core_;
  Instant now_{Micros(1'000'000)};
};

}  // namespace gleaner::volunteer
