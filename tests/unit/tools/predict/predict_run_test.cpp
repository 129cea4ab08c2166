// A real run of the master with two volunteers in the process, on generated data; then the verb on
// its store.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/data/point_writer.hpp"
#include "master/master_run.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/infer/answering_model.hpp"
#include "tests/support/captured_stream.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/predict_command.hpp"

namespace gleaner {
namespace {

using nlohmann::json;
using test::check_error;
using test::require_ok;
using test::require_value;

// Rows of very different lengths, so that it shows whether they were scaled.
void stretch_rows(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  std::string text = line + "\n";
  for (std::uint64_t number = 1; std::getline(lines, line); ++number) {
    PointParser parser(PointRules{});
    Point point;
    REQUIRE_FALSE(parser.parse(line, point).has_value());
    for (float& value : point.values) value *= static_cast<float>(1 + number % 7) / 3.0F;
    append_libsvm(text, point, 0);
  }
  write_file(path, text);
}

struct TrainedRun {
  explicit TrainedRun(bool l2_normalise) {
    SynthFlags synth;
    synth.train = folder.file("train.txt");
    synth.test = folder.file("test.txt");
    synth.points = 1500;
    synth.test_points = 400;
    synth.options.dimensions = {300, 120};
    synth.options.noise = 0.4;
    require_ok(run_dataset_synth(synth));
    stretch_rows(synth.train);
    stretch_rows(synth.test);
    const MasterStart start = require_value(load_master_config(
        {"--train", synth.train, "--test", synth.test, "--store", folder.file("store"), "--local",
         "2", "--threads", "1", "--epochs", "2", "--hidden", "64", "--output-shards", "5",
         l2_normalise ? "--l2-normalise" : "--no-l2-normalise", "--quiet"}));
    const RunData data = require_value(open_run_data(start.config, {}));
    const auto place = require_value(hold_store_folder(start.config.run.store));
    auto run = require_value(RunStore::create_or_open(
        require_value(open_rocks_store(place, {})),
        {data.model, effective_settings(start.config, data.model)}, data.label_counts));
    CapturedStream out;
    Console console(
        out.stream(), out.stream(), output_options({}, LogFormat::kText, true, false),
        [] { return 80U; }, &monotonic_now);
    INFO(out.text());
    MasterConfig config = start.config;
    const Result<ExitCode> exit = run_master(config, data, {*run, *place}, console, nullptr);
    REQUIRE(exit.ok());
    REQUIRE(*exit == ExitCode::kOk);
    recorded = require_value(run->history()).back();
    REQUIRE(recorded.evaluated_all);
  }

  [[nodiscard]] PredictFlags flags() const {
    PredictFlags flags;
    flags.store = "the store";
    flags.input = folder.file("test.txt");
    flags.threads = 2;
    flags.json = true;
    return flags;
  }

  [[nodiscard]] Result<std::string> try_predict(const PredictFlags& flags) const {
    std::string text;
    auto done = run_predict(flags,
                            require_value(RunStore::open(require_value(
                                open_rocks_store(folder.file("store"), OpenMode::kReadOnly)))),
                            {}, [&text](const std::string& piece) -> Result<void> {
                              text += piece;
                              return {};
                            });
    if (!done) return done.error();
    return text;
  }

  [[nodiscard]] std::vector<json> predict(const PredictFlags& flags) const {
    std::istringstream lines(require_value(try_predict(flags)));
    std::vector<json> objects;
    for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
    return objects;
  }

