#include "tools/predict/predict_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/packed_writer.hpp"
#include "common/limits.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/predict_examples.hpp"
#include "tools/predict/run_files.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kExamplesOfFolder = 5;
constexpr std::uint32_t kTopUsual = 5;
constexpr std::uint32_t kThresholdTop = 100;
constexpr const char* kTestFile = "test.txt";

// The path of a file of the folder --data, which must be there.
Result<std::string> required_file(const std::string& folder, const char* file) {
  std::string path = (std::filesystem::path(folder) / file).string();
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return path;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} is missing: --data wants a folder made by 'gleaner dataset "
                           "convert --text'; for another file of examples use --input",
                           path)};
}

// The names in a file of a folder where they must be.
Result<NameTable> required_names(const std::string& folder, const char* file,
                                 std::optional<std::uint64_t> count, const char* of_what) {
  const Result<std::string> path = required_file(folder, file);
  if (!path) return path.error();
  Result<NameTable> names = load_names(*path);
  if (!names || !count || names->size() == *count) return names;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} has {} names for {} {}: it is of another data set", *path,
                           names->size(), *count, of_what)};
}

// Names that lie beside a file; none where they belong to another data set.
Result<NameTable> companion_names(const std::string& path, const std::string& file,
                                  std::optional<std::uint64_t> count) {
  const std::string found = companion_path(path, file);
  if (found.empty() || !count) return NameTable();
  Result<NameTable> names = load_names(found);
  if (!names || names->size() == *count) return names;
  return NameTable();
}

// The input that the flags name: opened points and names for what is in them.
struct Source {
  std::unique_ptr<PredictExamples> points;
  PredictNames names;
  std::uint64_t choose = 0;  // 0: all
};

Result<Source> open_folder(const PredictFlags& flags, const ModelConfig& config,
                           const TextOptions& options) {
  const Result<std::string> path = required_file(flags.data, kTestFile);
  if (!path) return path.error();
  auto points = PredictExamples::open(*path, options, {});
  if (!points) return points.error();
  const std::optional<Dimensions> announced = (*points)->announced();
  if (announced && announced != options.limits) {
    return Error{
        ErrorCode::kInvalidData,
        fmt::format("{} is of {} features and {} labels, the model of {} and {}: it is "
                    "not the data set that this run learns from",
                    *path, announced->features, announced->labels, config.features, config.labels)};
  }
  Source source;
  source.choose = flags.examples > 0 ? flags.examples : kExamplesOfFolder;
  auto labels = required_names(flags.data, "labels.txt", config.labels, "labels");
  if (!labels) return labels.error();
  auto features = required_names(flags.data, "features.txt", config.features, "features");
  if (!features) return features.error();
  auto names =
      required_names(flags.data, "test.points.txt", (*points)->announced_points(), "points");
  if (!names) return names.error();
  source.names = {std::move(*labels), std::move(*features), std::move(*names)};
  source.points = std::move(*points);
  return source;
}

Result<Source> open_input(const PredictFlags& flags, const RunIdentity& run,
                          const TextOptions& options, std::function<Result<void>()> before_wait) {
  auto known = known_data(run, flags.store);
  if (!known) return known.error();
  Result<std::unique_ptr<PredictExamples>> points =
      open_examples(flags.input, options, *known, std::move(before_wait), flags.id);
  if (!points) return points.error();
  Source source;
  source.choose = flags.examples;
  if (!named_form(flags.input) && flags.input != kStandardInput) {
    const ModelConfig& config = run.model;
    const std::string stem = std::filesystem::path(flags.input).stem().string();
    auto labels = companion_names(flags.input, "labels.txt", config.labels);
    if (!labels) return labels.error();
    auto features = companion_names(flags.input, "features.txt", config.features);
    if (!features) return features.error();
    auto names = companion_names(flags.input, stem + ".points.txt", (*points)->announced_points());
    if (!names) return names.error();
    source.names = {std::move(*labels), std::move(*features), std::move(*names)};
  }
  if (source.names.labels.size() == 0) source.names.labels = known->names().labels;
  if (source.names.features.size() == 0) source.names.features = known->names().features;
  source.points = std::move(*points);
  return source;
}

