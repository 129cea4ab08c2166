#include "tests/sim/describe.hpp"

#include <fmt/format.h>

#include "schema/wire/codec.hpp"

namespace gleaner::sim {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string shard_of(const LeaseRef& lease) {
  return fmt::format("shard {} (epoch {})", raw(lease.shard), raw(lease.epoch));
}

std::string shards_of(const std::vector<LeaseRef>& leases) {
  std::string text = "shards";
  for (const LeaseRef& lease : leases) text += fmt::format(" {}", raw(lease.shard));
  return text;
}

std::string describe_task(const WorkerTask& task) {
  return std::visit(
      Overloaded{
          [](const ForwardTask& t) { return fmt::format("forward {}", t.batch); },
          [](const BackwardTask& t) { return fmt::format("update {}", t.batch); },
          [](const CommitInputTask& t) { return fmt::format("commit input of round {}", t.round); },
          [](const EvalForwardTask& t) { return fmt::format("evaluate {}..{}", t.begin, t.end); },
          [](const EvalScoreTask& t) { return fmt::format("score {}..{}", t.begin, t.end); },
          [](const EvalFinishTask&) { return std::string("close the evaluation"); },
          [](const EncodeTask& t) {
            return fmt::format("encode {} {}..{}", t.is_held_out ? "points" : "batch", t.begin,
                               t.end);
          },
          [](const ReadPointsTask& t) {
            return fmt::format("read {} points from {}", t.request.points.size(),
                               t.request.points.front());
          },
          [](const AddGradientsTask& t) {
            return fmt::format("add gradients of {} batches", t.parts.size());
          },
      },
      task);
}

std::string describe_task(const StorageTask& task) {
  return std::visit(
      Overloaded{
          [](const StageTask& t) {
            return fmt::format("stage shard {} round {} part {} of {}", raw(t.shard), t.round,
                               t.part + 1, t.parts);
          },
          [](const FoldTask& t) { return fmt::format("fold round {}", t.round); },
          [](const ReadChunkTask& t) {
            return fmt::format("read chunk {} of {} at checkpoint {}", t.chunk, shard_of(t.lease),
                               t.base_round);
          },
          [](const RecordEvaluationTask&) { return std::string("record the evaluation"); },
          [](const SettleTask& t) {
            return fmt::format("settle shard {} round {}", raw(t.settled.shard), t.settled.round);
          },
      },
      task);
}

std::string describe_notice(const Notice& notice) {
  return std::visit(
      Overloaded{
          [](const VolunteerJoined& n) { return fmt::format("{} joined", n.name); },
          [](const VolunteerLeft& n) {
            return fmt::format("{} left: {}; {} shards to lend", n.name, n.reason, n.shards);
          },
          [](const CheckpointSaved& n) {
            return fmt::format("checkpoint {}", n.record.checkpoint);
          },
          [](const Evaluated& n) { return fmt::format("checkpoint {} evaluated", n.checkpoint); },
          [](const LogLine& n) { return fmt::format("{}: {}", n.kind, n.message); },
          [](const Paused& n) { return "paused: " + n.reason; },
          [](const Resumed&) { return std::string("resumed"); },
          [](const Conviction& n) {
            return fmt::format("{} is convicted: {}", n.who.name, n.what);
          },
          [](const RefereeWanted&) { return std::string("a referee is wanted"); },
      },
      notice);
}

}  // namespace

