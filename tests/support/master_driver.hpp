// A master's core whose worker, store, clock and volunteers move only on a test's call. Messages to
// volunteers wait in inboxes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "master/core/master_core.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner {

class MasterDriver {
 public:
  MasterDriver(const ModelConfig& model, CoreConfig config, ResumePoint resume = {});

  // -- volunteers
  SessionId open();
  // Another connection of the volunteer of session `other`.
  SessionId open_again(SessionId other);
  // Opens a session and sends an acceptable Hello, with an identity of its own.
  SessionId join(const std::string& name, float speed = 1);
  [[nodiscard]] Hello hello(const std::string& name) const;
  void say(SessionId id, Message message);
  SessionId join_as(const std::string& name, const Standing& standing);
  // By an invite of its own.
  SessionId join_stranger(const std::string& name);
  // The trusted volunteer of the master's own process that decides audits.
  SessionId join_referee();

  // Makes a session's answers false from now on.
  void corrupt(SessionId id, std::function<void(Message&)> lie) { lies_[id] = std::move(lie); }

  void close(SessionId id);
  // The owner bans the volunteer.
  void ban(const std::string& name);

  // -- time
  void tick(Micros passed = Micros(0));
  void stop();

  [[nodiscard]] Instant now() const { return now_; }

  // -- the world's answers. Each function does the oldest task; false when none waits.
  bool run_worker();
  bool run_storage();

  // The store has no room for its oldest task, which stays queued.
  void refuse_storage(Error error) { handle(StoreFull{std::move(error)}); }

  // Sends the honest answer to the session's oldest task; other messages stay. Held and closed
  // sessions do nothing.
  bool serve(SessionId id);
  // Takes the oldest task without an answer; nullopt without a task.
  std::optional<Message> take_task(SessionId id);
  // Takes the session's oldest wanted message without an answer; nullopt without such a message.
  std::optional<Message> take_if(SessionId id, const std::function<bool(const Message&)>& wanted);
  // Sends an honest volunteer's answers to the message.
  void answer_as(SessionId id, const Message& message);

  void hold(SessionId id) { held_.insert(id); }

  void unhold(SessionId id) { held_.erase(id); }

  // Does all tasks, until nothing moves.
  void settle();
  // As settle(), without the store.
  void settle_without_storage();
  // As settle(); a referee joins when an audit needs it.
  void run_to_end();

  // -- results
  // Takes the session's oldest message of this type out of its inbox; fails the test without such a
  // message.
  template <typename T>
  T take(SessionId id) {
    auto& box = inboxes_[id];
    for (auto message = box.begin(); message != box.end(); ++message) {
      if (!std::holds_alternative<T>(*message)) continue;
      T found = std::get<T>(std::move(*message));
      box.erase(message);
      return found;
    }
    fail_missing(id);
  }

  template <typename T>
  [[nodiscard]] std::size_t count(SessionId id) const {
    const auto box = inboxes_.find(id);
    if (box == inboxes_.end()) return 0;
    std::size_t found = 0;
    for (const Message& message : box->second) found += std::holds_alternative<T>(message) ? 1 : 0;
    return found;
  }

  template <typename T>
  [[nodiscard]] std::vector<T> notices() const {
    std::vector<T> found;
    for (const Notice& notice : notices_) {
      if (const auto* t = std::get_if<T>(&notice)) found.push_back(*t);
    }
    return found;
  }

  [[nodiscard]] RunProgress progress() const { return core_.progress(); }

  // None while the run goes on.
  [[nodiscard]] std::optional<Outcome> outcome() const {
    return done ? std::optional(done->outcome) : std::nullopt;
  }

  template <typename Reason>
  [[nodiscard]] const Reason& reason() const {
    return std::get<Reason>(*done->reason);
  }

  // Whether the core has ended so that the open rounds are trained again, for this reason.
  template <typename Reason>
  [[nodiscard]] bool trains_again() const {
    return outcome() == Outcome::kTrainAgain && std::holds_alternative<Reason>(*done->reason);
  }

