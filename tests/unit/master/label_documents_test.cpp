#include "master/label_documents.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/counter_random.hpp"
#include "master/voters.hpp"
#include "tests/sim/planted_data.hpp"
#include "tests/unit/master/listed_example.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kFeatures = 60;

TrainingPoints points_of(const std::vector<Example>& points) {
  return {static_cast<std::uint32_t>(points.size()), kFeatures,
          [&points](std::uint32_t point) { return points[point].view(); }};
}

ModelConfig layer_config() {
  ModelConfig config;
  config.points = 100;
  config.features = kFeatures;
  config.labels = 100;
  config.hidden = 32;
  config.round_batches = 1;
  return config;
}

// Points of `labels` labels with words of their own and common ones; label 3 has none.
std::vector<Example> random_points(std::uint32_t labels, std::uint64_t seed) {
  Rng rng(seed, Purpose::kSimulation, 0);
  std::vector<Example> points;
  for (std::uint32_t p = 0; p < 6 * labels; ++p) {
    const auto label = static_cast<std::uint32_t>(rng.next_below(labels));
    if (label == 3) continue;
    std::set<std::uint32_t> features;
    for (int i = 0; i < 4; ++i) {
      features.insert(static_cast<std::uint32_t>(rng.next_below(10)));
      features.insert(static_cast<std::uint32_t>(10 + (label * 7 + rng.next_below(5)) % 50));
    }
    Example point{{label}, {features.begin(), features.end()}, {}};
    for (std::size_t i = 0; i < features.size(); ++i) {
      point.values.push_back(static_cast<float>(1 + rng.next_below(3)));
    }
    points.push_back(point);
  }
  return points;
}

// Documents of some points, placed by an untrained layer.
struct Placed {
  ThreadPool pool{2};
  InputLayer layer{layer_config(), pool};
  LabelDocuments documents;

  explicit Placed(const std::vector<Example>& points) : documents(points_of(points)) {
    documents.embed(layer);
  }

  std::vector<std::vector<LabelShare>> votes(const std::vector<ExampleView>& examples) {
    return documents.votes(examples, layer, pool);
  }
};

// The formula of the header in double arithmetic, every label looked at.
std::vector<std::pair<std::uint32_t, double>> slow_shares(const std::vector<Example>& points,
                                                          const Example& asked, InputLayer& layer) {
  std::map<std::uint32_t, std::map<std::uint32_t, double>> documents;  // label, feature: tf
  std::map<std::uint32_t, double> having;                              // points with the feature
  double length = 0;
  for (const Example& point : points) {
    for (const std::uint32_t f : point.features) {
      ++documents[point.labels[0]][f];
      ++having[f];
      ++length;
    }
  }
  std::map<std::uint32_t, double> df;
  for (const auto& [label, words] : documents) {
    for (const auto& [f, tf] : words) ++df[f];
  }
  const auto count = static_cast<double>(documents.size());
  const auto place_of = [&](const std::map<std::uint32_t, double>& words) {
    Example weighed;
    for (const auto& [f, tf] : words) {
      weighed.features.push_back(f);
      weighed.values.push_back(
          static_cast<float>(tf * std::log(static_cast<double>(points.size()) / having[f])));
    }
    return layer.embed(std::vector{weighed.view()});
  };
  const auto cosine = [](const std::vector<float>& a, const std::vector<float>& b) {
    double product = 0, of_a = 0, of_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      product += double{a[i]} * b[i];
      of_a += double{a[i]} * a[i];
      of_b += double{b[i]} * b[i];
    }
    return product / std::sqrt(of_a * of_b);
  };
  std::map<std::uint32_t, double> known;
  for (const std::uint32_t f : asked.features) {
    if (df.contains(f)) known[f] = 1;
  }
  std::map<std::uint32_t, std::pair<double, double>> found;  // match, own
  double most = 0;
  for (const auto& [label, words] : documents) {
    double relative = 0;
    for (const auto& [f, tf] : words) relative += tf * count / length;
    for (const auto& [f, tf] : words) {
      if (!known.contains(f)) continue;
      found[label].first += std::pow(std::log((count + 1) / (df[f] + 0.5)), 2) * 2 * tf /
                            (tf + 0.25 + 0.75 * relative);
      found[label].second += std::sqrt(tf) / df[f] / std::sqrt(relative);
    }
    if (found.contains(label)) most = std::max(most, found[label].first);
  }
  const std::vector<float> place = place_of(known);
  std::vector<std::pair<std::uint32_t, double>> shares;
  for (const auto& [label, both] : found) {
    const double score = (2 * both.first / most + both.second) *
                         std::max(0.0, cosine(place, place_of(documents[label])));
    if (score > 0) shares.emplace_back(label, std::pow(score, 2.5));
  }
  std::ranges::stable_sort(shares, [](auto& a, auto& b) { return a.second > b.second; });
  if (shares.size() > 20) shares.resize(20);
  double sum = 0;
  for (const auto& [label, share] : shares) sum += share;
  for (auto& [label, share] : shares) share /= sum;
  return shares;
}

}  // namespace

