#include "master/shell/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "common/data/packed_writer.hpp"
#include "common/limits.hpp"
#include "common/train/input_layer.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "tests/sim/workload/planted_data.hpp"

namespace gleaner {
namespace {

ModelConfig model_of(const PackedDataset& train) {
  ModelConfig model;
  model.points = train.points();
  model.features = train.features();
  model.labels = train.labels();
  model.hidden = 32;
  model.input_shards = 2;
  model.output_shards = 3;
  model.batch_examples = 10;
  model.round_batches = 4;
  model.dropout = 0.3F;
  model.feature_dropout = 0.3F;
  return model;
}

// A master's worker with its own input layer, and one whose input layer is lent.
struct Bench {
  Bench()
      : train(planted_data({}, 7, 0)),
        test(planted_data({40, 48, 40}, 7, 1)),
        model(model_of(*train)),
        plan(model),
        map(model),
        counts(train->labels(), 1),
        owner(model, *train, test.get(), counts, pool, false),
        lender(model, *train, test.get(), counts, pool, true) {}

  // The answer of volunteers with all the input shards.
  std::shared_ptr<std::vector<float>> activations(const std::vector<ExampleView>& examples,
                                                  std::optional<BatchIndex> batch) {
    InputLayer layer(model, pool, InputLayer::NoShards{});
    std::vector<ShardId> shards;
    for (std::uint32_t i = 0; i < map.input_shards(); ++i) {
      shards.push_back(map.input_shard(i));
      layer.hold(shards.back());
    }
    return std::make_shared<std::vector<float>>(layer.activations(examples, batch, shards));
  }

  std::vector<Points> read(PointSet set, std::vector<std::uint64_t> points) {
    const Event event = lender.run(ReadPointsTask{SessionId{5}, {set, std::move(points)}});
    const auto& read = std::get<PointsRead>(event);
    REQUIRE(read.session == SessionId{5});
    REQUIRE(read.parts.ok());
    return *read.parts;
  }

  std::unique_ptr<PackedDataset> train;
  std::unique_ptr<PackedDataset> test;
  ModelConfig model;
  RunPlan plan;
  ShardMap map;
  std::vector<std::uint32_t> counts;
  ThreadPool pool{1};
  Worker owner;
  Worker lender;
};

ExampleView view_of(const Points& points, std::size_t i) {
  const std::size_t begin = points.offsets[i];
  const std::size_t count = points.offsets[i + 1] - begin;
  return {{},
          std::span(points.features).subspan(begin, count),
          std::span(points.values).subspan(begin, count)};
}

// `count` points that all have the features 0 to `features` - 1; the values tell them apart.
std::unique_ptr<PackedDataset> wide_data(std::uint64_t count, std::uint32_t features) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("gleaner-wide-" + std::to_string(getpid())))
          .string();
  auto writer = PackedWriter::create(path, false);
  REQUIRE(writer.ok());
  for (std::uint64_t i = 0; i < count; ++i) {
    Point point;
    point.labels = {0};
    for (std::uint32_t f = 0; f < features; ++f) {
      point.features.push_back(f);
      point.values.push_back(static_cast<float>(i + 1));
    }
    REQUIRE((*writer)->add(point).ok());
  }
  REQUIRE((*writer)->finish({features, 1}, {}, "", AtomicFile::Existing::kReplace).ok());
  auto data = PackedDataset::open(path);
  REQUIRE(data.ok());
  std::filesystem::remove(path);
  return std::move(data).value();
}

}  // namespace

TEST_CASE("worker: activations of volunteers make the codes that its own input layer makes",
          "[worker]") {
  Bench bench;
  for (const BatchIndex batch : {0u, 3u, 9u}) {  // the last has 6 examples
    std::vector<ExampleView> examples;
    for (const std::uint64_t point : bench.plan.points_of(batch)) {
      examples.push_back(bench.train->example(point));
    }
    const Event own = bench.owner.run(ForwardTask{batch});
    const Event lent = bench.lender.run(
        EncodeTask{false, batch, batch + examples.size(), bench.activations(examples, batch)});
    const auto& expected = std::get<ForwardDone>(own);
    const auto& done = std::get<ForwardDone>(lent);
    REQUIRE(done.batch == batch);
    REQUIRE(*done.packed == *expected.packed);
    REQUIRE(*done.codes == *expected.codes);
    REQUIRE(done.positives.offsets == expected.positives.offsets);
    REQUIRE(done.positives.neurons == expected.positives.neurons);
    REQUIRE_FALSE(done.positives.neurons.empty());
  }
}

