// The shell between a link and the executor's thread: what it holds back, and what it survives.
#include <asio/post.hpp>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/support/watched_memory.hpp"
#include "tests/support/wide_run.hpp"
#include "volunteer/threaded_client.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 30;

// A connection whose other end is the test's hand.
struct HandLink : Link {
  void start(Handler given) override { handler = std::move(given); }

  std::size_t send(Bytes payload, Lane) override {
    sent.push_back(decode(payload).value());
    return payload.size();
  }

  [[nodiscard]] std::size_t bytes_waiting() const override { return waiting; }

  void set_listening(bool is_on) override { is_listening = is_on; }

  void close() override { abandon(); }

  void abandon() override { handler = {}; }

  template <typename T>
  [[nodiscard]] std::size_t count() const {
    std::size_t found = 0;
    for (const Message& message : sent) found += std::holds_alternative<T>(message) ? 1 : 0;
    return found;
  }

  Handler handler;
  std::vector<Message> sent;
  std::size_t waiting = 0;
  bool is_listening = true;
};

struct Bench {
  explicit Bench(const ModelConfig& model = tiny_model(), std::uint32_t threads = 1)
      : client(io, options(threads)) {
    client.start();
    run_until([&] { return !links.empty() && links[0]->count<Hello>() == 1; });
    Welcome welcome;
    welcome.protocol = kProtocolMax;
    welcome.model = model;
    welcome.heartbeat_ms = welcome.silence_ms = 1'000'000;
    receive(welcome);
    if (is_wide(model)) return;
    lend(0);
    run_until([&] { return links[0]->count<ShardReady>() == 1; });
  }

  ThreadedClient::Options options(std::uint32_t threads) {
    ThreadedClient::Options options;
    options.threads = threads;
    options.core.hello.memory_bytes = options.memory_bytes = kMuch;
    options.core.work_bytes_max = 1;
    options.core.retry_first = options.core.retry_keeping = Millis(1);
    options.dial = [this](const Client::Dialled& on_dialled) {
      links.push_back(std::make_shared<HandLink>());
      asio::post(io,
                 [on_dialled, link = links.back()] { on_dialled(std::shared_ptr<Link>(link)); });
    };
    return options;
  }

  void receive(const Message& message) {
    const auto on_frame = links.back()->handler.on_frame;
    on_frame(encode(message), 100);
  }

  // A shard as it was in the beginning.
  void lend(std::uint32_t shard) {
    LeaseGrant grant;
    grant.lease = {ShardId{shard}, LeaseEpoch{shard + 1}};
    grant.label_counts.resize(ShardMap(tiny_model()).neurons(ShardId{shard}).size(), 1);
    receive(grant);
  }

  template <typename Condition>
  void run_until(const Condition& condition) {
    while (!condition()) io.run_one();
  }

  asio::io_context io;
  std::vector<std::shared_ptr<HandLink>> links;
  ThreadedClient client;
};

// A client whose lanes have all shards of a run without a hidden layer.
struct WideBench : Bench {
  WideBench() : Bench(WideRun().model, 2) {
    for (std::uint32_t shard = 0; shard < run.model.output_shards; ++shard) {
      const LeaseGrant grant = run.grant(shard);
      leases.push_back(grant.lease);
      receive(grant);
      run_until([&] { return links[0]->count<ChunkRequest>() > shard; });
      receive(run.chunk(grant.lease));
    }
    run_until([&] { return links[0]->count<ShardReady>() == leases.size(); });
  }

  // Until `condition`; points that are asked for are sent.
  template <typename Condition>
  void train_until(const Condition& condition) {
    run_until([&] {
      const HandLink& link = *links[0];
      while (answered < link.sent.size()) {
        const Message message = link.sent[answered++];
        if (const auto* asked = std::get_if<PointsRequest>(&message)) receive(run.points(*asked));
      }
      return condition(link);
    });
  }

  WideRun run;
  std::vector<LeaseRef> leases;
  std::size_t answered = 0;
};

}  // namespace

TEST_CASE("client: lanes train shards, and stop for want of credit and of room on the link",
          "[client]") {
  WideBench bench;
  const RunPlan plan(bench.run.model);
  HandLink& link = *bench.links[0];
  link.waiting = std::size_t{64} << 20;
  for (const LeaseRef& lease : bench.leases) bench.receive(bench.run.unit(lease, 0));
  // Nothing is taken in either.
  for (int turn = 0; turn < 3; ++turn) bench.io.run_one();
  REQUIRE(link.count<UnitResult>() == 0);
  link.waiting = 0;
  link.handler.on_sent();
  bench.train_until([](const HandLink& on) { return on.count<ShardCommit>() == 4; });
  REQUIRE(link.count<UnitResult>() == 4);
  // Sixteen parts of commits are on their way; the seventeenth is not said.
  RoundIndex round = 1;
  for (; round < 5; ++round) {
    for (const LeaseRef& lease : bench.leases) bench.receive(bench.run.unit(lease, round));
  }
  bench.train_until([](const HandLink& on) { return on.count<UnitResult>() >= 17; });
  REQUIRE(link.count<ShardCommit>() == 16);
  bench.receive(CommitCredit{16});
  bench.train_until([](const HandLink& on) { return on.count<ShardCommit>() == 20; });
  REQUIRE(link.count<UnitResult>() == 20);
}

TEST_CASE("client: a shard that trains is handed over after its unit", "[client]") {
  WideBench bench;
  bench.receive(bench.run.unit(bench.leases[1], 0));
  bench.train_until([](const HandLink& on) { return on.count<PointsRequest>() > 0; });
  bench.receive(ReleaseRequest{bench.leases[1]});
  bench.train_until([](const HandLink& on) { return on.count<HandOver>() == 1; });
  const auto& part = std::get<HandOver>(bench.links[0]->sent.back());
  REQUIRE(part.rows.rows.empty());
  REQUIRE(part.base_round == bench.links[0]->count<ShardCommit>());
}

TEST_CASE("client: while much waits to be sent no work is begun, and soon nothing more is heard",
          "[client]") {
  Bench bench;
  HandLink& link = *bench.links[0];
  link.waiting = std::size_t{64} << 20;
  bench.lend(1);
  REQUIRE(link.is_listening);
  bench.lend(2);
  REQUIRE_FALSE(link.is_listening);
  for (int turn = 0; turn < 3; ++turn) bench.io.run_one();
  REQUIRE(link.count<ShardReady>() == 1);
  REQUIRE_FALSE(link.is_listening);
  link.waiting = 0;
  link.handler.on_sent();
  bench.run_until([&] { return link.count<ShardReady>() == 3; });
  REQUIRE(link.is_listening);
}

TEST_CASE("client: a message for which there is no memory costs the connection and half the offer",
          "[client]") {
  Bench bench;
  LeaseGrant large;
  large.label_counts.resize(1'000'000, 1);
  Bytes payload = encode(large);
  {
    const test::ScarceMemory scarce(1'000'000);
    const auto on_frame = bench.links[0]->handler.on_frame;
    on_frame(std::move(payload), 100);
  }
  bench.run_until([&] { return bench.links.size() == 2 && bench.links[1]->count<Hello>() == 1; });
  REQUIRE(std::get<Hello>(bench.links[1]->sent[0]).memory_bytes == kMuch / 2);
}

}  // namespace gleaner::volunteer
