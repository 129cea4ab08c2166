// A relay between a master and volunteers that are played by hand.
#include "tools/relay/relay.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <utility>
#include <vector>

#include "common/work/quantized_gradient.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kHidden = 16;

class HandClock : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }

  void after(Micros delay, std::function<void()> call) override {
    calls_.emplace(now_ + delay, std::move(call));
  }

  void pass(Micros time) {
    const Instant end = now_ + time;
    while (!calls_.empty() && calls_.begin()->first <= end) {
      const auto next = calls_.extract(calls_.begin());
      now_ = next.key();
      next.mapped()();
    }
    now_ = end;
  }

 private:
  Instant now_{Millis(1)};
  std::multimap<Instant, std::function<void()>> calls_;
};

// The other end is the test's.
class HandLink : public Link {
 public:
  void start(Handler handler) override { handler_ = std::move(handler); }

  std::size_t send(Bytes payload, Lane) override {
    sent.push_back(decode(payload).value());
    return payload.size();
  }

  [[nodiscard]] std::size_t bytes_waiting() const override { return 0; }

  void set_listening(bool) override {}

  void close() override { is_closed = true; }

  void abandon() override { is_closed = true; }

  void say(const Message& message) {
    const Bytes payload = encode(message);
    const auto on_frame = handler_.on_frame;
    on_frame(payload, payload.size());
  }

  void hang_up() {
    const auto on_closed = handler_.on_closed;
    on_closed("it hung up");
  }

  // The messages of one type that were sent since the last call.
  template <typename T>
  std::vector<T> take() {
    std::vector<T> taken;
    for (const Message& message : std::exchange(sent, {})) {
      if (const auto* one = std::get_if<T>(&message)) taken.push_back(*one);
    }
    return taken;
  }

  std::vector<Message> sent;
  bool is_closed = false;

 private:
  Handler handler_;
};

struct Site {
  explicit Site() {
    Relay::Options options;
    options.hello = {kProtocolMin, kProtocolMax, kBuildVersion, "site", ""};
    options.dial = [this](const Relay::Dialled& on_dialled) {
      master = std::make_shared<HandLink>();
      on_dialled(std::shared_ptr<Link>(master));
    };
    options.admit = [this](const Arrival& arrival, const Hello&) -> std::variant<KeyId, Message> {
      if (keeps_out) return Refusal{ErrorCode::kInvite, "no", false};
      return *arrival.key;
    };
    options.on_log = [](LogLevel, const std::string&) {};
    options.on_exit = [this](Result<void> how) { ended = std::move(how); };
    relay.emplace(clock, std::move(options));
    relay->start();
  }

  std::shared_ptr<HandLink> join(std::uint64_t key) {
    auto link = std::make_shared<HandLink>();
    relay->receive({link, "10.0.0.1:5", KeyId{0, key}});
    Hello hello;
    hello.name = "v";
    link->say(hello);
    return link;
  }

  // Lets two volunteers join whose channels are 1 and 2.
  void open_two() {
    master->say(Heartbeat{});
    for (const std::uint64_t key : {1u, 2u}) volunteers.push_back(join(key));
    master->sent.clear();
  }

  // Sends a unit of the batch to a channel.
  void send_unit(std::uint32_t channel, BatchIndex batch, bool may_be_summed = true) {
    if (!parts.contains(batch)) {
      parts[batch] = parts.size() + 1;
      master->say(RelayPart{parts[batch], std::make_shared<const Bytes>(pack(codes))});
    }
    TrainUnit unit{UnitId{batch * 10 + channel}, {{ShardId{channel}, LeaseEpoch{1}}}, {}, true};
    unit.may_be_summed = may_be_summed;
    Positives none;
    none.offsets.resize(codes.examples + 1);
    unit.batches.push_back({batch, std::make_shared<const Bytes>(), none, 0.5F});
    master->say(RelayFrame{channel, encode(unit), {parts[batch]}});
  }

  void ask(std::uint32_t channel, std::vector<std::uint64_t> points) {
    volunteers[channel - 1]->say(PointsRequest{PointSet::kTraining, std::move(points)});
  }

  // The points that the master has been asked for since the last call, by channel.
  std::vector<std::pair<std::uint32_t, std::vector<std::uint64_t>>> asked() const {
    std::vector<std::pair<std::uint32_t, std::vector<std::uint64_t>>> asked;
    for (const auto& frame : master->take<RelayFrame>()) {
      const auto request = std::get<PointsRequest>(decode(frame.payload).value());
      asked.emplace_back(frame.channel, request.points);
    }
    return asked;
  }

  // The master answers; each point has features of its own.
  void send_points(std::uint32_t channel, const std::vector<std::uint64_t>& points) const {
    master->say(RelayFrame{channel, encode(points_of(points)), {}});
  }

