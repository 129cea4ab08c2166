// `gleaner evaluate`: the quality of a trained model, or of two, on examples with labels.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string>

#include "common/data/name_table.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/answering_model.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/model_evaluation.hpp"
#include "tools/predict/predict_examples.hpp"
#include "tools/predict/run_files.hpp"

namespace gleaner {
namespace {

struct EvaluateFlags {
  std::string store;
  std::string other;  // a second model; empty: none
  std::string data;   // empty: the run's own test file
  std::string propensity, filter, per_label, scores;
  ReadFlags read;
  EvaluationOptions options;
  std::uint32_t threads = 0;
  std::uint32_t candidates = TableSearch::kCandidatesUsual;
  bool tables = false;
  bool json = false;
};

// A model and what it answered.
struct MeasuredModel {
  std::unique_ptr<AnsweringModel> model;
  NameTable labels;
  std::unique_ptr<ModelEvaluation> evaluation;
};

Result<PropensityModel> propensity_of(const std::string& text) {
  if (text.empty()) return PropensityModel();
  if (text == "wikipedia") return PropensityModel{0.5, 0.4};
  if (text == "amazon") return PropensityModel{0.6, 2.6};
  PropensityModel model;
  const char* const end = text.data() + text.size();
  const auto a = std::from_chars(text.data(), end, model.a);
  if (a.ec == std::errc() && a.ptr != end && *a.ptr == ',') {
    const auto b = std::from_chars(a.ptr + 1, end, model.b);
    if (b.ec == std::errc() && b.ptr == end && model.a > 0 && model.b > 0) return model;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--propensity '{}' is neither amazon nor wikipedia nor two positive "
                           "numbers A,B such as 0.55,1.5",
                           text)};
}

Result<MeasuredModel> evaluate_one(const EvaluateFlags& flags, const std::string& store,
                                   const std::string& data) {
  give_way_to_master(store);
  auto run = open_run_to_read(store);
  if (!run) return run.error();
  const std::uint32_t candidates = flags.tables ? flags.candidates : 0;
  auto model = AnsweringModel::open(std::move(*run), asking_options(flags.threads, candidates));
  if (!model) return name_folder(model.error(), store);
  const RunIdentity& identity = (*model)->identity();
  auto known = known_data(identity, store);
  if (!known) return known.error();
  MeasuredModel evaluated{std::move(*model), known->names().labels, nullptr};
  std::string path = examples_at(data);
  if (data.empty()) {
    Result<std::string> recorded = recorded_test_file(identity);
    if (!recorded) return name_folder(recorded.error(), store);
    path = std::move(*recorded);
  } else if (data != kStandardInput) {
    const auto folder = std::filesystem::path(path).parent_path();
    auto its = check_name_files(identity.settings, folder.string());
    if (!its) return its.error();
  }
  auto points = open_examples(path, limits_of(identity.model, flags.read, store), *known,
                              [] { return Result<void>(); });
  if (!points) return points.error();
  if (auto fits = check_scaling(**points, *evaluated.model, path); !fits) return fits.error();
  evaluated.evaluation = std::make_unique<ModelEvaluation>(flags.options, *evaluated.model);
  if (auto read = evaluated.evaluation->read(**points); !read) return read.error();
  if (evaluated.evaluation->figures().examples() > 0) return evaluated;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{}: none of its {} examples has a label that the model knows, so there "
                           "is nothing to compare with",
                           data.empty() ? path : data, evaluated.evaluation->judged().size())};
}

Result<void> write_files(const EvaluateFlags& flags, const MeasuredModel& evaluated) {
  const ModelEvaluation& evaluation = *evaluated.evaluation;
  if (!flags.scores.empty()) {
    auto written =
        write_scores(flags.scores, evaluation.judged(), evaluated.model->config().labels);
    if (!written) return written;
  }
  if (flags.per_label.empty()) return {};
  return write_per_label(
      flags.per_label, evaluation.judged(),
      {evaluated.model->label_counts(), evaluated.labels, evaluation.threshold()});
}