  [[nodiscard]] bool is_closed(SessionId id) const { return closed_.contains(id); }

  MasterCore& core() { return core_; }

  HonestVolunteer& volunteer(SessionId id) { return volunteers_.at(id); }

  [[nodiscard]] const RunPlan& plan() const { return plan_; }

  [[nodiscard]] const ShardMap& map() const { return map_; }

  [[nodiscard]] std::uint32_t held_by(SessionId id) const {
    return static_cast<std::uint32_t>(core_.leases().held_by(id).size());
  }

  std::deque<WorkerTask> worker;    // not done yet
  std::deque<StorageTask> storage;  // not done yet
  std::vector<std::string> worked;  // tasks in the order of issue: F0 B0 C0 E0 S0 X, f0 e0 P
  std::vector<std::string> stored;  // done: stage 0/2.0, fold 0, read 1/0, evaluation
  std::map<BatchIndex, std::vector<std::int32_t>> gradients;  // of backward tasks
  std::map<BatchIndex, std::vector<float>> activations;       // of batches to be encoded
  std::optional<Done> done;
  std::vector<ShardDigest> digests;         // of every coming fold
  std::deque<double> precisions;            // P@1 of the coming evaluations; then 0.5
  std::map<BatchIndex, float> input_rates;  // of backward tasks
  std::function<double(BatchIndex)> code_length = [](BatchIndex) { return 1.0; };
  // Called before and after the core handles an event.
  std::function<void(const Event&)> before = [](const Event&) {};
  std::function<void()> after = [] {};
  std::optional<FoldTask> last_fold;
  std::optional<ReadChunkTask> last_read;
  std::vector<SettledRound> settled;  // in the order of their records

 private:
  void open_as(SessionId id, const Standing& standing);
  void handle(Event event);
  void perform(Send& effect);
  void perform(CloseSession& effect);
  void perform(WorkerTask& task);
  void perform(StorageTask& task);
  void perform(Notice& notice);
  void perform(Done& effect);

  // A driver has no relays.
  void perform(SplitSum&) {}

  void perform(CloseRelay&) {}

  [[nodiscard]] Event answer(const ForwardTask& task) const;
  [[nodiscard]] static Event answer(const AddGradientsTask& task);
  Event answer(const BackwardTask& task);
  [[nodiscard]] Event answer(const CommitInputTask& task) const;
  [[nodiscard]] Event answer(const EvalForwardTask& task) const;
  [[nodiscard]] Event answer(const EncodeTask& task) const;
  [[nodiscard]] Event answer(const ReadPointsTask& task) const;
  [[nodiscard]] Event answer(const EvalScoreTask& task) const;
  Event answer(const EvalFinishTask& task);
  Event answer(const StageTask& task);
  Event answer(const FoldTask& task);
  Event answer(const ReadChunkTask& task);
  Event answer(const SettleTask& task);
  Event answer(const RecordEvaluationTask& task);
  bool serve_everyone();
  [[noreturn]] void fail_missing(SessionId id) const;

  ModelConfig model_;
  RunPlan plan_;
  ShardMap map_;
  std::uint64_t test_points_;
  RoundIndex checkpoint_;  // of the store
  MasterCore core_;
  Instant now_{Micros(1'000'000)};
  std::uint64_t last_session_ = 0;
  std::map<SessionId, HonestVolunteer> volunteers_;
  std::map<SessionId, std::function<void(Message&)>> lies_;
  std::map<SessionId, std::deque<Message>> inboxes_;
  std::set<SessionId> closed_;
  std::set<SessionId> held_;
  std::vector<Notice> notices_;
};

// The sums of all batches of an honest tiny run without audits.
std::map<BatchIndex, std::vector<std::int32_t>> honest_gradients();

// A lie that replaces a `From` by a `To` with the same unit.
template <typename From, typename To>
bool replace_result(Message& message) {
  const auto* result = std::get_if<From>(&message);
  if (result == nullptr) return false;
  To other;
  other.unit = result->unit;
  message = std::move(other);
  return true;
}

}  // namespace gleaner