Result<Source> open_texts(const PredictFlags& flags, const RunIdentity& run,
                          std::function<Result<void>()> before_wait) {
  const Result<PredictData> data = known_data(run, flags.store, flags.text);
  if (!data) return data.error();
  const std::string& place = flags.text.empty() ? flags.store : flags.text;
  if (data->words() == nullptr) return no_words(place);
  if (const auto note = data->words()->dictionary_note(place); !note.empty()) {
    print_error("gleaner: " + note);
  }
  Source source;
  source.names = data->names();
  if (!flags.texts.empty()) {
    source.points = PredictExamples::of_texts(flags.texts, *data->words());
    return source;
  }
  auto points = PredictExamples::open_texts(flags.input.empty() ? kStandardInput : flags.input,
                                            with_id(*data->words(), flags.id), data->names().labels,
                                            std::move(before_wait));
  if (!points) return points.error();
  source.points = std::move(*points);
  return source;
}

// The names that --labels gives, which must fit the model.
Result<void> name_labels(const PredictFlags& flags, const RunIdentity& run, PredictNames& names) {
  if (flags.labels.empty()) return {};
  Result<NameTable> loaded = label_names_of(run, flags.labels);
  if (!loaded) return loaded.error();
  names.labels = std::move(*loaded);
  return {};
}

// Refuses names and words that are not those with which the run learned, wherever they lie.
Result<void> check_names(const PredictFlags& flags, const RunIdentity& run) {
  if (!flags.text.empty() || !flags.texts.empty()) return {};  // PredictData does
  if (!flags.data.empty()) return check_name_files(run.settings, flags.data);
  if (flags.input == kStandardInput) return {};
  return check_name_files(run.settings, std::filesystem::path(flags.input).parent_path().string());
}

// Points on their way through the model and out, a batch at a time.
class Predictor {
 public:
  Predictor(const PredictFlags& flags, AnsweringModel& model, const PredictLayout& layout,
            const PrintText& print)
      : flags_(flags), model_(model), layout_(layout), print_(print) {}

  // Tells what is known once the points are open. Must come before the first point.
  void begin(const Source& source) {
    names_ = &source.names;
    is_scaled_ = source.points->is_normalised();
  }

  Result<void> add(IndexedExample point) {
    batch_.push_back({point.index, std::move(point.point), is_scaled_, {}, std::move(point.name)});
    return batch_.size() == kExamplesAtOnce ? flush() : Result<void>();
  }

  // Predicts and prints what was added since the last time.
  Result<void> flush();

  [[nodiscard]] const PredictTally& tally() const { return tally_; }

 private:
  [[nodiscard]] Result<void> print_header();

  const PredictFlags& flags_;
  AnsweringModel& model_;
  const PredictLayout& layout_;
  const PrintText& print_;
  const PredictNames* names_ = nullptr;
  bool is_scaled_ = false;
  bool has_header_ = false;
  std::vector<Prediction> batch_;
  PredictTally tally_;
};

Result<void> Predictor::print_header() {
  if (std::exchange(has_header_, true) || flags_.json) return {};
  if (flags_.csv || flags_.tsv) {
    return print_(fmt::format("{}\n", fmt::join(kPredictionColumns, flags_.csv ? "," : "\t")));
  }
  return print_(fmt::format("Checkpoint {}; {} is a label that the example really has. {}\n\n",
                            grouped(model_.checkpoint()), true_mark(layout_.style),
                            model_.calibration().is_fitted()
                                ? "Probabilities are calibrated on the run's test examples."
                                : "Probabilities are not calibrated: the run had no evaluation."));
}

Result<void> Predictor::flush() {
  if (batch_.empty()) return {};
  const std::uint32_t top_k = flags_.top_k.value_or(flags_.threshold ? kThresholdTop : kTopUsual);
  auto done = model_.predict(batch_, top_k, model_.has_tables(), flags_.why,
                             flags_.threshold.value_or(0.0F));
  if (!done) return name_folder(done.error(), flags_.store);
  if (auto printed = print_header(); !printed) return printed;
  const auto features = flags_.why ? FeaturesShown::kStrongest : FeaturesShown::kNone;
  std::string text;
  for (const Prediction& prediction : batch_) {
    tally_.add(prediction);
    text += flags_.json  ? prediction_json(prediction, *names_, features)
            : flags_.csv ? prediction_rows(prediction, *names_, RowForm::kCsv)
            : flags_.tsv ? prediction_rows(prediction, *names_, RowForm::kTsv)
                         : prediction_text(prediction, *names_, layout_);
  }
  batch_.clear();
  return print_(text);
}