Result<void> report_difference(Report& report, const FigureSums& first, const FigureSums& second) {
  if (first.examples() != second.examples()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("the models were measured on {} and {} examples: give one file to "
                             "both as --data FILE",
                             first.examples(), second.examples())};
  }
  report.section("", "First minus second, on the same examples, with 95 % bootstrap intervals");
  ReportTable& table = report.table("difference", {{"figure", "", true},
                                                   {"first", "first"},
                                                   {"second", "second"},
                                                   {"value", "difference"},
                                                   {"low", "from"},
                                                   {"high", "to"}});
  const auto ours = first.values(), theirs = second.values();
  const auto intervals = first.intervals(&second);
  for (std::size_t f = 0; f < ours.size(); ++f) {
    table.rows.push_back({{FigureSums::kNames[f], std::string(FigureSums::kTitles[f])},
                          cell_share(ours[f]),
                          cell_share(theirs[f]),
                          cell_share(ours[f] - theirs[f]),
                          cell_share(intervals[f].low),
                          cell_share(intervals[f].high)});
  }
  return {};
}

Result<void> evaluate(EvaluateFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  const Result<PropensityModel> propensities = propensity_of(flags.propensity);
  if (!propensities) return propensities.error();
  flags.options.propensities = *propensities;
  if (!flags.filter.empty()) {
    auto pairs = read_filter(flags.filter);
    if (!pairs) return pairs.error();
    flags.options.filter = std::move(*pairs);
  }
  auto first = evaluate_one(flags, flags.store, flags.data);
  if (!first) return first.error();
  if (auto written = write_files(flags, *first); !written) return written;
  Report report;
  first->evaluation->report(report);
  if (!flags.other.empty()) {
    const std::string own = test_file(first->model->identity());
    const auto second = evaluate_one(flags, flags.other, flags.data.empty() ? own : flags.data);
    if (!second) return second.error();
    auto compared =
        report_difference(report, first->evaluation->figures(), second->evaluation->figures());
    if (!compared) return compared;
  }
  return print_report(report, report_form(flags.json), "evaluate", flags.store);
}

void add_flags(CLI::App& verb, EvaluateFlags& flags) {
  add_store(verb, flags.store);
  verb.add_option("other", flags.other, "a second model, measured on the same examples");
  verb.add_option(
      "--data", flags.data,
      "examples as XC or libsvm text (plain, gzip, zstd), packed, or texts with tags as "
      "CSV, TSV or JSON; a folder's test.txt; - is standard input (the run's own test "
      "file unless given)");
  verb.add_option("--points", flags.options.examples, "only N examples from the front");
  verb.add_option("--propensity", flags.propensity,
                  "constants of PSP: amazon (0.6,2.6), wikipedia (0.5,0.4) or A,B (0.55,1.5 "
                  "unless given)");
  verb.add_option("--filter", flags.filter,
                  "file of pairs to leave out of the answers: a line 'EXAMPLE LABEL' each, from 0");
  verb.add_option("--per-label", flags.per_label, "write a CSV row per label to this file");
  verb.add_option("--scores", flags.scores,
                  "write all scores to this file: NAME.npz, NAME.run (TREC) or else XC text");
  verb.add_option("--top", flags.options.depth, "labels per example in --scores and for F1")
      ->check(CLI::Range(std::uint32_t{5}, kLabelsMax))
      ->capture_default_str();
  verb.add_flag("--tables", flags.tables,
                "also through the hash tables, and how much of the exact answers they find");
  verb.add_option(
          "--candidates", flags.candidates,
          "with --tables: neurons to score, those that most tables propose; and as many of the "
          "labels most frequent in training")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(1, 1024));
  verb.add_flag("--json", flags.json, "one JSON object");
  add_read_flags(verb, flags.read);
}

constexpr const char* kEvaluateFooter =
    "Precision, propensity-scored precision, nDCG and recall of the last whole checkpoint, with "
    "bootstrap\nintervals, and F1. Head: the fewest labels that hold half of all training "
    "occurrences; tail: those that hold\nthe last tenth. --per-label counts a label as predicted "
    "from the threshold of the F1 over all pairs on.\n\n"
    "Examples:\n"
    "  gleaner evaluate run1\n"
    "  gleaner evaluate run1 run2 --data test.txt\n"
    "  gleaner evaluate run1 --propensity amazon --filter filter_labels_test.txt --scores a.npz\n"
    "  gleaner evaluate run1 --data test.txt --tables --candidates 1000 --json\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

void add_evaluate_command(CLI::App& app, int& exit_status) {
  CLI::App& verb =
      *app.add_subcommand("evaluate", "measure a trained model on examples with labels");
  auto flags = std::make_shared<EvaluateFlags>();
  add_flags(verb, *flags);
  verb.footer(kEvaluateFooter);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(evaluate(*flags)); });
}

}  // namespace gleaner
