#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "common/data/packed_writer.hpp"
#include "master/recipe/measured_recipe.hpp"
#include "master/recipe/trial_data.hpp"
#include "tests/sim/workload/planted_data.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using test::TemporaryFolder;

// Titles: `per_label` examples of every label, with two words of the label and a common word.
// With `has_class`, each has one of five further labels as well.
std::unique_ptr<PackedDataset> titles(const std::string& path, std::uint32_t labels,
                                      std::uint32_t per_label, bool has_class = false) {
  auto writer = PackedWriter::create(path, false).value();
  for (std::uint32_t i = 0; i < labels * per_label; ++i) {
    const std::uint32_t label = i % labels;
    Point point{{label}, {0, 1 + 2 * label, 2 + 2 * label}, {1.0F, 1.0F, 2.0F}};
    if (has_class) point.labels.push_back(labels + label % 5);
    REQUIRE(writer->add(point).ok());
  }
  REQUIRE(
      writer->finish({1 + 2 * labels, labels + 5}, {}, "", AtomicFile::Existing::kReplace).ok());
  return PackedDataset::open(path).value();
}

ModelConfig model_of(const PackedDataset& data, std::uint32_t hidden = 0) {
  ModelConfig model = gleaner::recipe({.points = data.points(),
                                       .features = data.features(),
                                       .labels = data.labels(),
                                       .labels_per_point = 2,
                                       .features_per_point = 6},
                                      {.hidden = hidden})
                          .model;
  if (hidden > 0) model.hidden = hidden;
  model.seed = 3;
  return model;
}

}  // namespace