TEST_CASE("label documents: shares are those of double arithmetic", "[votes]") {
  const std::vector<Example> points = random_points(30, 1);
  Placed placed(points);
  std::size_t compared = 0;
  for (const Example& asked : random_points(30, 2)) {
    const auto votes = placed.votes({asked.view()});
    const auto expected = slow_shares(points, asked, placed.layer);
    REQUIRE(votes[0].size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(votes[0][i].share == Approx(expected[i].second).margin(1e-5));
      CHECK(votes[0][i].label != 3);
      // Where shares are as good as equal either may come first.
      const bool is_clear =
          (i == 0 || expected[i - 1].second - expected[i].second > 1e-4) &&
          (i + 1 == expected.size() || expected[i].second - expected[i + 1].second > 1e-4);
      if (!is_clear) continue;
      CHECK(votes[0][i].label == expected[i].first);
      ++compared;
    }
  }
  CHECK(compared > 500);
}

TEST_CASE("label documents: twenty vote at most, and their shares add up to one", "[votes]") {
  Placed placed(random_points(90, 3));
  std::size_t most = 0;
  for (const Example& asked : random_points(20, 4)) {
    const auto votes = placed.votes({asked.view()});
    double sum = 0;
    for (const LabelShare& vote : votes[0]) sum += vote.share;
    CHECK(sum == Approx(1).margin(1e-5));
    most = std::max(most, votes[0].size());
  }
  CHECK(most == 20);
}

TEST_CASE("label documents: how much of a feature a point has does not matter, nor what is unknown",
          "[votes]") {
  Placed placed(random_points(20, 5));
  const Example one{{}, {1, 20, 33}, {1, 1, 1}};
  const Example other{{}, {1, 20, 33, 40}, {7, -2, 0.5F, 0}};
  const Example more{{}, {1, 20, 33, 7'000}, {1, 1, 1, 1}};
  const auto votes = placed.votes({one.view(), other.view(), more.view()});
  CHECK_FALSE(votes[0].empty());
  CHECK(votes[0] == votes[1]);
  CHECK(votes[0] == votes[2]);
}

TEST_CASE("label documents: a point of which no document knows anything has no votes", "[votes]") {
  Placed placed({{{1}, {2, 5}, {1, 1}}, {{4}, {2, 6}, {1, 1}}});
  const Example unseen{{}, {9}, {1}};
  const Example empty;
  const Example common{{}, {2}, {1}};  // in every point: its rarity is nothing
  for (const auto& votes : placed.votes({unseen.view(), empty.view(), common.view()})) {
    CHECK(votes.empty());
  }
  CHECK(Placed({}).votes({common.view()})[0].empty());
}

TEST_CASE("voters: documents where points bear fewer than two labels each, else the nearest",
          "[votes]") {
  ThreadPool one(1);
  ThreadPool three(3);
  const auto train = planted_data({}, 7, 0);
  const auto test = planted_data({40, 48, 40}, 7, 1);
  std::vector<ExampleView> examples;
  for (std::uint64_t i = 0; i < test->points(); ++i) examples.push_back(test->example(i));
  ModelConfig config = layer_config();
  config.features = train->features();
  InputLayer layer(config, one);
  InputLayer in_parts = [&] {
    ModelConfig parted = config;
    parted.input_shards = 2;
    return InputLayer(parted, three);
  }();

  double labels = 0;
  for (std::uint64_t i = 0; i < train->points(); ++i) {
    labels += static_cast<double>(train->example(i).labels.size());
  }
  const bool have_few = labels < 2.0 * static_cast<double>(train->points());
  Voters voters(training_points(*train), 9);
  CHECK(voters.points() == train->points());
  CHECK(voters.are_documents() == have_few);

  // One label each, and two.
  const std::vector<Example> single = random_points(20, 6);
  std::vector<Example> several = single;
  for (Example& point : several) point.labels.push_back(point.labels[0] + 20);
  Voters documents(points_of(single), 9);
  CHECK(documents.are_documents());
  const Voters nearest(points_of(several), 9);
  CHECK_FALSE(nearest.are_documents());
  CHECK_FALSE(nearest.votes(examples, nullptr, one).empty());

  // Neither threads nor how the layer is cut change them.
  documents.embed(layer);
  const auto votes = documents.votes(examples, &layer, one);
  documents.embed(in_parts);
  CHECK(votes == documents.votes(examples, &in_parts, three));
}

}  // namespace gleaner
