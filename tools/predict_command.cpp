#include "tools/predict_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "common/exit_code.hpp"
#include "common/kernels/simd_level.hpp"
#include "common/limits.hpp"
#include "tools/predict_run.hpp"
#include "tools/store_access.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kThreadsMax = 1024;
constexpr unsigned kPlainWidth = 100;

// run_predict's errors of these codes are of the store.
ExitCode exit_status_of(ErrorCode code) {
  if (code == ErrorCode::kNotFound || code == ErrorCode::kVersion) return ExitCode::kStore;
  return exit_code_of(code);
}

Result<void> predict(PredictFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
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
  verb.add_option("store", flags.store, "folder that gleaner-master was given as --store")
      ->required();
  CLI::Option* const data = verb.add_option(
      "--data", flags.data, "folder made by 'gleaner dataset debian': points of its test part");
  verb.add_option("--input", flags.input,
                  "points as XC or libsvm text or packed; - reads text from standard input")
      ->excludes(data);
  verb.add_option("--examples", flags.examples,
                  "choose so many of the points that have labels (with --data: 5 unless given; "
                  "with --input: all points unless given)")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("--seed", flags.seed, "another seed, another choice")->capture_default_str();
  verb.add_option("--top", flags.top_k, "labels to predict for a point")
      ->check(CLI::Range(std::uint32_t{1}, kTopKMax))
      ->capture_default_str();
  verb.add_option("--labels", flags.labels,
                  "file with a label's name a line (otherwise labels.txt beside the points)");
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(std::uint32_t{1}, kThreadsMax));
  verb.add_flag("--json", flags.json, "one JSON object a line instead of text");
  verb.add_option("--format", flags.read.format,
                  "text form: auto looks at the first line (xc: a header of three numbers)")
      ->check(CLI::IsMember({"auto", "xc", "libsvm"}))
      ->capture_default_str();
  verb.add_option("--first-feature", flags.read.first_feature,
                  "id that libsvm text gives to the first feature; never guessed")
      ->check(CLI::IsMember({0, 1}))
      ->capture_default_str();
}

constexpr const char* kFooter =
    "Scores every label with the model of the last whole checkpoint, also while the master "
    "trains. Features\nare scaled as the run scaled them. A probability is the logistic function "
    "of the label's own score: they\nneed not add up to one. Lines of XC text without a header "
    "are read with --format libsvm\n--first-feature 0. The fields of --json are listed in "
    "tools/README.md.\n\n"
    "Examples:\n"
    "  gleaner predict run1 --data debian --examples 3\n"
    "  gleaner predict run1 --input - --format libsvm --top 10 --json < points.svm\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

void add_predict_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("predict", "name the labels a trained model expects");
  auto flags = std::make_shared<PredictFlags>();
  add_flags(verb, *flags);
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] {
    const Result<void> done = predict(*flags);
    if (!done) fmt::print(stderr, "gleaner: {}\n", done.error().message);
    exit_status = static_cast<int>(done ? ExitCode::kOk : exit_status_of(done.error().code));
  });
}

}  // namespace gleaner
