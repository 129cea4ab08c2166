// A master's core with everything around it under a test's hand: its worker, its store, its clock
// and its volunteers move only when they are told to. Messages to volunteers wait in inboxes.
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
  // Another connection of the volunteer that has the session `other`.
  SessionId open_again(SessionId other);
  // Opens a session and says an acceptable Hello, with an identity of its own.
  SessionId join(const std::string& name, float speed = 1);
  [[nodiscard]] Hello hello(const std::string& name) const;
  void say(SessionId id, Message message);
  SessionId join_as(const std::string& name, const Standing& standing);
  // By an invite of its own.
  SessionId join_stranger(const std::string& name);
  // The trusted volunteer of the master's own process that decides audits.
  SessionId join_referee();

  // Changes what a session says, instead of the honest answer, from now on.
  void corrupt(SessionId id, std::function<void(Message&)> lie) { lies_[id] = std::move(lie); }

  void close(SessionId id);
  // The owner bans it.
  void ban(const std::string& name);

  // -- time
  void tick(Micros passed = Micros(0));
  void stop();

  [[nodiscard]] Instant now() const { return now_; }

  // -- the world's answers. Each does the oldest piece; false when there is none.
  bool run_worker();
  bool run_storage();

  // The store has no room for its oldest task, which stays.
  void refuse_storage(Error error) { handle(StoreFull{std::move(error)}); }

  // The honest answer to the session's oldest message that asks for something; other messages stay.
  // Held and closed sessions do nothing.
  bool serve(SessionId id);
  // That message, unanswered; nullopt when there is none.
  std::optional<Message> take_task(SessionId id);
  // The session's oldest message that is wanted, unanswered; nullopt when there is none.
  std::optional<Message> take_if(SessionId id, const std::function<bool(const Message&)>& wanted);
  // Says what an honest volunteer says to the message.
  void answer_as(SessionId id, const Message& message);

  void hold(SessionId id) { held_.insert(id); }

  void unhold(SessionId id) { held_.erase(id); }

  // Everything, until nothing moves any more.
  void settle();
  // Settles all but the store.
  void settle_without_storage();
  // As settle(), and a referee joins when one is wanted.
  void run_to_end();

  // -- what came out
  // The session's oldest message of this type, taken out of its inbox; fails the test when there is
  // none.
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

  // Nothing while the run goes on.
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
  std::vector<std::string>
      worked;  // tasks in the order in which they came out: F0 B0 C0 E0 S0 X, f0 e0 P
  std::vector<std::string> stored;  // done: stage 0/2.0, fold 0, read 1/0, evaluation
  std::map<BatchIndex, std::vector<std::int32_t>> gradients;  // of backward tasks
  std::map<BatchIndex, std::vector<float>> activations;       // of batches to be encoded
  std::optional<Done> done;
  std::vector<ShardDigest> digests;         // of every fold to come
  std::deque<double> precisions;            // P@1 of the evaluations to come; then 0.5
  std::map<BatchIndex, float> input_rates;  // of backward tasks
  std::function<double(BatchIndex)> code_length = [](BatchIndex) { return 1.0; };
  // Told of every event before the core handles it, and once it has.
  std::function<void(const Event&)> before = [](const Event&) {};
  std::function<void()> after = [] {};
  std::optional<FoldTask> last_fold;
  std::optional<ReadChunkTask> last_read;
  std::vector<SettledRound> settled;  // in the order in which they were recorded

 private:
  void open_as(SessionId id, const Standing& standing);
  void handle(Event event);
  void perform(Send& effect);
  void perform(CloseSession& effect);
  void perform(WorkerTask& task);
  void perform(StorageTask& task);
  void perform(Notice& notice);
  void perform(Done& effect);

  // It has no relays.
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

// The sums of all batches of a tiny run that nobody audits and everybody is honest in.
std::map<BatchIndex, std::vector<std::int32_t>> honest_gradients();

// A lie: in place of a `From`, a `To` that bears its unit.
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
