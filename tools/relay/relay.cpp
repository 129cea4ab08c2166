#include "tools/relay/relay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/limits.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/delivery.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

// A frame around a message of this size is still a frame.
constexpr std::size_t kPayloadMax = kFrameBytesMax - 1024;

Error nonsense(const std::string& what) {
  return {ErrorCode::kProtocol, "the master sends " + what};
}

}  // namespace

Relay::Relay(Clock& clock, Options options)
    : clock_(clock),
      options_(std::move(options)),
      backoff_(options_.retry_first, options_.retry_longest, options_.seed) {}

Relay::~Relay() {
  lifetime_.end();
  if (master_) master_->abandon();
  for (auto& [channel, child] : children_) child.arrival.link->abandon();
}

void Relay::start() {
  dial();
  tick();
}

void Relay::stop() {
  if (master_) master_->close();
  lost("it was asked to stop");
  exit({});
}

void Relay::exit(Result<void> how) {
  if (std::exchange(has_exited_, true)) return;
  ++connection_;
  options_.on_exit(std::move(how));
}

void Relay::tick() {
  clock_.after(options_.tick, lifetime_.guard([this] {
    if (has_exited_) return;
    const Instant now = clock_.now();
    for (auto next = batches_.begin(); next != batches_.end();) {
      const auto batch = next++;
      const bool is_due = now - batch->second.since >= options_.flush_after;
      if (is_due && !batch->second.gradients.empty()) flush(batch->first, batch->second);
    }
    if (master_ && now - last_sent_ >= options_.heartbeat) send(Heartbeat{});
    tick();
  }));
}

// ---- The master --------------------------------------------------------------------------------

void Relay::dial() {
  if (has_exited_) return;
  const std::uint64_t connection = ++connection_;
  options_.dial(lifetime_.guard<Result<std::shared_ptr<Link>>>(
      [this, connection](const Result<std::shared_ptr<Link>>& dialled) {
        if (has_exited_ || connection != connection_) {
          if (dialled) (*dialled)->abandon();
        } else if (dialled) {
          use(*dialled);
        } else {
          lost(dialled.error().message);
        }
      }));
}

void Relay::use(std::shared_ptr<Link> link) {
  master_ = std::move(link);
  const auto is_current = [this, connection = connection_] {
    return !has_exited_ && connection == connection_;
  };
  Link::Handler handler;
  handler.on_frame = lifetime_.guard<Bytes, std::size_t>(
      [this, is_current](const Bytes& payload, std::size_t wire_bytes) {
        if (!is_current()) return;
        counts_.from_master += wire_bytes;
        if (const auto heard = hear(payload); !heard) lost(heard.error().message);
      });
  handler.on_closed = lifetime_.guard<std::string>([this, is_current](const std::string& reason) {
    if (is_current()) lost(reason);
  });
  master_->start(std::move(handler));
  send(options_.hello);
}

// Its volunteers keep their shards and connect again, to this relay or to the master.
void Relay::lost(const std::string& why) {
  if (has_exited_) return;
  if (master_) master_->abandon();
  master_.reset();
  if (std::exchange(is_accepted_, false)) {
    options_.on_log(LogLevel::kWarning, "the master is lost: " + why);
  } else {
    options_.on_log(LogLevel::kWarning, "no master: " + why);
  }
  std::vector<std::uint32_t> open;
  for (const auto& [channel, child] : children_) open.push_back(channel);
  for (const std::uint32_t channel : open) {
    send_away(channel, Refusal{ErrorCode::kBusy, "the relay has lost its master", true});
  }
  parts_ = {};
  examples_ = RelayExamples();
  awaited_.clear();
  batches_.clear();
  sent_.clear();
  sent_bytes_ = 0;
  ++connection_;
  clock_.after(backoff_.next(), lifetime_.guard([this, connection = connection_] {
    if (connection == connection_) dial();
  }));
}

void Relay::send(const Message& message) {
  last_sent_ = clock_.now();
  counts_.to_master += master_->send(encode(message), lane_of(message));
}

Result<void> Relay::hear(const Bytes& payload) {
  Result<Message> message = decode(payload);
  if (!message) return nonsense("nonsense: " + message.error().message);
  return deliver<route::kRelayDown>(*message, [this](auto& one) { return hear(one); });
}

