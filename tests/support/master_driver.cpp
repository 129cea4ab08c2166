#include "tests/support/master_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/result.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

MasterDriver::MasterDriver(const ModelConfig& model, CoreConfig config, ResumePoint resume)
    : model_(model),
      plan_(model),
      map_(model),
      test_points_(config.test_points),
      checkpoint_(resume.checkpoint),
      core_(model, std::move(config), resume) {
  handle(Tick{});
}

// ---- Volunteers --------------------------------------------------------------------------------

SessionId MasterDriver::open() {
  const SessionId id{++last_session_};
  volunteers_.emplace(id, HonestVolunteer(model_));
  open_as(id, {KeyId{7, last_session_}, Role::kVolunteer, true, false, {}});
  return id;
}

SessionId MasterDriver::open_again(SessionId other) {
  const SessionId id{++last_session_};
  volunteers_.emplace(id, HonestVolunteer(model_));
  open_as(id, {KeyId{7, raw(other)}, Role::kVolunteer, true, false, {}});
  return id;
}

void MasterDriver::open_as(SessionId id, const Standing& standing) {
  handle(SessionOpened{id, fmt::format("peer-{}", raw(id)), standing});
}

Hello MasterDriver::hello(const std::string& name) const {
  Hello hello;
  hello.protocol_min = kProtocolMin;
  hello.protocol_max = kProtocolMax;
  hello.build = "test";
  hello.name = name;
  hello.cores = 1;
  hello.memory_bytes = std::uint64_t{1} << 30;
  hello.simd = "scalar";
  hello.speed = 1;
  return hello;
}

SessionId MasterDriver::join(const std::string& name, float speed) {
  const SessionId id = open();
  Hello greeting = hello(name);
  greeting.speed = speed;
  say(id, std::move(greeting));
  return id;
}

SessionId MasterDriver::join_as(const std::string& name, const Standing& standing) {
  const SessionId id{++last_session_};
  volunteers_.emplace(id, HonestVolunteer(model_));
  open_as(id, standing);
  say(id, hello(name));
  return id;
}

SessionId MasterDriver::join_stranger(const std::string& name) {
  const std::uint64_t number = last_session_ + 1;
  return join_as(name, {KeyId{7, number}, Role::kVolunteer, false, false, InviteId{number}});
}

SessionId MasterDriver::join_referee() {
  return join_as("referee", {kRefereeIdentity, Role::kVolunteer, true, true, {}});
}

void MasterDriver::ban(const std::string& name) {
  for (const AccountRecord& account : core_.accounts()) {
    if (account.name == name) return handle(Banned{account.identity, name});
  }
  throw std::invalid_argument("nobody is called " + name);
}

void MasterDriver::say(SessionId id, Message message) {
  handle(MessageReceived{id, std::move(message), 10});
}

void MasterDriver::close(SessionId id) {
  inboxes_.erase(id);
  handle(SessionClosed{id, "the connection broke"});
}

void MasterDriver::tick(Micros passed) {
  now_ += passed;
  handle(Tick{});
}

void MasterDriver::stop() {
  handle(StopRequested{});
}

// ---- The world's answers -----------------------------------------------------------------------

bool MasterDriver::run_worker() {
  if (worker.empty()) return false;
  // Sums come with what follows them, the only thing that waits for them.
  for (bool is_sum = true; is_sum && !worker.empty();) {
    const WorkerTask task = std::move(worker.front());
    worker.pop_front();
    is_sum = std::holds_alternative<AddGradientsTask>(task);
    handle(std::visit([this](const auto& t) -> Event { return answer(t); }, task));
  }
  return true;
}

bool MasterDriver::run_storage() {
  if (storage.empty()) return false;
  const StorageTask task = std::move(storage.front());
  storage.pop_front();
  handle(std::visit([this](const auto& t) -> Event { return answer(t); }, task));
  return true;
}

std::optional<Message> MasterDriver::take_task(SessionId id) {
  return take_if(id, &HonestVolunteer::is_task);
}

std::optional<Message> MasterDriver::take_if(SessionId id,
                                             const std::function<bool(const Message&)>& wanted) {
  std::deque<Message>& box = inboxes_[id];
  const auto next = std::find_if(box.begin(), box.end(), wanted);
  if (next == box.end()) return std::nullopt;
  Message message = std::move(*next);
  box.erase(next);
  return message;
}