  static Points points_of(const std::vector<std::uint64_t>& points) {
    Points all{PointSet::kTraining, points, {0}, {}, {}};
    for (const std::uint64_t point : points) {
      for (std::uint64_t i = 0; i < point % 3; ++i) {
        all.features.push_back(static_cast<std::uint32_t>(10 * point + i));
        all.values.push_back(static_cast<float>(point));
      }
      all.offsets.push_back(static_cast<std::uint32_t>(all.features.size()));
    }
    return all;
  }

  [[nodiscard]] UnitResult result(std::uint32_t channel, BatchIndex batch,
                                  std::int32_t entry) const {
    const std::vector<std::int32_t> gradient(codes.codes.size(), entry);
    return {UnitId{batch * 10 + channel},
            {{batch, {{ShardId{channel}, 1, 2, 3}}, pack_gradient(codes, gradient)}},
            5,
            false,
            {gradient_check(codes, gradient)}};
  }

  std::vector<std::int32_t> sum_of(const RelaySum& sum) const {
    std::vector<std::int32_t> all(codes.codes.size());
    REQUIRE(add_gradient(codes, sum.gradient, all).ok());
    return all;
  }

  HandClock clock;
  QuantizedActivations codes{2, kHidden, {1, 1}, std::vector<std::uint8_t>(2 * kHidden, 1)};
  std::shared_ptr<HandLink> master;
  bool keeps_out = false;
  std::optional<Result<void>> ended;
  std::optional<Relay> relay;
  std::vector<std::shared_ptr<HandLink>> volunteers;
  std::map<BatchIndex, std::uint64_t> parts;
};

}  // namespace

TEST_CASE("relay: volunteers wait until it has a master, and are told who is kept out", "[relay]") {
  Site site;
  REQUIRE(std::get<RelayHello>(site.master->sent.front()).name == "site");
  REQUIRE(site.join(1)->take<Refusal>().front().retry);
  site.master->say(Heartbeat{});
  site.keeps_out = true;
  const auto stranger = site.join(2);
  REQUIRE_FALSE(stranger->take<Refusal>().front().retry);
  REQUIRE(stranger->is_closed);
  site.keeps_out = false;
  site.master->sent.clear();
  site.join(3);
  const auto sent = std::exchange(site.master->sent, {});
  REQUIRE(std::get<RelayOpen>(sent.at(0)).key == KeyId{0, 3});
  const auto& hello = std::get<RelayFrame>(sent.at(1));
  REQUIRE(std::get<Hello>(decode(hello.payload).value()).name == "v");
  REQUIRE(site.relay->counts().volunteers == 1);
}

TEST_CASE("relay: what all need crosses once, and gradients as their sum", "[relay]") {
  Site site;
  site.open_two();
  site.send_unit(1, 7);
  site.send_unit(2, 7);
  for (const auto& volunteer : site.volunteers) {
    REQUIRE(*volunteer->take<TrainUnit>().at(0).batches.at(0).hidden == pack(site.codes));
  }
  site.volunteers[0]->say(site.result(1, 7, 3));
  REQUIRE(site.relay->counts().sums == 0);
  site.volunteers[1]->say(site.result(2, 7, -5));
  const auto sent = std::exchange(site.master->sent, {});
  REQUIRE(sent.size() == 3);
  for (const std::size_t i : {0u, 1u}) {
    const auto result = std::get<UnitResult>(decode(std::get<RelayFrame>(sent[i]).payload).value());
    REQUIRE(result.is_summed);
    REQUIRE(result.checks.size() == 1);
    REQUIRE(result.batches[0].gradient.empty());
  }
  const auto& sum = std::get<RelaySum>(sent[2]);
  REQUIRE(sum.units == std::vector<RelayedUnit>{{1, UnitId{71}}, {2, UnitId{72}}});
  REQUIRE(site.sum_of(sum) == std::vector<std::int32_t>(2 * kHidden, -2));

  site.master->say(RelaySplit{sum.number});
  const auto parts = site.master->take<RelaySum>();
  REQUIRE(parts.size() == 2);
  REQUIRE(site.sum_of(parts[1]) == std::vector<std::int32_t>(2 * kHidden, -5));
  REQUIRE(parts[1].units == std::vector<RelayedUnit>{{2, UnitId{72}}});
  site.master->say(RelaySplit{sum.number});  // it is split once
  REQUIRE(site.master->take<RelaySum>().empty());
}