Result<void> Relay::hear(RelayPart& part) {
  if (parts_.add(std::move(part.bytes)) != part.number) return nonsense("parts out of order");
  return {};
}

void Relay::hear(const RelayClose& close) {
  const auto child = children_.find(close.channel);
  if (child != children_.end()) child->second.arrival.link->close();
}

void Relay::hear(const Heartbeat&) {
  if (std::exchange(is_accepted_, true)) return;
  backoff_.reset();
  options_.on_log(LogLevel::kInfo, "the master is there");
}

void Relay::hear(const Refusal& refusal) {
  const std::string sentence = "the master refused: " + refusal.sentence;
  if (refusal.retry) return lost(sentence);
  lost(sentence);
  exit(Error{refusal.code, sentence});
}

void Relay::hear(const Goodbye& goodbye) {
  if (goodbye.code == ErrorCode::kFinished) exit({});
}

Result<void> Relay::hear(RelayFrame& frame) {
  const auto child = children_.find(frame.channel);
  if (child == children_.end()) return {};  // it has gone meanwhile
  const auto type = type_of(frame.payload);
  if (!type) return nonsense("nonsense: " + type.error().message);
  const AtRelay task = kMessageFacts[*type].at_relay;
  const bool is_read = task == AtRelay::kFill ? !frame.parts.empty()
                                              : task == AtRelay::kKeep || task == AtRelay::kStrip;
  if (!is_read && frame.parts.empty()) {
    pass_down(child->second, std::move(frame.payload), kMessageFacts[*type].lane);
    return {};
  }
  Result<Message> message = decode(frame.payload);
  if (!message) return nonsense("nonsense: " + message.error().message);
  const auto read = [&]<typename Type>(Type& of_type) -> Result<void> {
    constexpr AtRelay kTask = kFactsOf<Type>.at_relay;
    if constexpr ((kFactsOf<Type>.routes & route::kDown) == 0 || kTask == AtRelay::kPass) {
      return nonsense(fmt::format("parts of {}", message_name(*type)));
    } else if constexpr (kTask == AtRelay::kFill) {
      return complete(frame, of_type);
    } else if constexpr (kTask == AtRelay::kKeep) {
      return share(child->second, frame, of_type);
    } else {
      static_assert(kTask == AtRelay::kStrip);
      of_type.thanks.reset();  // the volunteer knows this relay's key alone
      pass_down(frame.channel, std::move(of_type));
      return {};
    }
  };
  return std::visit(read, *message);
}

// ---- Volunteers --------------------------------------------------------------------------------

void Relay::receive(Arrival arrival) {
  const std::uint32_t channel = ++last_channel_;
  const auto child = children_.emplace(channel, Child{std::move(arrival)}).first;
  Link::Handler handler;
  handler.on_frame =
      lifetime_.guard<Bytes, std::size_t>([this, channel](Bytes payload, std::size_t wire_bytes) {
        said(channel, std::move(payload), wire_bytes);
      });
  handler.on_closed = lifetime_.guard<std::string>(
      [this, channel](const std::string& reason) { gone(channel, reason); });
  child->second.arrival.link->start(std::move(handler));
}

void Relay::said(std::uint32_t channel, Bytes payload, std::size_t wire_bytes) {
  const auto child = children_.find(channel);
  if (child == children_.end() || has_exited_) return;
  counts_.from_volunteers += wire_bytes;
  if (child->second.is_open || introduce(channel, child->second, payload)) {
    pass_up(channel, std::move(payload));
  }
}

bool Relay::introduce(std::uint32_t channel, Child& child, const Bytes& payload) {
  const Result<Message> first = decode(payload);
  const auto refuse = [&](const Message& last) {
    send_away(channel, last);  // the child is no more
    return false;
  };
  if (!first) return refuse(Refusal{first.error().code, first.error().message, false});
  const auto* hello = std::get_if<Hello>(&*first);
  if (hello == nullptr) {
    return refuse(Refusal{ErrorCode::kProtocol,
                          "this is a relay, for volunteers alone: ask its master", false});
  }
  if (!is_accepted_) {
    return refuse(Refusal{ErrorCode::kBusy, "the relay has no master now", true});
  }
  const auto verdict = options_.admit(child.arrival, *hello);
  if (const auto* last = std::get_if<Message>(&verdict)) return refuse(*last);
  child.is_open = true;
  ++counts_.volunteers;
  send(RelayOpen{channel, child.arrival.peer, std::get<KeyId>(verdict)});
  return true;
}