Result<void> predict_all(const PredictFlags& flags, Source& source, Predictor& predictor) {
  std::optional<ProgressLine> progress;
  if (flags.show_progress) progress.emplace("Predicting for");
  IndexedExample point;
  for (;;) {
    Result<bool> has_point = source.points->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) return predictor.flush();
    const std::uint64_t done = point.index + 1;
    if (auto added = predictor.add(std::move(point)); !added) return added;
    if (progress) progress->show(done, source.points->announced_points().value_or(0), "examples");
  }
}

Result<void> predict_chosen(const PredictFlags& flags, Source& source, Predictor& predictor) {
  Result<std::vector<IndexedExample>> chosen =
      choose_examples(*source.points, source.choose, flags.seed);
  if (!chosen) return chosen.error();
  if (chosen->empty()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("no example of {} has labels, and --examples chooses among those that "
                             "have; leave it out to predict for all",
                             flags.data.empty() ? flags.input : flags.data)};
  }
  for (IndexedExample& point : *chosen) {
    if (auto added = predictor.add(std::move(point)); !added) return added;
  }
  return predictor.flush();
}

Result<void> check_flags(const PredictFlags& flags) {
  if (!flags.texts.empty()) {
    if (flags.data.empty() && flags.input.empty() && flags.examples == 0) return {};
    return Error{ErrorCode::kInvalidArgument,
                 "texts on the command line go without --data, --input and --examples"};
  }
  if (!flags.text.empty()) {
    if (flags.data.empty() && flags.examples == 0) return {};
    return Error{ErrorCode::kInvalidArgument,
                 "--text goes without --data and --examples: each line of --input, or of standard "
                 "input, is predicted for"};
  }
  if (flags.data.empty() == flags.input.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "give either texts, as in gleaner predict STORE 'a fast parser', or --data (a "
                 "folder of 'gleaner dataset convert --text'), --input (a file of examples or of "
                 "texts, or - for standard input) or --text (a folder, for lines of text)"};
  }
  return {};
}

// A file as --data is an input, and so is the test file of a folder as --input.
PredictFlags by_place(PredictFlags flags) {
  std::error_code error;
  if (!flags.data.empty() && !std::filesystem::is_directory(flags.data, error)) {
    flags.input = std::exchange(flags.data, "");
  }
  flags.input = examples_at(flags.input);
  return flags;
}

constexpr std::uint32_t kThreadsMax = 1024;
constexpr unsigned kPlainWidth = 100;

Result<void> predict(PredictFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  give_way_to_master(flags.store);
  auto run = open_run_to_read(flags.store);
  if (!run) return run.error();
  const TerminalFacts terminal = terminal_facts(stdout);
  // On one terminal, progress and results would run into each other.
  flags.show_progress = !terminal.is_terminal;
  const PredictLayout layout{terminal.style,
                             terminal.is_terminal ? terminal_width(stdout) : kPlainWidth};
  return run_predict(flags, std::move(*run), layout, &print_out);
}

