// Serves the run's page with a view of as many volunteers and shards as asked for, which changes
// every second, until standard input ends: page_view [VOLUNTEERS] [SHARDS]. Prints the address.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "common/host_port.hpp"
#include "common/http/http_server.hpp"
#include "common/time.hpp"
#include "master/http/run_api.hpp"

namespace gleaner {
namespace {

std::shared_ptr<const PageView> view_of(std::uint64_t version, std::size_t volunteers,
                                        std::size_t shards) {
  auto view = std::make_shared<PageView>();
  view->version = version;
  view->at = monotonic_now();
  view->wall_seconds = wall_seconds();
  RunStatus& s = view->status;
  s.stage = RunStage::kTraining;
  s.batches = 1'000'000;
  s.batch = 1000 + 10 * version;
  s.rounds = 10'000;
  s.round = static_cast<RoundIndex>(version / 10);
  s.epochs = 10;
  s.volunteers_here = static_cast<std::uint32_t>(volunteers);
  s.volunteers.resize(volunteers);
  for (std::size_t i = 0; i < volunteers; ++i) {
    VolunteerEntry& v = s.volunteers[i];
    v.name = fmt::format("volunteer-{:05}", i);
    v.peer = fmt::format("10.{}.{}.{}:{}", i >> 16, (i >> 8) & 255, i & 255, 20'000 + i % 40'000);
    v.cores = static_cast<std::uint32_t>(1 + i % 64);
    v.speed = static_cast<float>(1000 + (i * 7919 + version * 31) % 9973);
    v.round_trip_us = static_cast<std::int64_t>(500 + (i + version) % 90'000);
    v.silent_us = (i * 131 + version) % 1'000'000;
    AccountRecord& account = view->accounts.emplace_back();
    account.name = v.name;
    account.examples = (i * 104'729 + version * v.cores) % 99'999'989;
    account.units = account.examples / 64;
  }
  s.shards.resize(shards);
  for (std::size_t i = 0; i < shards; ++i) {
    s.shards[i].state = LeaseState::kReady;
    s.shards[i].holder = static_cast<std::uint32_t>(i % volunteers);
    s.shards[i].next_batch = s.batch;
  }
  return view;
}

int serve(std::size_t volunteers, std::size_t shards) {
  RunApi api("bench", {});
  std::mutex lock;
  std::shared_ptr<const PageView> next;
  HttpServer* server = nullptr;
  HttpHandler handler;
  handler.on_wake = [&] {
    const std::lock_guard guard(lock);
    api.take({std::exchange(next, {}), {}, {}, {}, {}, {}});
  };
  handler.answer = [&](const HttpRequest& request) {
    return api.answer(request, server->counts(), monotonic_now());
  };
  handler.next_piece = [&](StreamPosition& position) { return api.next_piece(position); };
  auto prepared = HttpServer::prepare({"127.0.0.1", 0}, std::move(handler));
  if (!prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message.c_str());
    return 1;
  }
  server = prepared->get();
  server->start();
  std::printf("http://%s\n", to_text(server->address()).c_str());
  std::fflush(stdout);
  std::jthread publisher([&](const std::stop_token& stop) {
    std::mutex idle;
    std::condition_variable_any ended;
    for (std::uint64_t version = 1; !stop.stop_requested(); ++version) {
      auto view = view_of(version, volunteers, shards);
      {
        const std::lock_guard guard(lock);
        next = std::move(view);
      }
      server->wake();
      std::unique_lock guard(idle);
      ended.wait_for(guard, stop, std::chrono::seconds(1), [] { return false; });
    }
  });
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  const auto number = [&](int place, unsigned long otherwise) {
    return argc > place ? std::strtoul(argv[place], nullptr, 10) : otherwise;
  };
  return gleaner::serve(number(1, 10'000), number(2, 512));
}