void Relay::pass_up(std::uint32_t channel, Bytes payload) {
  const auto type = type_of(payload);
  if (!type || payload.size() > kPayloadMax) {
    const std::string why = type ? "a message that is too long" : type.error().message;
    return send_away(channel, Refusal{ErrorCode::kProtocol, why, false});
  }
  const AtRelay task = kMessageFacts[*type].at_relay;
  if (task == AtRelay::kAdd || task == AtRelay::kKeep) {
    Result<Message> message = decode(payload);
    // False: the message does not go on.
    const auto read = [&]<typename Type>(Type& of_type) {
      constexpr bool kIsUp = (kFactsOf<Type>.routes & route::kUp) != 0;
      if constexpr (kIsUp && kFactsOf<Type>.at_relay == AtRelay::kAdd) {
        if (take_gradients(channel, of_type)) payload = encode(*message);
      } else if constexpr (kIsUp && kFactsOf<Type>.at_relay == AtRelay::kKeep) {
        if (!answer(channel, of_type)) return false;
        payload = encode(*message);
      }
      return true;
    };
    if (message && !std::visit(read, *message)) return;
  }
  send_up(channel, std::move(payload), kMessageFacts[*type].lane);
  if (task == AtRelay::kAdd) flush_whole();
}

void Relay::send_up(std::uint32_t channel, Bytes payload, Lane lane) {
  last_sent_ = clock_.now();
  counts_.to_master += master_->send(encode(RelayFrame{channel, std::move(payload), {}}), lane);
}

void Relay::pass_down(Child& child, Bytes payload, Lane lane) {
  counts_.to_volunteers += child.arrival.link->send(std::move(payload), lane);
}

void Relay::pass_down(std::uint32_t channel, const Message& message) {
  const auto child = children_.find(channel);
  if (child != children_.end()) pass_down(child->second, encode(message), lane_of(message));
}

bool Relay::answer(std::uint32_t channel, PointsRequest& request) {
  for (Points& points : examples_.ask(channel, request)) pass_down(channel, std::move(points));
  return !request.points.empty();
}

Result<void> Relay::share(Child& child, RelayFrame& frame, const Points& points) {
  auto others = examples_.take(frame.channel, points);
  pass_down(child, std::move(frame.payload), kFactsOf<Points>.lane);
  for (auto& [channel, some] : others) pass_down(channel, std::move(some));
  return {};
}

void Relay::send_away(std::uint32_t channel, const Message& last) {
  const auto child = children_.find(channel);
  if (child == children_.end()) return;
  pass_down(child->second, encode(last), lane_of(last));
  child->second.arrival.link->close();  // its on_closed takes it out of the map
  gone(channel, "sent away by the relay");
}

void Relay::gone(std::uint32_t channel, const std::string& reason) {
  const auto child = children_.find(channel);
  if (child == children_.end()) return;
  if (child->second.is_open) --counts_.volunteers;
  const bool is_known = child->second.is_open && master_ != nullptr;
  children_.erase(child);
  auto unit = awaited_.lower_bound({channel, UnitId{}});
  while (unit != awaited_.end() && unit->first.first == channel) await_no_more(unit++);
  if (!is_known) return;
  for (auto& [other, request] : examples_.leave(channel)) {
    send_up(other, encode(std::move(request)), kFactsOf<PointsRequest>.lane);
  }
  flush_whole();
  send(RelayClose{channel, reason});
}

// ---- Sums --------------------------------------------------------------------------------------

template <typename Unit>
Result<void> Relay::complete(const RelayFrame& frame, Unit& unit) {
  const std::vector<SharedBytes*> parts = parts_of(unit);
  if (parts.size() != frame.parts.size()) return nonsense("too few parts of a unit");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    *parts[i] = parts_.find(frame.parts[i]);
    if (!*parts[i]) return nonsense("a number of a part that is not there");
  }
  if constexpr (requires { unit.may_be_summed; }) {
    if (unit.may_be_summed) {
      if (auto awaited = await_gradients(frame.channel, unit); !awaited) return awaited;
    }
  }
  pass_down(frame.channel, std::move(unit));
  return {};
}