  TempFolder folder;
  RoundRecord recorded;
};

const TrainedRun& trained_run(bool l2_normalise) {
  static const TrainedRun scaled(true);
  static const TrainedRun plain(false);
  return l2_normalise ? scaled : plain;
}

// precision@k from what the verb says alone.
double precision(const std::vector<json>& objects, std::size_t k) {
  std::size_t hits = 0;
  std::size_t points = 0;
  for (const json& object : objects) {
    const json& predicted = object["predicted"];
    const auto found = static_cast<std::size_t>(std::count_if(
        predicted.begin(), predicted.end(), [](const json& p) { return p["is_true"] == true; }));
    if (found + object["missed"].size() == 0) continue;  // no labels
    ++points;
    for (std::size_t i = 0; i < k; ++i) hits += predicted[i]["is_true"] == true ? 1 : 0;
  }
  REQUIRE(points > 0);
  return static_cast<double>(hits) / (static_cast<double>(k) * static_cast<double>(points));
}

}  // namespace

TEST_CASE("predict: precision of its output is what the run's evaluation recorded", "[predict]") {
  for (const bool l2_normalise : {true, false}) {
    INFO("l2_normalise " << l2_normalise);
    const TrainedRun& run = trained_run(l2_normalise);
    // Something was learned, and not everything: the figures are of use in a comparison.
    REQUIRE(run.recorded.precision.p[0] > 0.1);
    REQUIRE(run.recorded.precision.p[0] < 1.0);
    const auto objects = run.predict(run.flags());
    REQUIRE(objects.size() == 400);
    CHECK(precision(objects, 1) == Approx(run.recorded.precision.p[0]).epsilon(1e-12));
    CHECK(precision(objects, 3) == Approx(run.recorded.precision.p[1]).epsilon(1e-12));
    CHECK(precision(objects, 5) == Approx(run.recorded.precision.p[2]).epsilon(1e-12));
  }
}

TEST_CASE("predict: rows are scaled as the run scaled them, in text and packed", "[predict]") {
  const TrainedRun& scaled = trained_run(true);
  const TrainedRun& plain = trained_run(false);
  PackFlags pack;
  pack.source = scaled.folder.file("test.txt");
  pack.output = scaled.folder.file("scaled.gleaner");
  require_ok(run_dataset_pack(pack));
  pack.output = scaled.folder.file("plain.gleaner");
  pack.no_normalize = true;
  require_ok(run_dataset_pack(pack));

  PredictFlags flags = scaled.flags();
  const auto logits_of = [](const std::vector<json>& objects) {
    std::vector<double> logits;
    for (const json& object : objects) {
      for (const json& predicted : object["predicted"]) logits.push_back(predicted["logit"]);
    }
    return logits;
  };
  const auto expected = logits_of(scaled.predict(flags));
  for (const char* form : {"scaled.gleaner", "plain.gleaner"}) {
    flags.input = scaled.folder.file(form);
    CHECK(logits_of(scaled.predict(flags)) == expected);
  }
  // The run on rows as they are takes the plain form only.
  const auto unscaled = logits_of(plain.predict(plain.flags()));
  CHECK(logits_of(plain.predict(flags)) == unscaled);
  flags.input = scaled.folder.file("scaled.gleaner");
  check_error(plain.try_predict(flags), ErrorCode::kInvalidData, "are normalised, but this run");
}

TEST_CASE("predict: probabilities are calibrated, best first, top asks for how many", "[predict]") {
  const TrainedRun& run = trained_run(true);
  const auto stored = require_value(RunStore::open(
      require_value(open_rocks_store(run.folder.file("store"), OpenMode::kReadOnly))));
  const Calibration calibration = require_value(calibration_of(*stored));
  REQUIRE(calibration.is_fitted());
  PredictFlags flags = run.flags();
  flags.top_k = 17;
  flags.examples = 20;
  const auto objects = run.predict(flags);
  REQUIRE(objects.size() == 20);
  for (const json& object : objects) {
    REQUIRE(object["predicted"].size() == 17);
    double above = 1.0;
    for (const json& predicted : object["predicted"]) {
      const double logit = calibration.apply(predicted["logit"].get<float>());
      const double probability = predicted["probability"];
      CHECK(probability == Approx(1 / (1 + std::exp(-logit))).epsilon(1e-5));
      CHECK(probability <= above);
      above = probability;
    }
  }
  flags.top_k = 100;
  flags.threads = 1;
  const auto wider = run.predict(flags);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    REQUIRE(wider[i]["point"] == objects[i]["point"]);
    for (std::size_t k = 0; k < 17; ++k) {
      REQUIRE(wider[i]["predicted"][k] == objects[i]["predicted"][k]);
    }
  }
}