TEST_CASE("relay: a gradient waits for no volunteer that is gone or slow", "[relay]") {
  Site site;
  site.open_two();
  for (const BatchIndex batch : {7u, 8u}) {
    for (const std::uint32_t channel : {1u, 2u}) site.send_unit(channel, batch);
  }
  site.volunteers[0]->say(site.result(1, 7, 3));
  REQUIRE(site.master->take<RelaySum>().empty());
  site.clock.pass(Millis(1'200));
  REQUIRE(site.master->take<RelaySum>().size() == 1);
  site.volunteers[0]->say(site.result(1, 8, 4));
  site.volunteers[1]->hang_up();
  const auto sent = std::exchange(site.master->sent, {});
  REQUIRE(std::get<RelaySum>(sent.at(1)).batch == 8);
  REQUIRE(std::get<RelayClose>(sent.at(2)).channel == 2);
}

TEST_CASE("relay: what it cannot add goes on as it came", "[relay]") {
  Site site;
  site.open_two();
  site.send_unit(1, 7);
  site.send_unit(2, 7, false);
  UnitResult wrong = site.result(1, 7, 3);
  wrong.batches[0].gradient.pop_back();
  site.volunteers[0]->say(wrong);
  site.volunteers[1]->say(site.result(2, 7, 4));
  site.volunteers[1]->say(site.result(2, 9, 4));  // of no unit
  const auto frames = site.master->take<RelayFrame>();
  REQUIRE(frames.size() == 3);
  REQUIRE(std::get<UnitResult>(decode(frames[0].payload).value()) == wrong);
  REQUIRE(std::get<UnitResult>(decode(frames[1].payload).value()) == site.result(2, 7, 4));
  REQUIRE(std::get<UnitResult>(decode(frames[2].payload).value()) == site.result(2, 9, 4));
  REQUIRE(site.relay->counts().sums == 0);
}

TEST_CASE("relay: volunteers connect again when the master is lost", "[relay]") {
  Site site;
  site.open_two();
  site.send_unit(1, 7);
  const auto first = site.master;
  first->hang_up();
  REQUIRE(site.volunteers[0]->is_closed);
  REQUIRE(site.volunteers[0]->take<Refusal>().at(0).retry);
  site.clock.pass(Millis(1'000));
  REQUIRE(site.master != first);
  REQUIRE(site.master->take<RelayHello>().size() == 1);
  site.master->say(RelayPart{2, std::make_shared<const Bytes>()});  // the first must be number 1
  REQUIRE(site.master->is_closed);
}

TEST_CASE("relay: an example crosses once, for who asks meanwhile and later", "[relay]") {
  using Asked = decltype(std::declval<Site>().asked());
  Site site;
  site.open_two();
  site.ask(1, {3, 4, 5});
  site.ask(2, {4, 5, 8});
  REQUIRE(site.asked() == Asked{{1, {3, 4, 5}}, {2, {8}}});
  site.send_points(1, {3, 4, 5});
  REQUIRE(site.volunteers[0]->take<Points>() == std::vector{Site::points_of({3, 4, 5})});
  REQUIRE(site.volunteers[1]->take<Points>() == std::vector{Site::points_of({4, 5})});
  site.ask(2, {3, 8});  // 8 twice: let the master judge it
  REQUIRE(site.asked() == Asked{{2, {8}}});
  REQUIRE(site.volunteers[1]->take<Points>() == std::vector{Site::points_of({3})});
}

TEST_CASE("relay: who waits for an example of one that goes asks for it again", "[relay]") {
  using Asked = decltype(std::declval<Site>().asked());
  Site site;
  site.open_two();
  site.ask(1, {3, 4});
  site.ask(2, {4, 5});
  site.master->sent.clear();
  site.volunteers[0]->hang_up();
  REQUIRE(site.asked() == Asked{{2, {4}}});
  site.send_points(1, {3, 4});  // for nobody
  REQUIRE(site.volunteers[1]->take<Points>().empty());
  site.send_points(2, {4});
  REQUIRE(site.volunteers[1]->take<Points>() == std::vector{Site::points_of({4})});
}

TEST_CASE("relay: it keeps the latest examples", "[relay]") {
  RelayExamples examples(1'000);
  const auto fetch = [&](std::uint32_t channel, std::uint64_t point) {
    PointsRequest request{PointSet::kTraining, {point}};
    const bool is_here = !examples.ask(channel, request).empty();
    if (!is_here) REQUIRE(examples.take(channel, Site::points_of({point})).empty());
    return is_here;
  };
  for (const std::uint64_t point : {1u, 2u, 3u, 4u}) REQUIRE_FALSE(fetch(1, point));
  REQUIRE(fetch(2, 4));
  REQUIRE_FALSE(fetch(2, 1));
}

TEST_CASE("relay: it ends with the run, and when it is refused for good", "[relay]") {
  Site finished;
  finished.master->say(Goodbye{ErrorCode::kFinished, "done"});
  REQUIRE(finished.ended->ok());
  Site refused;
  refused.master->say(Refusal{ErrorCode::kInvite, "the invite is revoked", false});
  REQUIRE(refused.ended->error().message == "the master refused: the invite is revoked");
}

}  // namespace gleaner
