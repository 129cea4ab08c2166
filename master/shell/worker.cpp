#include "master/shell/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/model/ndcg.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

Result<void> check_sum(const AddGradientsTask::Part& part) {
  std::vector<std::int32_t> own(part.sum->size());
  if (auto added = add_gradient(*part.codes, *part.packed, own); !added) return added;
  if (gradient_check(*part.codes, own) == *part.check) return {};
  return Error{ErrorCode::kFault, "its sum of gradients is not that of what was sent to it"};
}

}  // namespace

Worker::Worker(const ModelConfig& model, const PackedDataset& train, const PackedDataset* test,
               std::vector<std::uint32_t> label_counts, ThreadPool& pool, bool lends_input)
    : model_(model),
      plan_(model_),
      map_(model_),
      train_(train),
      test_(test),
      pool_(pool),
      coder_(model_, pool),
      propensities_(label_counts, train.points()),
      test_order_(test != nullptr ? std::max<std::uint64_t>(test->points(), 1) : 1,
                  counter_random(model_.seed, Purpose::kSplit)) {
  if (!lends_input && !is_wide(model_)) input_.emplace(model_, pool);
}

Result<void> Worker::load(RunStore& store) {
  if (!input_) return {};
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    const ShardId shard = map_.input_shard(i);
    auto loaded = store.visit_rows(shard, [&](std::uint32_t, const ShardRows& rows) {
      return input_->load_rows(shard, rows);
    });
    if (!loaded) return loaded;
  }
  return {};
}

Event Worker::run(const WorkerTask& task) {
  if (const auto sound = pool_.float_watch().check(); !sound) return TaskFailed{sound.error()};
  // Before: foreign bytes may break what is computed from them. After: nothing of them goes on.
  if (const auto whole = check_data(); !whole) return TaskFailed{whole.error()};
  Event done = std::visit([this](const auto& t) { return run_task(t); }, task);
  if (const auto whole = check_data(); !whole) return TaskFailed{whole.error()};
  return done;
}

Result<void> Worker::check_data() const {
  if (auto whole = train_.check_unchanged(); !whole) return whole;
  return test_ != nullptr ? test_->check_unchanged() : Result<void>();
}

std::vector<ExampleView> Worker::examples_of(BatchIndex batch) const {
  std::vector<ExampleView> examples;
  for (const std::uint64_t point : plan_.points_of(batch)) {
    examples.push_back(train_.example(point));
  }
  return examples;
}

void Worker::add_positives(const ExampleView& example, Positives& positives) const {
  const std::size_t first = positives.neurons.size();
  for (const std::uint32_t label : example.labels) {
    positives.neurons.push_back(map_.neuron_of_label(label));
  }
  std::sort(positives.neurons.begin() + static_cast<std::ptrdiff_t>(first),
            positives.neurons.end());
  positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
}

Positives Worker::positives_of(const std::vector<ExampleView>& examples) const {
  Positives positives;
  positives.offsets.push_back(0);
  for (const ExampleView& example : examples) add_positives(example, positives);
  return positives;
}

ExampleView Worker::held_out(std::uint64_t position) const {
  return test_->example(test_order_.forward(position));
}

Event Worker::forward_done(BatchIndex batch, const std::vector<ExampleView>& examples,
                           QuantizedActivations codes) const {
  ForwardDone done;
  done.batch = batch;
  done.packed = std::make_shared<const Bytes>(pack(codes));
  done.code_length = mean_length(codes);
  done.codes = std::make_shared<const QuantizedActivations>(std::move(codes));
  done.positives = positives_of(examples);
  return done;
}

Event Worker::eval_forward_done(std::uint64_t begin, std::uint64_t end,
                                const QuantizedActivations& codes) {
  return EvalForwardDone{begin, end, std::make_shared<const Bytes>(pack(codes))};
}

Event Worker::run_task(const ForwardTask& task) {
  const std::vector<ExampleView> examples = examples_of(task.batch);
  return forward_done(task.batch, examples, input_->forward(examples, task.batch));
}

Event Worker::run_task(const AddGradientsTask& task) {
  GradientsAdded done{task.sender, {}};
  for (const AddGradientsTask::Part& part : task.parts) {
    auto added = part.check ? check_sum(part) : Result<void>();
    if (added) added = add_gradient(*part.codes, *part.packed, *part.sum);
    if (!added && !done.error) done.error = added.error();
  }
  return done;
}

Event Worker::run_task(const BackwardTask& task) {
  BackwardDone done{task.batch, {}};
  if (input_) {
    input_->backward(task.batch, task.rate, examples_of(task.batch), *task.codes, *task.gradient);
    return done;
  }
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    const NeuronRange units = map_.neurons(map_.input_shard(i));
    done.packed.push_back(std::make_shared<const Bytes>(
        pack_unit_gradient(*task.codes, *task.gradient, {units.begin, units.size()})));
  }
  return done;
}

Event Worker::run_task(const EncodeTask& task) {
  if (task.is_held_out) {
    return eval_forward_done(task.begin, task.end, coder_.encode(*task.activations, {}));
  }
  return forward_done(task.begin, examples_of(task.begin),
                      coder_.encode(*task.activations, task.begin));
}

