#include "tools/predict/predict_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "common/kernels/simd_level.hpp"
#include "common/limits.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/predict_run.hpp"

namespace gleaner {
namespace {

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
  verb.add_option("store", flags.store, "folder that gleaner-master was given as --store")
      ->required();
  CLI::Option* const data = verb.add_option(
      "--data", flags.data,
      "folder of 'gleaner dataset debian' or 'convert --text': examples of its test part");
  verb.add_option("--input", flags.input,
                  "examples as XC or libsvm text or packed; - reads text from standard input")
      ->excludes(data);
  verb.add_option("--text", flags.text,
                  "folder of a data set made of texts ('gleaner dataset debian' or 'convert "
                  "--text'), or a model file that carries its words ('gleaner export --data'): "
                  "each line of --input, or of standard input, is a text")
      ->excludes(data);
  verb.add_option("--examples", flags.examples,
                  "choose N of the examples that have labels (with --data: 5 unless given; "
                  "with --input: all examples unless given)")
      ->check(CLI::Range(1, 1'000'000));
  verb.add_option("--seed", flags.seed, "another seed, another choice")->capture_default_str();
  verb.add_option("--top", flags.top_k, "labels to predict for an example")
      ->check(CLI::Range(std::uint32_t{1}, kTopKMax))
      ->capture_default_str();
  verb.add_flag("--why", flags.why,
                "name the words that decided for each label (runs without a hidden layer)");
  verb.add_option("--labels", flags.labels,
                  "file with a label's name a line (otherwise labels.txt beside the examples)");
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(std::uint32_t{1}, kThreadsMax));
  verb.add_flag("--json", flags.json, "one JSON object a line instead of text");
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
    "  gleaner predict run1 --data debian --examples 3\n"
    "  gleaner predict run1 --input - --format libsvm --top 10 --json < points.svm\n"
    "  gleaner predict run1 --text posts --json < questions.txt\n"
    "  gleaner predict model.safetensors --text model.safetensors < questions.txt\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

void add_predict_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("predict", "name the labels a trained model expects");
  auto flags = std::make_shared<PredictFlags>();
  add_flags(verb, *flags);
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(predict(*flags)); });
}

}  // namespace gleaner