std::string describe(const Message& message) {
  return std::visit(
      Overloaded{
          [](const ShardOffer& m) {
            return fmt::format("ShardOffer of {} shards at checkpoint {}", m.shards.size(),
                               m.checkpoint);
          },
          [](const LeaseGrant& m) {
            if (m.is_held) {
              return fmt::format("LeaseGrant {} as it is held", shard_of(m.lease));
            }
            return fmt::format(
                "LeaseGrant {} before batch {}, {} chunks of checkpoint {} and {} "
                "more",
                shard_of(m.lease), m.next_batch, m.base_chunks, m.base_round,
                m.chunks - m.base_chunks);
          },
          [](const TrainUnit& m) {
            return fmt::format("TrainUnit {}: batches {}..{} for {}{}", raw(m.unit),
                               m.batches.front().batch, m.batches.back().batch, shards_of(m.leases),
                               m.wants_gradient ? "" : ", a replay");
          },
          [](const UnitResult& m) { return fmt::format("UnitResult {}", raw(m.unit)); },
          [](const EvalUnit& m) {
            return fmt::format("EvalUnit {} for {}", raw(m.unit), shards_of(m.leases));
          },
          [](const InputUnit& m) {
            std::string text =
                fmt::format("InputUnit {} for {}:", raw(m.unit), shards_of(m.leases));
            for (const InputStep& step : m.steps) {
              text += fmt::format(" {}{}", "FBS"[static_cast<std::size_t>(step.kind)], step.index);
            }
            return text;
          },
          [](const InputResult& m) { return fmt::format("InputResult {}", raw(m.unit)); },
          [](const EvalResult& m) { return fmt::format("EvalResult {}", raw(m.unit)); },
          [](const ShardCommit& m) {
            return fmt::format("ShardCommit {} round {} part {} of {}", shard_of(m.lease), m.round,
                               m.part + 1, m.parts);
          },
          [](const CommitCredit& m) { return fmt::format("CommitCredit {}", m.parts); },
          [](const HandOver& m) {
            return fmt::format("HandOver {} before batch {}, part {} of {}", shard_of(m.lease),
                               m.next_batch, m.part + 1, m.parts);
          },
          [](const RelayOpen& m) { return fmt::format("RelayOpen {}", m.channel); },
          [](const RelayFrame& m) {
            return fmt::format("RelayFrame {}: {}", m.channel, describe(decode(m.payload).value()));
          },
          [](const RelayClose& m) { return fmt::format("RelayClose {}", m.channel); },
          [](const RelaySum& m) {
            return fmt::format("RelaySum {} of batch {}, {} units", m.number, m.batch,
                               m.units.size());
          },
          [](const RelaySplit& m) { return fmt::format("RelaySplit {}", m.number); },
          [](const Refusal& m) { return "Refusal: " + m.sentence; },
          [](const Goodbye& m) { return "Goodbye: " + m.sentence; },
          [](const Leaving& m) { return "Leaving: " + m.reason; },
          []<typename T>(const T& m) {
            if constexpr (requires { m.lease; }) {
              return fmt::format("{} {}", message_name(Message(m)), shard_of(m.lease));
            } else {
              return std::string(message_name(Message(m)));
            }
          },
      },
      message);
}

std::string describe(const Event& event) {
  return std::visit(
      Overloaded{
          [](const SessionOpened& e) {
            return fmt::format("connection {} opened", raw(e.session));
          },
          [](const MessageReceived& e) {
            if (std::holds_alternative<Heartbeat>(e.message)) return std::string();
            return fmt::format("<- {} {}", raw(e.session), describe(e.message));
          },
          [](const SessionClosed& e) {
            return fmt::format("connection {} closed: {}", raw(e.session), e.reason);
          },
          [](const BackwardDone& e) { return fmt::format("batch {} applied", e.batch); },
          [](const Staged& e) {
            return fmt::format("staged shard {} round {} part {}", raw(e.shard), e.round,
                               e.part + 1);
          },
          [](const Folded& e) { return fmt::format("folded round {}", e.round); },
          [](const RelaySummed& e) {
            return fmt::format("relay {} sums batch {}, {} units", raw(e.relay), e.batch,
                               e.units.size());
          },
          [](const RelayGone& e) { return fmt::format("relay {} is gone", raw(e.relay)); },
          [](const TaskFailed& e) { return "failed: " + e.error.message; },
          [](const StopRequested&) { return std::string("asked to stop"); },
          [](const auto&) { return std::string(); },
      },
      event);
}

std::string describe(const Effect& effect) {
  return std::visit(
      Overloaded{
          [](const Send& e) {
            if (std::holds_alternative<Heartbeat>(e.message)) return std::string();
            return fmt::format("-> {} {}", raw(e.session), describe(e.message));
          },
          [](const CloseSession& e) { return fmt::format("closes connection {}", raw(e.session)); },
          [](const WorkerTask& e) { return describe_task(e); },
          [](const StorageTask& e) { return describe_task(e); },
          [](const Notice& e) { return "* " + describe_notice(e); },
          [](const Done& e) { return "ends: " + e.error.message; },
          [](const SplitSum& e) { return fmt::format("asks for the parts of sum {}", e.number); },
          [](const CloseRelay& e) { return "closes a relay: " + e.reason; },
      },
      effect);
}

std::string describe(const volunteer::Effect& effect) {
  return std::visit(Overloaded{
                        [](const volunteer::Connect&) { return std::string("dials"); },
                        [](const volunteer::Disconnect&) { return std::string("hangs up"); },
                        [](const volunteer::Exit& e) { return "exits: " + e.error.message; },
                        [](const auto&) { return std::string(); },
                    },
                    effect);
}

}  // namespace gleaner::sim
