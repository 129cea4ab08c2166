// Serves the run's page with a view of as many volunteers and shards as asked for, which changes
// every second, until standard input ends: page_view [VOLUNTEERS] [SHARDS] [MINUTES MILLISECONDS].
// Prints the address. With MINUTES, that much of a run's news is told in all, a minute of it each
// MILLISECONDS.
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
#include "master/see/run_api.hpp"

namespace gleaner {
namespace {

std::shared_ptr<const PageView> view_of(std::uint64_t version, std::size_t volunteers,
                                        std::size_t shards) {
  auto view = std::make_shared<PageView>();
  view->version = version;
  view->at = monotonic_now();
  view->wall_seconds = wall_seconds();
  RunStatus& s = view->status;
  s.progress.stage = RunStage::kTraining;
  s.progress.batches = 1'000'000;
  s.progress.batch = 1000 + 10 * version;
  s.progress.rounds = 10'000;
  s.progress.round = static_cast<RoundIndex>(version / 10);
  s.progress.epochs = 10;
  s.progress.volunteers = static_cast<std::uint32_t>(volunteers);
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
    s.shards[i].next_batch = s.progress.batch;
  }
  return view;
}

struct Pace {
  std::uint64_t minutes = 0;  // 0: without end, and a view alone each time
  Millis period{1000};
};

constexpr std::uint64_t kEventsPerMinute = 12;
constexpr std::uint64_t kCheckpointsPerMinute = 6;

// Adds the news of one minute of a run.
void add_minute(PageNews& news, std::uint64_t minute, std::size_t shards) {
  const std::int64_t wall = wall_seconds();
  for (std::uint64_t i = 0; i < kEventsPerMinute; ++i) {
    const std::uint64_t number = (minute - 1) * kEventsPerMinute + i + 1;
    const std::string text = fmt::format(
        "event {}: volunteer-{:05} went; its link was closed, and others have its "
        "shards",
        number, number % 64);
    news.events.push_back({wall, number % 50 == 0 ? LogLevel::kWarning : LogLevel::kInfo, text,
                           fmt::format(R"({{"event":"log","message":"{}"}})", text)});
  }
  for (std::uint64_t i = 0; i < kCheckpointsPerMinute; ++i) {
    RoundRecord record;
    record.checkpoint = static_cast<RoundIndex>((minute - 1) * kCheckpointsPerMinute + i + 1);
    record.batches = 100 * record.checkpoint;
    record.loss = 1 + 10.0 / static_cast<double>(record.checkpoint);
    record.examples_per_second = 10'000 + static_cast<double>(record.checkpoint % 997);
    record.wall_seconds = wall;
    news.records.push_back(record);
    Receipts receipts;
    for (std::uint32_t s = 0; s < shards; ++s) {
      Receipt& receipt = receipts.shards.emplace_back();
      receipt.shard = ShardId{s};
      receipt.holder = KeyId{1, s};
      receipt.holder_name = fmt::format("volunteer-{:05}", s);
      receipt.verdict = WorkVerdict::kTrusted;
    }
    news.receipts.push_back(
        {record.checkpoint - 1, std::make_shared<const Receipts>(std::move(receipts)), 128});
  }
}

int serve(std::size_t volunteers, std::size_t shards, Pace pace) {
  RunApi api("bench", {});
  std::mutex lock;
  PageNews next;
  HttpServer* server = nullptr;
  HttpHandler handler;
  handler.on_wake = [&] {
    const std::lock_guard guard(lock);
    api.take(std::exchange(next, {}));
  };
  handler.answer = [&](const HttpRequest& request) {
    return api.answer(request, server->counts(), monotonic_now());
  };
  bool has_reader = false;  // under the lock
  std::condition_variable_any news;
  handler.next_piece = [&](StreamPosition& position) {
    const std::lock_guard guard(lock);
    has_reader = true;
    news.notify_all();
    return api.next_piece(position);
  };
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
    for (std::uint64_t version = 1; !stop.stop_requested(); ++version) {
      if (pace.minutes > 0 && version > pace.minutes) break;
      auto view = view_of(version, volunteers, shards);
      {
        const std::lock_guard guard(lock);
        next.view = std::move(view);
        if (pace.minutes > 0) add_minute(next, version, shards);
      }
      server->wake();
      std::unique_lock guard(lock);
      // News is told when somebody listens.
      if (pace.minutes > 0) news.wait(guard, stop, [&] { return has_reader; });
      news.wait_for(guard, stop, pace.period, [] { return false; });
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
  return gleaner::serve(number(1, 10'000), number(2, 512),
                        {number(3, 0), gleaner::Millis(number(4, 1000))});
}
