#include "tools/dataset/dataset_statistics.hpp"

#include <catch2/catch.hpp>

namespace gleaner {
namespace {

using Summary = DatasetStatistics::Summary;

std::vector<std::uint64_t> counts(const PowerHistogram& histogram) {
  std::vector<std::uint64_t> result;
  for (const auto& bin : histogram.bins()) result.push_back(bin.count);
  return result;
}

bool warns(const Summary& summary, const std::string& words) {
  for (const std::string& warning : summary.warnings) {
    if (warning.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("statistics: bins double in width", "[statistics]") {
  PowerHistogram histogram;
  for (const std::uint64_t value : {0, 1, 1, 2, 3, 4, 7, 8}) histogram.add(value);
  const auto bins = histogram.bins();
  REQUIRE(counts(histogram) == std::vector<std::uint64_t>{1, 2, 2, 2, 1});
  CHECK(bins[0].last == 0);
  CHECK(bins[1].last == 1);
  CHECK((bins[4].first == 8 && bins[4].last == 15));
}

TEST_CASE("statistics: every count is that of the points", "[statistics]") {
  DatasetStatistics statistics;
  statistics.add({{1, 2}, {0, 3}, {0.5F, -2.0F}});
  statistics.add({{2}, {3}, {4.0F}});
  statistics.add({{}, {}, {}});
  const Summary s = statistics.summary({5, 4}, {1, 2, 3});
  CHECK(s.points == 3);
  CHECK(s.seen == Dimensions{2, 2});
  CHECK(s.label_entries == 3);
  CHECK(s.feature_entries == 3);
  CHECK(s.points_without_labels == 1);
  CHECK(s.points_without_features == 1);
  CHECK(s.value_min == -2.0F);
  CHECK(s.value_max == 4.0F);
  CHECK(counts(s.points_per_label) == std::vector<std::uint64_t>{2, 1, 1});
  CHECK(counts(s.points_per_feature) == std::vector<std::uint64_t>{3, 1, 1});
  CHECK(counts(s.labels_per_point) == std::vector<std::uint64_t>{1, 1, 1});
  REQUIRE(s.frequent_labels.size() == 2);
  CHECK(s.frequent_labels[0].label == 2);
  CHECK(s.frequent_labels[0].points == 2);
  CHECK(warns(s, "1 examples have no labels"));
  CHECK(warns(s, "1 examples have no features"));
  CHECK(warns(s, "2 labels never occur"));
  CHECK(warns(s, "3 features never occur"));
  CHECK(warns(s, "1 examples had their features out of order"));
  CHECK(warns(s, "2 labels stood twice"));
  CHECK(warns(s, "3 features had the value zero"));
  CHECK(warns(s, "Label 2 is on 67 % of the examples"));
}

TEST_CASE("statistics: only what deserves it is warned of", "[statistics]") {
  DatasetStatistics statistics;
  for (std::uint32_t i = 0; i < 100; ++i) statistics.add({{i * 37 % 10}, {i % 7}, {1.0F}});
  const Summary s = statistics.summary({7, 10}, {});
  CHECK(s.warnings.empty());
  CHECK_FALSE(s.is_sorted_by_label);
}

TEST_CASE("statistics: a file sorted by label is told", "[statistics]") {
  DatasetStatistics statistics;
  for (std::uint32_t i = 0; i < 100; ++i) statistics.add({{i / 10}, {i % 7}, {1.0F}});
  const Summary s = statistics.summary({7, 10}, {});
  CHECK(s.is_sorted_by_label);
  CHECK(warns(s, "sorted by label"));
}

TEST_CASE("statistics: the ten most frequent labels are kept in order", "[statistics]") {
  DatasetStatistics statistics;
  for (std::uint32_t label = 0; label < 30; ++label) {
    const std::uint32_t times = (label * 7) % 30 + 1;
    for (std::uint32_t i = 0; i < times; ++i) statistics.add({{label}, {0}, {1.0F}});
  }
  const Summary s = statistics.summary({1, 30}, {});
  REQUIRE(s.frequent_labels.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(s.frequent_labels[i].points == 30 - i);
}

}  // namespace gleaner
