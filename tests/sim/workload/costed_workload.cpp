#include "tests/sim/workload/costed_workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/limits.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "schema/wire/codec.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint32_t kExamples = 8;  // a batch of the small model
constexpr double kSmallMessageBytes = 150;
constexpr double kMebibyte = 1 << 20;
constexpr Micros kFoldStep{5'000};
constexpr double kAddedGradientUs = 0.5;  // for each example of a batch

Micros micros(double us) {
  return Micros(static_cast<std::int64_t>(us));
}

ModelConfig small_model(const CostModel& cost) {
  ModelConfig model;
  const double shard_bytes = cost.row_bytes * cost.labels / cost.shards;
  // As many rows as the modelled shard has chunks.
  const auto rows = static_cast<std::uint32_t>(std::ceil(shard_bytes / kRowsPerChunkBytes));
  model.points = std::uint64_t{kExamples} * cost.batches;
  model.features = 8;
  model.labels = cost.shards * rows;
  model.hidden = cost.hidden == 0 ? 0 : 16;
  if (is_wide(model)) model.wide_rows = rows;
  model.output_shards = cost.shards;
  model.epochs = 1;
  model.batch_examples = kExamples;
  model.round_batches = cost.round_batches;
  model.staleness = cost.staleness;
  model.hash_bits = 2;
  model.tables = 2;
  return model;
}

class CostedMaster : public MasterTasks {
 public:
  CostedMaster(const CostModel& cost, const ModelConfig& model)
      : cost_(cost), model_(model), plan_(model), map_(model) {}

  Event run(const WorkerTask& task) override {
    if (const auto* forward = std::get_if<ForwardTask>(&task)) {
      ForwardDone done;
      done.batch = forward->batch;
      auto codes =
          std::make_shared<QuantizedActivations>(tiny_codes(plan_, forward->batch, model_.hidden));
      done.packed = std::make_shared<const Bytes>(gleaner::pack(*codes));
      done.positives.offsets.resize(codes->examples + std::size_t{1});
      done.codes = std::move(codes);
      return done;
    }
    if (const auto* backward = std::get_if<BackwardTask>(&task)) {
      return BackwardDone{backward->batch, {}};
    }
    if (const auto* add = std::get_if<AddGradientsTask>(&task)) {
      return GradientsAdded{add->sender, {}};
    }
    InputCommitted done;
    done.round = std::get<CommitInputTask>(task).round;
    for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
      done.parts.push_back({map_.input_shard(i), 0, 1, std::make_shared<const SparseUpdate>()});
    }
    return done;
  }

  std::optional<Event> run(const StorageTask& task) override {
    if (const auto* stage = std::get_if<StageTask>(&task)) {
      return Staged{stage->session, stage->shard, stage->round,
                    stage->part,    stage->parts, stage->lease};
    }
    if (std::holds_alternative<SettleTask>(task)) return Settled{};
    if (const auto* fold = std::get_if<FoldTask>(&task)) {
      fold_left_ -= fold_step();
      if (fold_left_ > Micros(0)) return std::nullopt;
      fold_left_ = cost_.fold;
      return Folded{fold->round, {}};
    }
    if (const auto* read = std::get_if<ReadChunkTask>(&task)) {
      return ChunkRead{read->session, read->lease, read->chunk, tiny_rows(map_, read->lease.shard)};
    }
    if (std::holds_alternative<SettleTask>(task)) return Settled{};
    return HistoryRecorded{};
  }

  [[nodiscard]] Micros cost(const WorkerTask& task) const override {
    if (const auto* add = std::get_if<AddGradientsTask>(&task)) {
      const double batches = static_cast<double>(add->parts.size());
      return micros(batches * cost_.batch_examples * kAddedGradientUs);
    }
    const bool is_pass =
        std::holds_alternative<ForwardTask>(task) || std::holds_alternative<BackwardTask>(task);
    return micros(is_pass ? cost_.batch_examples * cost_.example_us * cost_.input_share : 5'000);
  }

  [[nodiscard]] Micros cost(const StorageTask& task) const override {
    if (std::holds_alternative<FoldTask>(task)) return fold_step();
    if (std::holds_alternative<SettleTask>(task)) return Micros(0);
    if (std::holds_alternative<StageTask>(task)) return cost_.stage_round / cost_.shards;
    if (std::holds_alternative<SettleTask>(task)) return Micros(20);
    const double bytes = cost_.row_bytes * cost_.labels / model_.labels;
    return micros(bytes / kMebibyte * static_cast<double>(cost_.read_mib.count()));
  }

  RunStore* store() override { return nullptr; }

 private:
  [[nodiscard]] Micros fold_step() const { return std::min(fold_left_, kFoldStep); }

  const CostModel& cost_;
  const ModelConfig& model_;
  const RunPlan plan_;
  const ShardMap map_;
  Micros fold_left_ = cost_.fold;
};

class CostedVolunteer : public VolunteerTasks {
 public:
  CostedVolunteer(const CostModel& cost, const ModelConfig& model, double& trained_examples)
      : cost_(cost),
        model_(model),
        plan_(model),
        honest_(model),
        trained_examples_(trained_examples) {}

  Result<std::vector<Message>> execute(const Work& work) override {
    if (const auto* reset = std::get_if<volunteer::Reset>(&work)) {
      honest_ = HonestVolunteer(model_);
      std::vector<Message> replies;
      if (reset->checkpoint) replies.emplace_back(ShardOffer{*reset->checkpoint, {}});
      return replies;
    }
    if (std::holds_alternative<volunteer::Forget>(work)) {
      honest_ = HonestVolunteer(model_);
      return std::vector<Message>{};
    }
    trained_examples_ += examples_of(work);
    std::vector<Message> replies = honest_.replies_to(std::get<Message>(work));
    // The core asks for chunks itself.
    std::erase_if(replies,
                  [](const Message& m) { return std::holds_alternative<ChunkRequest>(m); });
    for (Message& reply : replies) {
      // Right after a commit there is nothing else to hand over.
      auto* part = std::get_if<HandOver>(&reply);
      if (part != nullptr && part->next_batch == plan_.round_begin(part->base_round)) {
        part->rows = {};
      }
    }
    return replies;
  }

  [[nodiscard]] Micros cost(const Work& work) const override {
    const double examples = examples_of(work);
    return examples > 0 ? micros(examples * (cost_.example_us + cost_.pass_us * cost_.shards))
                        : Micros(500);
  }

 private:
  // A unit's examples, by its share of all shards; 0 for other work.
  [[nodiscard]] double examples_of(const Work& work) const {
    const auto* message = std::get_if<Message>(&work);
    const auto* unit = message == nullptr ? nullptr : std::get_if<TrainUnit>(message);
    if (unit == nullptr) return 0;
    const double share = static_cast<double>(unit->leases.size()) / cost_.shards;
    const std::size_t batches = is_wide(model_)
                                    ? plan_.round_end(plan_.round_of(unit->batches.front().batch)) -
                                          unit->batches.front().batch
                                    : unit->batches.size();
    return static_cast<double>(batches) * cost_.batch_examples * share;
  }

  const CostModel& cost_;
  const ModelConfig& model_;
  const RunPlan plan_;
  HonestVolunteer honest_;
  double& trained_examples_;
};

}  // namespace

