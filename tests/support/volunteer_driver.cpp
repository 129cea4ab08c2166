#include "tests/support/volunteer_driver.hpp"

#include "schema/versions.hpp"

namespace gleaner::volunteer {

VolunteerCoreConfig VolunteerDriver::tiny_config() {
  VolunteerCoreConfig config;
  config.hello.protocol_min = kProtocolMin;
  config.hello.protocol_max = kProtocolMax;
  config.hello.name = "ann";
  config.master = "host:7070";
  config.chunks_in_flight = 4;
  return config;
}

Welcome VolunteerDriver::welcome() {
  Welcome welcome;
  welcome.protocol = kProtocolMax;
  welcome.model = tiny_model();
  welcome.heartbeat_ms = 1'000;
  welcome.silence_ms = 10'000;
  return welcome;
}

void VolunteerDriver::join() {
  if (connects == 0) handle(Started{});
  handle(Connected{});
  take<Hello>();
  receive(welcome());
  finish_work();
}

void VolunteerDriver::handle(Event event) {
  for (Effect& effect : core_.handle(std::move(event), now_)) {
    REQUIRE_FALSE(exit.has_value());
    if (auto* send = std::get_if<Send>(&effect)) sent.push_back(std::move(send->message));
    if (auto* start = std::get_if<StartWork>(&effect)) work.push_back(std::move(*start));
    if (auto* end = std::get_if<Exit>(&effect)) exit = std::move(*end);
    if (std::holds_alternative<Connect>(effect)) ++connects;
    if (std::holds_alternative<Disconnect>(effect)) ++disconnects;
  }
  REQUIRE(work.size() <= 1);
}

void VolunteerDriver::tick(Micros passed) {
  now_ += passed;
  handle(Tick{});
}

void VolunteerDriver::finish_work(std::vector<Message> replies) {
  REQUIRE_FALSE(work.empty());
  const std::uint64_t generation = work.front().generation;
  work.pop_front();
  handle(WorkDone{generation, std::move(replies), {}});
}

}  // namespace gleaner::volunteer