bool MasterDriver::serve(SessionId id) {
  if (held_.contains(id) || closed_.contains(id)) return false;
  const std::optional<Message> task = take_task(id);
  if (!task) return false;
  answer_as(id, *task);
  return true;
}

void MasterDriver::answer_as(SessionId id, const Message& message) {
  const auto lie = lies_.find(id);
  for (Message& reply : volunteers_.at(id).replies_to(message)) {
    if (lie != lies_.end()) lie->second(reply);
    say(id, std::move(reply));
  }
}

bool MasterDriver::serve_everyone() {
  bool moved = false;
  for (auto& [id, volunteer] : volunteers_) {
    while (serve(id)) moved = true;
  }
  return moved;
}

void MasterDriver::settle() {
  while (run_worker() || run_storage() || serve_everyone()) {
  }
}

void MasterDriver::run_to_end() {
  bool has_referee = false;
  for (int i = 0; i < 4 && !outcome(); ++i) {
    settle();
    if (!has_referee && !notices<RefereeWanted>().empty()) {
      has_referee = true;
      join_referee();
    }
  }
}

void MasterDriver::settle_without_storage() {
  while (run_worker() || serve_everyone()) {
  }
}

Event MasterDriver::answer(const ForwardTask& task) const {
  ForwardDone event;
  event.batch = task.batch;
  auto codes = std::make_shared<QuantizedActivations>(tiny_codes(plan_, task.batch, model_.hidden));
  event.packed = std::make_shared<const Bytes>(pack(*codes));
  // Example i has the one label i, wherever that is.
  event.positives.offsets.push_back(0);
  for (std::uint32_t i = 0; i < codes->examples; ++i) {
    event.positives.neurons.push_back(map_.neuron_of_label(i));
    event.positives.offsets.push_back(i + 1);
  }
  event.codes = std::move(codes);
  event.code_length = code_length(task.batch);
  return event;
}

Event MasterDriver::answer(const AddGradientsTask& task) {
  GradientsAdded event{task.sender, {}};
  for (const AddGradientsTask::Part& part : task.parts) {
    const auto added = add_gradient(*part.codes, *part.packed, *part.sum);
    if (!added) event.error = added.error();
  }
  return event;
}

Event MasterDriver::answer(const BackwardTask& task) {
  gradients[task.batch] = *task.gradient;
  BackwardDone event{task.batch, {}};
  if (!core_.input_stream()) return event;
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    const NeuronRange units = map_.neurons(map_.input_shard(i));
    event.packed.push_back(std::make_shared<const Bytes>(
        pack_unit_gradient(*task.codes, *task.gradient, {units.begin, units.size()})));
  }
  return event;
}

Event MasterDriver::answer(const CommitInputTask& task) const {
  InputCommitted event;
  event.round = task.round;
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    event.parts.push_back({map_.input_shard(i), 0, 1, std::make_shared<const SparseUpdate>()});
  }
  return event;
}

Event MasterDriver::answer(const EvalForwardTask& task) const {
  QuantizedActivations codes;
  codes.examples = static_cast<std::uint32_t>(task.end - task.begin);
  codes.hidden = model_.hidden;
  codes.scales.resize(codes.examples, 1.0F);
  codes.codes.resize(std::size_t{codes.examples} * codes.hidden, 1);
  return EvalForwardDone{task.begin, task.end, std::make_shared<const Bytes>(pack(codes))};
}

Event MasterDriver::answer(const EncodeTask& task) const {
  if (task.is_held_out) return answer(EvalForwardTask{task.begin, task.end});
  return answer(ForwardTask{task.begin});
}