TEST_CASE("trial data: a small set is held out part by part, each example once", "[recipe]") {
  const TemporaryFolder folder;
  const auto data = planted_data({900, 300, 60}, 7, 0);
  const auto parts = trial_data(*data, 10'000, 3, folder.path() + "/trial").value();
  REQUIRE(parts.size() == kTrialParts);
  std::size_t held = 0;
  std::set<std::vector<float>> seen;
  for (const TrialData& part : parts) {
    REQUIRE(part.train->points() + part.held_out.size() == data->points());
    held += part.held_out.size();
    for (const Point& point : part.held_out) seen.insert(point.values);
  }
  REQUIRE(held == data->points() / 5 * kTrialParts);
  REQUIRE(std::filesystem::is_empty(folder.path()));
  const auto again = trial_data(*data, 10'000, 3, folder.path() + "/trial").value();
  REQUIRE(again[2].held_out == parts[2].held_out);
  REQUIRE(again[2].train->fingerprint() == parts[2].train->fingerprint());
  const auto other = trial_data(*data, 10'000, 4, folder.path() + "/trial").value();
  REQUIRE(other[2].train->fingerprint() != parts[2].train->fingerprint());
}

TEST_CASE("trial data: labels of one-label examples are drawn with all their examples",
          "[recipe]") {
  const TemporaryFolder folder;
  const auto data = titles(folder.path() + "/titles", 1'000, 4);
  const auto parts = trial_data(*data, 800, 3, folder.path() + "/trial").value();
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].train->labels() == 200);
  REQUIRE(parts[0].train->points() + parts[0].held_out.size() == 800);
  REQUIRE(parts[0].train->features() == data->features());
  auto counts = count_labels(*parts[0].train);
  for (const Point& point : parts[0].held_out) ++counts[point.labels.at(0)];
  REQUIRE(std::ranges::count(counts, 4U) == 200);
}

TEST_CASE("trial data: examples of several labels are drawn", "[recipe]") {
  const TemporaryFolder folder;
  const auto data = titles(folder.path() + "/titles", 300, 10, true);
  const auto parts = trial_data(*data, 1'000, 3, folder.path() + "/trial").value();
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].held_out.size() == 200);
  REQUIRE(parts[0].train->points() == 800);
}

TEST_CASE("trial data: too few examples to hold out give no trial", "[recipe]") {
  const TemporaryFolder folder;
  REQUIRE(trial_data(*planted_data({249, 300, 60}, 7, 0), 1'000, 3, folder.path() + "/trial")
              .value()
              .empty());
  const auto none =
      trial_data(*planted_data({900, 300, 60}, 7, 0), 1'000, 3, folder.path() + "/no/folder/trial");
  REQUIRE_THAT(none.error().message, Catch::Matchers::Contains("no/folder/trial.0"));
}

TEST_CASE("measured recipe: threads and repetition change nothing, and the best is chosen",
          "[recipe]") {
  const TemporaryFolder folder;
  const auto data = planted_data({1'500, 300, 200}, 7, 0);
  RecipeSearch search;
  search.usual = model_of(*data);
  search.other = model_of(*data, 32);
  search.epochs_max = 3;
  std::vector<std::string> notes;
  const auto measure = [&](std::uint32_t threads) {
    return measured_recipe(*data, search, threads, folder.path() + "/trial",
                           [&](const std::string& note) { notes.push_back(note); })
        .value()
        .value();
  };
  const MeasuredRecipe one = measure(1);
  REQUIRE(notes.size() == 2);
  REQUIRE_THAT(notes[0], Catch::Matchers::Contains("of 1500 examples"));
  const MeasuredRecipe three = measure(3);
  REQUIRE(three.trials == one.trials);
  REQUIRE(three.model == one.model);
  REQUIRE(one.trials.size() >= 8);
  REQUIRE(std::ranges::count(one.trials, 32U, &RecipeTrial::hidden) == 1);
  REQUIRE(std::ranges::count(one.trials, search.usual.output_rate / 2, &RecipeTrial::output_rate) ==
          1);
  double usual = -1;
  double chosen = -1;
  double best = -1;
  for (const RecipeTrial& trial : one.trials) {
    if (trial.epochs == 1) continue;
    best = std::max(best, trial.quality);
    const auto is_of = [&](const ModelConfig& model) {
      return trial.hidden == model.hidden && trial.output_rate == model.output_rate &&
             (trial.hidden > 0 || trial.wide_scale == model.wide_scale);
    };
    if (is_of(search.usual)) usual = trial.quality;
    if (is_of(one.model)) chosen = trial.quality;
  }
  REQUIRE(usual > 0);
  REQUIRE((chosen == best || one.model == search.usual));
  REQUIRE(chosen >= usual);
  REQUIRE(stored_trials({{kRecipeTrialsKey, trials_text(one.trials)}}).size() == one.trials.size());
}

TEST_CASE("measured recipe: a configuration far from the best is left", "[recipe]") {
  const TemporaryFolder folder;
  const auto data = planted_data({1'500, 300, 200}, 7, 0);
  RecipeSearch search;
  search.usual = model_of(*data);
  SECTION("for another length of start rows") {
    search.usual.wide_scale = 0.5F;
    search.usual.epochs = 1;
    search.epochs_max = 1;
    const auto measured = measured_recipe(*data, search, 2, folder.path() + "/trial", {}).value();
    REQUIRE(measured->model.wide_scale > 1);
    REQUIRE_THAT(measured->why, Catch::Matchers::Contains("start rows of length 0.5"));
  }
  SECTION("for a layer of the other kind") {
    search.other = search.usual;
    search.usual = model_of(*data, 32);
    search.usual.output_rate = search.usual.input_rate = 1e-6F;
    const auto measured = measured_recipe(*data, search, 2, folder.path() + "/trial", {}).value();
    REQUIRE(is_wide(measured->model));
    REQUIRE_THAT(measured->why, Catch::Matchers::Contains("32 hidden units"));
  }
  SECTION("but what is fixed stays") {
    search.has_free_scale = search.has_free_rate = false;
    search.other = model_of(*data, 32);
    const auto measured = measured_recipe(*data, search, 2, folder.path() + "/trial", {}).value();
    REQUIRE(measured->trials.size() == 2);
  }
}

TEST_CASE("trial sample: at most 15 percent of the run's work, and no less than 10,000 examples",
          "[recipe]") {
  ModelConfig model;
  model.points = 240'000;
  model.epochs = 5;
  REQUIRE(trial_sample(model) == 15'000);
  model.points = 20'000;
  REQUIRE(trial_sample(model) == 10'000);
}

}  // namespace gleaner