void add_flags(CLI::App& verb, PredictFlags& flags) {
  add_store(verb, flags.store);
  verb.add_option("texts", flags.texts, "texts to predict for");
  CLI::Option* const data =
      verb.add_option("--data", flags.data,
                      "folder of 'gleaner dataset convert --text': examples of its test part; or a "
                      "file, as --input");
  verb.add_option(
          "--input", flags.input,
          "examples as XC or libsvm text or packed, or texts as .csv, .tsv or .json, by the "
          "run's own words; a folder's test.txt; - reads examples from standard input")
      ->excludes(data);
  verb.add_option("--text", flags.text,
                  "folder of a data set made of texts ('gleaner dataset convert "
                  "--text'), or a model file that carries its words ('gleaner export --data'): "
                  "each line of --input, or of standard input, is a text; of a .csv, .tsv or "
                  ".json file each record, by the data set's columns")
      ->excludes(data);
  verb.add_option("--examples", flags.examples,
                  "choose N of the examples that have labels (with --data: 5 unless given; "
                  "with --input: all examples unless given)")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("--seed", flags.seed, "another seed, another choice")->capture_default_str();
  verb.add_option("--top", flags.top_k,
                  "labels to predict for an example (5 unless given; with --threshold 100)")
      ->check(CLI::Range(std::uint32_t{1}, kLabelsMax));
  verb.add_option("--threshold", flags.threshold,
                  "only labels with at least this probability, such as 0.5")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_flag("--why", flags.why,
                "name the words that decided for each label (runs without a hidden layer)");
  verb.add_option("--labels", flags.labels,
                  "file with a label's name a line (otherwise labels.txt beside the examples)");
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(std::uint32_t{1}, kThreadsMax));
  CLI::Option* const json =
      verb.add_flag("--json", flags.json, "one JSON object a line instead of text");
  CLI::Option* const csv =
      verb.add_flag("--csv", flags.csv, "a CSV row per predicted label")->excludes(json);
  verb.add_flag("--tsv", flags.tsv, "the same, between tabs")->excludes(json)->excludes(csv);
  verb.add_option("--id", flags.id,
                  "column or key of texts whose value names a record in the answers");
  verb.add_option("--tables", flags.candidates,
                  "score only N neurons that most hash tables propose, and as many of frequent "
                  "labels: faster on wide models; gleaner evaluate --tables says what it costs")
      ->check(CLI::Range(1, 1'000'000));
  add_read_flags(verb, flags.read);
}

constexpr const char* kFooter =
    "Scores every label with the model of the last whole checkpoint, also while the master "
    "trains. Features\nare scaled as the run scaled them. A probability is the logistic function "
    "of the label's own score: they need not\nadd up to one. Lines of XC text without a header "
    "are read with --format libsvm --first-feature 0. The\nfields of --json are listed in "
    "tools/JSON.md.\n\n"
    "Examples:\n"
    "  gleaner predict run1 'a fast json parser'\n"
    "  gleaner predict run1 --data debian --examples 3\n"
    "  gleaner predict run1 --input new.csv --id isbn --threshold 0.5 --csv\n"
    "  gleaner predict run1 --input - --format libsvm --top 10 --json < points.svm\n"
    "  gleaner predict run1 --text posts --json < questions.txt\n"
    "  gleaner predict model.safetensors --text model.safetensors < questions.txt\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

Result<void> run_predict(const PredictFlags& given, std::unique_ptr<RunStore> run,
                         const PredictLayout& layout, const PrintText& print) {
  if (auto usable = check_flags(given); !usable) return usable;
  const PredictFlags flags = by_place(given);
  auto model =
      AnsweringModel::open(std::move(run), asking_options(flags.threads, flags.candidates));
  if (!model) return name_folder(model.error(), flags.store);
  const ModelConfig& config = (*model)->config();
  const TextOptions options = limits_of(config, flags.read, flags.store);
  const RunIdentity& identity = (*model)->identity();
  if (auto its = check_names(flags, identity); !its) return its;
  Predictor predictor(flags, **model, layout, print);
  const auto flush = [&predictor] { return predictor.flush(); };
  const bool are_texts = !flags.text.empty() || !flags.texts.empty();
  Result<Source> source = are_texts            ? open_texts(flags, identity, flush)
                          : flags.data.empty() ? open_input(flags, identity, options, flush)
                                               : open_folder(flags, config, options);
  if (!source) return source.error();
  if (auto named = name_labels(flags, identity, source->names); !named) return named;
  if (auto fits = check_scaling(*source->points, **model, flags.input); !fits) return fits;
  predictor.begin(*source);
  const Result<void> done = source->choose > 0 ? predict_chosen(flags, *source, predictor)
                                               : predict_all(flags, *source, predictor);
  if (!done) return done;
  const std::string tally = tally_text(predictor.tally());
  const bool is_for_people = !flags.json && !flags.csv && !flags.tsv;
  return !is_for_people || tally.empty() ? Result<void>() : print(tally);
}

void add_predict_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("predict", "name the labels a trained model expects");
  auto flags = std::make_shared<PredictFlags>();
  add_flags(verb, *flags);
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(predict(*flags)); });
}

}  // namespace gleaner