TEST_CASE("worker: held-out points that volunteers read and compute are those that it scores",
          "[worker]") {
  Bench bench;
  const std::vector<Points> parts = bench.read(PointSet::kTestSet, {0, 1, 2, 3, 4, 5, 6});
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].set == PointSet::kTestSet);
  std::vector<ExampleView> examples;
  for (std::size_t i = 0; i < 7; ++i) examples.push_back(view_of(parts[0], i));
  const Event own = bench.owner.run(EvalForwardTask{0, 7});
  const Event lent =
      bench.lender.run(EncodeTask{true, 0, 7, bench.activations(examples, std::nullopt)});
  REQUIRE(std::get<EvalForwardDone>(lent).begin == 0);
  REQUIRE(std::get<EvalForwardDone>(lent).end == 7);
  REQUIRE(*std::get<EvalForwardDone>(lent).packed == *std::get<EvalForwardDone>(own).packed);
}

TEST_CASE("worker: an evaluation counts the best of all shards, over a sample or all points",
          "[worker]") {
  Bench bench;
  // As if two volunteers had scored the neurons, each with some liking for its number.
  const auto evaluated = [&](std::uint64_t points) {
    bench.owner.run(EvalForwardTask{0, points});
    EvalScoreTask task{0, points, 5, {{}, {}}};
    for (std::uint32_t i = 0; i < points; ++i) {
      for (std::uint32_t n = 0; n < 10; ++n) {
        const std::uint32_t neuron = (n + 7 * i) % bench.model.labels;
        task.lists[n % 2].push_back({neuron, 2.0F - 0.1F * static_cast<float>(n)});
      }
    }
    bench.owner.run(task);
    return std::get<EvalFinished>(bench.owner.run(EvalFinishTask{})).evaluation;
  };
  REQUIRE(bench.test->points() == 40);
  const Evaluation all = evaluated(40);
  REQUIRE(all.all_points);
  REQUIRE(all.points == 40);
  REQUIRE(all.precision.p[2] > 0);
  REQUIRE(all.precision.p_at_1_halfwidth < 0);
  const Evaluation sample = evaluated(15);
  REQUIRE_FALSE(sample.all_points);
  REQUIRE(sample.points == 15);
  REQUIRE(sample.test_points == 40);
  REQUIRE(bench.owner.judged().size() == 15);
  REQUIRE(std::ranges::count(bench.owner.judged(), true, &JudgedExample::is_hit) ==
          std::lround(15 * sample.precision.at_1()));
  REQUIRE(sample.precision.p_at_1_halfwidth ==
          precision_halfwidth(sample.precision.at_1(), 15, 15, 40));
  // Nothing of the sample is left.
  REQUIRE(evaluated(40).precision.psp[2] == all.precision.psp[2]);
  REQUIRE(evaluated(40).ndcg_at_5 == all.ndcg_at_5);
  REQUIRE(evaluated(40).calibration == all.calibration);
  REQUIRE(all.ndcg_at_5 > 0);
}

TEST_CASE("worker: a gradient is cut into the parts of the input shards", "[worker]") {
  Bench bench;
  const Event forward = bench.owner.run(ForwardTask{0});
  const auto& codes = std::get<ForwardDone>(forward).codes;
  std::vector<std::int32_t> gradient(codes->codes.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<std::int32_t>(i);
  const BackwardTask task{0, 0.1F, codes,
                          std::make_shared<const std::vector<std::int32_t>>(gradient)};
  const Event own = bench.owner.run(task);
  REQUIRE(std::get<BackwardDone>(own).packed.empty());
  const Event lent = bench.lender.run(task);
  const auto& done = std::get<BackwardDone>(lent);
  REQUIRE(done.batch == 0);
  REQUIRE(done.packed.size() == 2);
  QuantizedActivations on{codes->examples, codes->hidden, {}, {}};
  on.codes.resize(gradient.size());
  std::vector<std::int32_t> parts(gradient.size());
  for (std::uint32_t i = 0; i < 2; ++i) {
    REQUIRE(unpack_unit_gradient(*done.packed[i], {16 * i, 16}, on, parts).ok());
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    REQUIRE(on.codes[i] == (codes->codes[i] != 0));
    REQUIRE(parts[i] == (codes->codes[i] != 0 ? gradient[i] : 0));
  }
}

TEST_CASE("worker: gradients are added to the sums of their batches", "[worker]") {
  Bench bench;
  const Event forward = bench.owner.run(ForwardTask{0});
  const auto& codes = std::get<ForwardDone>(forward).codes;
  const auto packed = std::make_shared<const Bytes>(
      pack_gradient(*codes, std::vector<std::int32_t>(codes->codes.size(), 3)));
  const auto sum = std::make_shared<std::vector<std::int32_t>>(codes->codes.size());
  const AddGradientsTask task{Volunteer{SessionId{7}, {}, {}, "ann"},
                              {{codes, packed, sum}, {codes, packed, sum}}};
  const Event added = bench.owner.run(task);
  REQUIRE(std::get<GradientsAdded>(added).sender.session == SessionId{7});
  REQUIRE_FALSE(std::get<GradientsAdded>(added).error);
  for (std::size_t i = 0; i < sum->size(); ++i) {
    REQUIRE((*sum)[i] == (codes->codes[i] != 0 ? 6 : 0));
  }
}

TEST_CASE("worker: points are read as they are, without their labels", "[worker]") {
  Bench bench;
  const std::vector<Points> parts = bench.read(PointSet::kTraining, {3, 50, 95});
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].set == PointSet::kTraining);
  REQUIRE(parts[0].points == std::vector<std::uint64_t>{3, 50, 95});
  for (std::size_t i = 0; i < 3; ++i) {
    const ExampleView expected = bench.train->example(parts[0].points[i]);
    const ExampleView read = view_of(parts[0], i);
    REQUIRE(std::equal(read.features.begin(), read.features.end(), expected.features.begin(),
                       expected.features.end()));
    REQUIRE(std::equal(read.values.begin(), read.values.end(), expected.values.begin(),
                       expected.values.end()));
  }
}