Event MasterDriver::answer(const ReadPointsTask& task) const {
  const std::uint64_t end = task.request.set == PointSet::kTraining ? model_.points : test_points_;
  if (task.request.points.back() >= end) {
    return PointsRead{task.session, task.request.points.size(),
                      Error{ErrorCode::kProtocol, "there is no such point"}};
  }
  // Every point has the one feature 0.
  Points points{task.request.set, task.request.points, {0}, {}, {}, {{0}, {}}};
  for (std::size_t i = 0; i < task.request.points.size(); ++i) {
    points.features.push_back(0);
    points.values.push_back(1.0F);
    points.offsets.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return PointsRead{task.session, task.request.points.size(), std::vector<Points>{points}};
}

Event MasterDriver::answer(const EvalScoreTask& task) const {
  return EvalChunkScored{task.begin};
}

Event MasterDriver::answer(const EvalFinishTask&) {
  Evaluation evaluation;
  evaluation.points = 1;
  evaluation.precision.p[0] = 0.5;
  if (!precisions.empty()) {
    evaluation.precision.p[0] = precisions.front();
    precisions.pop_front();
  }
  return EvalFinished{evaluation};
}

Event MasterDriver::answer(const StageTask& task) {
  stored.push_back(fmt::format("stage {}/{}.{}", task.round, raw(task.shard), task.part));
  return Staged{task.session, task.shard, task.round, task.part, task.parts, task.lease};
}

Event MasterDriver::answer(const FoldTask& task) {
  stored.push_back(fmt::format("fold {}", task.round));
  last_fold = task;
  checkpoint_ = task.round + 1;
  return Folded{task.round, digests};
}

Event MasterDriver::answer(const ReadChunkTask& task) {
  stored.push_back(fmt::format("read {}/{}", raw(task.lease.shard), task.chunk));
  last_read = task;
  if (task.base_round < checkpoint_) throw std::logic_error("a read of a checkpoint that is gone");
  return ChunkRead{task.session, task.lease, task.chunk, {}};
}

Event MasterDriver::answer(const SettleTask& task) {
  stored.push_back(fmt::format("settle {}/{}", task.settled.round, raw(task.settled.shard)));
  settled.push_back(task.settled);
  return Settled{};
}

Event MasterDriver::answer(const RecordEvaluationTask&) {
  stored.emplace_back("evaluation");
  return HistoryRecorded{};
}

// ---- What comes out ----------------------------------------------------------------------------

void MasterDriver::handle(Event event) {
  before(event);
  Effects effects = core_.handle(std::move(event), now_);
  after();
  for (Effect& effect : effects) {
    if (done) throw std::logic_error("an effect after Done");
    std::visit([this](auto& e) { perform(e); }, effect);
  }
}

void MasterDriver::perform(Send& effect) {
  if (closed_.contains(effect.session)) throw std::logic_error("a message after CloseSession");
  core_.handle(MessageSent{effect.session, effect.message.index(), 10}, now_);
  inboxes_[effect.session].push_back(std::move(effect.message));
}

void MasterDriver::perform(CloseSession& effect) {
  closed_.insert(effect.session);
}

void MasterDriver::perform(WorkerTask& task) {
  worked.push_back(
      std::visit(Overloaded{
                     [](const ForwardTask& t) { return fmt::format("F{}", t.batch); },
                     [this](const BackwardTask& t) {
                       input_rates[t.batch] = t.rate;
                       return fmt::format("B{}", t.batch);
                     },
                     [](const CommitInputTask& t) { return fmt::format("C{}", t.round); },
                     [](const EvalForwardTask& t) { return fmt::format("E{}", t.begin); },
                     [](const EvalScoreTask& t) { return fmt::format("S{}", t.begin); },
                     [](const EvalFinishTask&) { return std::string("X"); },
                     [this](const EncodeTask& t) {
                       if (!t.is_held_out) activations[t.begin] = *t.activations;
                       return fmt::format("{}{}", t.is_held_out ? "e" : "f", t.begin);
                     },
                     [](const ReadPointsTask&) { return std::string("P"); },
                     [](const AddGradientsTask&) { return std::string(); },
                 },
                 task));
  if (worked.back().empty()) worked.pop_back();
  worker.push_back(std::move(task));
}

void MasterDriver::perform(StorageTask& task) {
  storage.push_back(std::move(task));
}

void MasterDriver::perform(Notice& notice) {
  notices_.push_back(std::move(notice));
}

void MasterDriver::perform(Done& effect) {
  done = std::move(effect);
}

void MasterDriver::fail_missing(SessionId id) const {
  std::string what = fmt::format("no such message for session {}; there are:", raw(id));
  if (const auto box = inboxes_.find(id); box != inboxes_.end()) {
    for (const Message& message : box->second) what += fmt::format(" {}", message_name(message));
  }
  throw std::logic_error(what);
}

std::map<BatchIndex, std::vector<std::int32_t>> honest_gradients() {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, tiny_core_config(model));
  master.join_stranger("ann");
  master.settle();
  GLEANER_CHECK(master.outcome() == Outcome::kFinished);
  return master.gradients;
}

}  // namespace gleaner