Result<void> Relay::await_gradients(std::uint32_t channel, const TrainUnit& unit) {
  std::vector<BatchIndex> indexes;
  for (const UnitBatch& one : unit.batches) {
    Batch& batch = batches_[one.batch];
    if (!batch.codes) {
      auto codes = unpack_quantized(*one.hidden);
      if (!codes) return nonsense("activations that are none: " + codes.error().message);
      batch.sum.assign(codes->codes.size(), 0);
      batch.codes = std::make_shared<const QuantizedActivations>(std::move(*codes));
    }
    ++batch.awaited;
    indexes.push_back(one.batch);
  }
  awaited_.emplace(UnitKey{channel, unit.unit}, std::move(indexes));
  return {};
}

bool Relay::take_gradients(std::uint32_t channel, UnitResult& result) {
  const auto unit = awaited_.find({channel, result.unit});
  if (unit == awaited_.end()) return false;
  // A result that the master would find false goes on as it was sent.
  std::vector<std::vector<std::int32_t>> added;
  bool fits = std::ranges::equal(unit->second, result.batches, {}, {}, &BatchResult::batch);
  for (std::size_t i = 0; fits && i < result.batches.size(); ++i) {
    const Batch& batch = batches_.at(unit->second[i]);
    fits = batch.codes->hidden > 0;
    added.emplace_back(batch.sum.size());
    fits = fits && add_gradient(*batch.codes, result.batches[i].gradient, added.back()).ok();
  }
  for (std::size_t i = 0; fits && i < result.batches.size(); ++i) {
    Batch& batch = batches_.at(unit->second[i]);
    // Once more: the sum wraps as the master's does.
    (void)add_gradient(*batch.codes, result.batches[i].gradient, batch.sum).ok();
    if (batch.gradients.empty()) batch.since = clock_.now();
    ++counts_.gradients;
    batch.gradients.push_back(
        {{channel, result.unit}, std::exchange(result.batches[i].gradient, Bytes())});
  }
  result.is_summed = fits;
  await_no_more(unit);
  return fits;
}

void Relay::await_no_more(std::map<UnitKey, std::vector<BatchIndex>>::iterator unit) {
  for (const BatchIndex index : unit->second) --batches_.at(index).awaited;
  awaited_.erase(unit);
}

void Relay::flush_whole() {
  for (auto next = batches_.begin(); next != batches_.end();) {
    const auto batch = next++;
    if (batch->second.awaited == 0) flush(batch->first, batch->second);
  }
}

void Relay::flush(BatchIndex index, Batch& batch) {
  if (!batch.gradients.empty()) {
    std::vector<RelayedUnit> units;
    std::size_t bytes = 0;
    for (const Gradient& gradient : batch.gradients) {
      units.push_back(gradient.unit);
      bytes += gradient.packed.size();
    }
    Bytes packed = pack_gradient(*batch.codes, batch.sum);
    send_sum(index, std::move(units), std::move(packed));
    sent_bytes_ += bytes;
    sent_.push_back({last_sum_, index, std::exchange(batch.gradients, {}), bytes});
    std::ranges::fill(batch.sum, 0);
    while (sent_bytes_ > kRelaySumsBytes) {
      sent_bytes_ -= sent_.front().bytes;
      sent_.pop_front();
    }
  }
  if (batch.awaited == 0) batches_.erase(index);
}

void Relay::send_sum(BatchIndex batch, std::vector<RelayedUnit> units, Bytes gradient) {
  ++counts_.sums;
  send(RelaySum{++last_sum_, batch, std::move(units), std::move(gradient)});
}

void Relay::hear(const RelaySplit& split) {
  const auto sent = std::ranges::find(sent_, split.number, &Sent::number);
  if (sent == sent_.end()) return;  // too long ago: the master gives this relay up
  for (Gradient& gradient : sent->gradients) {
    send_sum(sent->batch, {gradient.unit}, std::move(gradient.packed));
  }
  sent_bytes_ -= sent->bytes;
  sent_.erase(sent);
}

}  // namespace gleaner