Event Worker::run_task(const ReadPointsTask& task) {
  const PointsRequest& request = task.request;
  const bool is_training = request.set == PointSet::kTraining;
  const std::uint64_t end = is_training ? train_.points() : test_ != nullptr ? test_->points() : 0;
  PointsRead read{task.session, request.points.size(), std::vector<Points>()};
  std::vector<Points>& parts = *read.parts;
  std::size_t bytes = kPointsBytes;
  for (const std::uint64_t point : request.points) {
    if (point >= end) {
      read.parts = Error{ErrorCode::kProtocol,
                         fmt::format("it asks for example {}, and there are {}", point, end)};
      return read;
    }
    if (bytes >= kPointsBytes) {
      parts.push_back({request.set, {}, {0}, {}, {}, {{0}, {}}});
      bytes = 0;
    }
    const ExampleView example = is_training ? train_.example(point) : held_out(point);
    Points& part = parts.back();
    part.points.push_back(point);
    part.features.insert(part.features.end(), example.features.begin(), example.features.end());
    part.values.insert(part.values.end(), example.values.begin(), example.values.end());
    part.offsets.push_back(static_cast<std::uint32_t>(part.features.size()));
    if (is_training && is_wide(model_)) add_positives(example, part.labels);
    bytes += example.features.size() * (sizeof(std::uint32_t) + sizeof(float));
  }
  return read;
}

Event Worker::run_task(const CommitInputTask& task) {
  InputCommitted committed;
  committed.round = task.round;
  for (std::uint32_t i = 0; input_ && i < map_.input_shards(); ++i) {
    const ShardId shard = map_.input_shard(i);
    std::vector<SparseUpdate> parts = input_->commit(shard);
    const auto count = static_cast<std::uint32_t>(parts.size());
    for (std::uint32_t part = 0; part < count; ++part) {
      committed.parts.push_back(
          {shard, part, count, std::make_shared<const SparseUpdate>(std::move(parts[part]))});
    }
  }
  return committed;
}

Event Worker::run_task(const EvalForwardTask& task) {
  std::vector<ExampleView> examples;
  for (std::uint64_t position = task.begin; position < task.end; ++position) {
    examples.push_back(held_out(position));
  }
  return eval_forward_done(task.begin, task.end, input_->forward(examples, {}));
}

std::vector<ScoredNeuron> Worker::best_of(const EvalScoreTask& task, std::size_t i) const {
  const std::uint64_t examples = task.end - task.begin;
  std::vector<std::span<const ScoredNeuron>> lists;
  for (const std::vector<ScoredNeuron>& list : task.lists) {
    const std::size_t width = list.size() / examples;
    lists.push_back(std::span(list).subspan(i * width, width));
  }
  std::vector<ScoredNeuron> labels = merge_top_k(lists, task.top_k);
  for (ScoredNeuron& best : labels) best.neuron = map_.label_of_neuron(best.neuron);
  return labels;
}

Event Worker::run_task(const EvalScoreTask& task) {
  if (task.begin == 0) {
    sums_.emplace(propensities_);
    scored_ = 0;
    ndcg_at_3_ = ndcg_at_5_ = 0;
    answers_.clear();
    judged_.clear();
  }
  const std::size_t examples = task.end - task.begin;
  std::vector<std::vector<ScoredNeuron>> best(examples);
  pool_.parallel_for(examples, [&](std::size_t i, unsigned) { best[i] = best_of(task, i); });
  for (std::size_t i = 0; i < examples; ++i) {
    const ExampleView example = held_out(task.begin + i);
    if (example.labels.empty()) continue;
    std::vector<std::uint32_t> ranked;
    const std::size_t first = answers_.size();
    for (const auto& [label, logit] : best[i]) {
      ranked.push_back(label);
      answers_.push_back({logit, std::ranges::binary_search(example.labels, label)});
    }
    sums_->add(example.labels, ranked);
    ndcg_at_3_ += ndcg_at(3, example.labels, ranked);
    ndcg_at_5_ += ndcg_at(5, example.labels, ranked);
    if (judged_.size() >= kComparedMax) continue;
    judged_.push_back({example, !ranked.empty() && answers_[first].is_true});
  }
  scored_ += examples;
  return EvalChunkScored{task.begin};
}

Event Worker::run_task(const EvalFinishTask&) {
  Evaluation evaluation;
  evaluation.points = sums_->evaluated();
  evaluation.all_points = scored_ == test_->points();
  evaluation.precision = sums_->precision();
  evaluation.precision.p_at_1_halfwidth =
      precision_halfwidth(evaluation.precision.at_1(), evaluation.points, scored_, test_->points());
  if (evaluation.points > 0) {
    evaluation.ndcg_at_3 = ndcg_at_3_ / static_cast<double>(evaluation.points);
    evaluation.ndcg_at_5 = ndcg_at_5_ / static_cast<double>(evaluation.points);
  }
  evaluation.calibration = fit_calibration(answers_);
  evaluation.test_points = test_->points();
  return EvalFinished{evaluation};
}

}  // namespace gleaner