TEST_CASE("worker: a large answer comes in parts of about the bytes that it aims at", "[worker]") {
  constexpr std::uint32_t kFeatures = 100;
  constexpr std::size_t kPointBytes = kFeatures * (sizeof(std::uint32_t) + sizeof(float));
  constexpr std::uint64_t kCount = 2000;
  const auto train = wide_data(kCount, kFeatures);
  ModelConfig model = model_of(*train);
  model.output_shards = 1;
  ThreadPool pool(1);
  Worker worker(model, *train, nullptr, {1}, pool, true);
  PointsRequest request{PointSet::kTraining, {}};
  for (std::uint64_t point = 0; point < kCount; ++point) request.points.push_back(point);
  const Event event = worker.run(ReadPointsTask{SessionId{1}, request});
  const auto& read = std::get<PointsRead>(event);
  REQUIRE(read.asked == kCount);
  REQUIRE(read.parts.ok());
  REQUIRE(read.parts->size() == 4);  // three of 656 points, and the rest
  std::uint64_t next = 0;
  for (const Points& part : *read.parts) {
    REQUIRE(part.offsets.size() == part.points.size() + 1);
    REQUIRE(part.offsets.back() == part.features.size());
    REQUIRE(part.values.size() == part.features.size());
    REQUIRE((part.points.size() - 1) * kPointBytes < kPointsBytes);
    if (&part != &read.parts->back()) REQUIRE(part.points.size() * kPointBytes >= kPointsBytes);
    for (std::size_t i = 0; i < part.points.size(); ++i) {
      REQUIRE(part.points[i] == next++);
      REQUIRE(part.values[part.offsets[i]] == static_cast<float>(next));
    }
  }
  REQUIRE(next == kCount);
}

TEST_CASE("worker: points beyond the end are refused, and the worker goes on", "[worker]") {
  Bench bench;
  const auto refused = [](Worker& worker, PointSet set, std::vector<std::uint64_t> points) {
    const std::size_t asked = points.size();
    const Event event = worker.run(ReadPointsTask{SessionId{5}, {set, std::move(points)}});
    const auto& read = std::get<PointsRead>(event);
    REQUIRE(read.session == SessionId{5});
    REQUIRE(read.asked == asked);
    REQUIRE_FALSE(read.parts.ok());
    REQUIRE(read.parts.error().code == ErrorCode::kProtocol);
    return read.parts.error().message;
  };
  REQUIRE_THAT(refused(bench.lender, PointSet::kTraining, {0, 96}),
               Catch::Contains("there are 96"));
  REQUIRE_THAT(refused(bench.lender, PointSet::kTestSet, {40}), Catch::Contains("there are 40"));
  REQUIRE(bench.read(PointSet::kTraining, {95}).size() == 1);
  REQUIRE(bench.read(PointSet::kTestSet, {39}).size() == 1);
  Worker blind(bench.model, *bench.train, nullptr, bench.counts, bench.pool, true);
  REQUIRE_THAT(refused(blind, PointSet::kTestSet, {0}), Catch::Contains("there are 0"));
}

}  // namespace gleaner