CostedWorkload::CostedWorkload(const CostModel& cost) : cost_(cost), model_(small_model(cost)) {}

Result<Workload::Opened> CostedWorkload::open(std::unique_ptr<Store>, const CoreConfig& /*config*/,
                                              const std::function<void(RunStore&)>&) {
  Opened master;
  master.tasks = std::make_unique<CostedMaster>(cost_, model_);
  return master;
}

std::unique_ptr<VolunteerTasks> CostedWorkload::start_volunteer(std::uint64_t) {
  return std::make_unique<CostedVolunteer>(cost_, model_, trained_examples_);
}

void CostedWorkload::complete(CoreConfig& config) const {
  config.test_points = 0;
  config.rows_per_chunk = 1;
  config.label_counts.assign(model_.labels, 1);
}

double CostedWorkload::shard_rows() const {
  return static_cast<double>(cost_.labels) / cost_.shards;
}

double CostedWorkload::size_of(const Message& message) const {
  if (const auto* frame = std::get_if<RelayFrame>(&message)) {
    const auto parts = static_cast<double>(frame->parts.size());
    return size_of(decode(frame->payload).value()) -
           parts * cost_.batch_examples * cost_.activation_bytes;
  }
  if (std::holds_alternative<RelayPart>(message)) {
    return cost_.batch_examples * cost_.activation_bytes;
  }
  if (std::holds_alternative<RelaySum>(message)) return cost_.batch_examples * cost_.bytes_up;
  if (const auto* unit = std::get_if<TrainUnit>(&message)) {
    if (is_wide(model_)) return 0;  // its first batch alone
    const double share = static_cast<double>(unit->leases.size()) / cost_.shards;
    return static_cast<double>(unit->batches.size()) * cost_.batch_examples *
           (cost_.activation_bytes + cost_.count_bytes + cost_.label_bytes * share);
  }
  if (const auto* result = std::get_if<UnitResult>(&message)) {
    double bytes = 0;
    for (const BatchResult& batch : result->batches) {
      if (!batch.gradient.empty()) bytes += cost_.batch_examples * cost_.bytes_up;
    }
    return bytes;
  }
  if (const auto* chunk = std::get_if<ShardChunk>(&message)) {
    if (chunk->rows.rows.empty()) return 0;
    return cost_.row_bytes * cost_.labels / model_.labels;
  }
  // Every row is touched in a round of this size.
  if (std::holds_alternative<ShardCommit>(message)) return cost_.commit_row_bytes * shard_rows();
  if (const auto* part = std::get_if<HandOver>(&message)) {
    return part->rows.rows.empty() ? 0 : cost_.row_bytes * shard_rows();
  }
  if (std::holds_alternative<LeaseGrant>(message)) return 2 * shard_rows();
  return 0;
}

std::size_t CostedWorkload::wire_bytes(const Bytes& payload) const {
  return static_cast<std::size_t>(size_of(decode(payload).value()) + kSmallMessageBytes);
}

}  // namespace gleaner::sim