TEST_CASE("predict: a data folder gives names, and must be the run's own", "[predict]") {
  const TrainedRun& run = trained_run(true);
  TempFolder folder;
  const auto put = [&](const char* name, std::size_t count, const char* kind) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += std::string(kind) + std::to_string(i) + "\n";
    write_file(folder.file(name), text);
  };
  PredictFlags flags = run.flags();
  flags.input.clear();
  flags.data = folder.file("");
  check_error(run.try_predict(flags), ErrorCode::kInvalidData, "test.txt is missing");
  write_file(folder.file("test.txt"), read_file(run.folder.file("test.txt")));
  check_error(run.try_predict(flags), ErrorCode::kInvalidData, "labels.txt is missing");
  put("labels.txt", 120, "dependency");
  put("features.txt", 299, "word ");
  check_error(run.try_predict(flags), ErrorCode::kInvalidData,
              "features.txt has 299 names for 300 features");
  put("features.txt", 300, "word ");
  put("test.points.txt", 400, "package");
  flags.why = true;
  const auto objects = run.predict(flags);
  REQUIRE(objects.size() == 5);
  for (const json& object : objects) {
    const auto id = [&](const json& item, const char* key) {
      return std::to_string(item[key].get<std::uint64_t>());
    };
    CHECK(object["name"] == "package" + id(object, "point"));
    CHECK(object["features"][0]["name"] == "word " + id(object["features"][0], "feature"));
    CHECK(object["predicted"][4]["name"] == "dependency" + id(object["predicted"][4], "label"));
  }
  flags.json = false;
  flags.examples = 3;
  const std::string text = require_value(run.try_predict(flags));
  CHECK_THAT(text, Catch::StartsWith("Checkpoint "));
  CHECK_THAT(text, Catch::Contains(" of 3 examples with labels ("));

  std::string other = read_file(run.folder.file("test.txt"));
  other.replace(0, other.find('\n'), "400 301 120");
  write_file(folder.file("test.txt"), other);
  check_error(run.try_predict(flags), ErrorCode::kInvalidData,
              "is of 301 features and 120 labels, the model of 300 and 120");
}

TEST_CASE("predict: names given must be enough, names that lie about must fit", "[predict]") {
  const TrainedRun& run = trained_run(true);
  TempFolder folder;
  PredictFlags flags = run.flags();
  flags.input = folder.file("points.svm");
  write_file(flags.input, "7 1:1 300:2\n 5:1\n");
  flags.labels = folder.file("names");
  check_error(run.try_predict(flags), ErrorCode::kInvalidData, "names: cannot be opened");
  write_file(flags.labels, "one\ntwo\n");
  check_error(run.try_predict(flags), ErrorCode::kInvalidData,
              "has 2 names, but the model 120 labels");
  // As labels.txt beside the points the same file is of another data set, and left alone.
  flags.labels.clear();
  write_file(folder.file("labels.txt"), "one\ntwo\n");
  const auto objects = run.predict(flags);
  REQUIRE(objects.size() == 2);
  CHECK(objects[0]["predicted"][0]["name"].is_null());
  CHECK_FALSE(objects[1].contains("missed"));

  write_file(flags.input, "0 1:1\n0 301:2\n");
  check_error(run.try_predict(flags), ErrorCode::kInvalidData, "points.svm:2:");
  write_file(flags.input, " 1:1\n");
  flags.examples = 2;
  check_error(run.try_predict(flags), ErrorCode::kInvalidData, "no example of");
}

TEST_CASE("predict: it says what to give when points are missing", "[predict]") {
  const TrainedRun& run = trained_run(true);
  PredictFlags flags = run.flags();
  flags.input.clear();
  check_error(run.try_predict(flags), ErrorCode::kInvalidArgument, "--data");
  flags.input = "a";
  flags.data = "b";
  check_error(run.try_predict(flags), ErrorCode::kInvalidArgument, "--data");
}

}  // namespace gleaner
