#include "tools/dataset_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/dataset_debian.hpp"
#include "tools/dataset_info.hpp"
#include "tools/dataset_pack.hpp"
#include "tools/dataset_split.hpp"
#include "tools/dataset_synth.hpp"

namespace gleaner {
namespace {

constexpr const char* kExitCodes =
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data.";

void add_force(CLI::App& verb, bool& force) {
  verb.add_flag("--force", force, "replace outputs that exist");
}

// The flags live as long as the command line that fills them: its callback owns them.
template <typename Flags, typename Run>
std::shared_ptr<Flags> set_action(CLI::App& verb, int& exit_status, Run run) {
  auto flags = std::make_shared<Flags>();
  verb.callback([flags, &exit_status, run] { exit_status = report(run(*flags)); });
  return flags;
}

void add_info(CLI::App& dataset, int& exit_status) {
  CLI::App& verb = *dataset.add_subcommand(
      "info", "count a data set's points, features and labels, and warn of its oddities");
  auto flags = set_action<InfoFlags>(verb, exit_status, run_dataset_info);
  verb.add_option("source", flags->source, "text (plain, gzip or zstd) or packed file")->required();
  verb.add_flag("--json", flags->json, "one JSON object instead of tables");
  add_read_flags(verb, flags->read);
  verb.footer(std::string("Reads in constant memory and makes no cache. Names the most frequent "
                          "labels if labels.txt lies\nbeside the file.\n\nExamples:\n"
                          "  gleaner dataset info train.txt.zst\n"
                          "  gleaner dataset info --json train.txt.gleaner | jq .warnings\n\n") +
              kExitCodes);
}

void add_pack(CLI::App& dataset, int& exit_status) {
  CLI::App& verb = *dataset.add_subcommand(
      "pack", "make the packed form of a text file, which training opens at once");
  auto flags = set_action<PackFlags>(verb, exit_status, run_dataset_pack);
  verb.add_option("source", flags->source, "text file (plain, gzip or zstd)")->required();
  verb.add_option("--output", flags->output,
                  "file to write; without it, the cache that training would make");
  verb.add_option("--like", flags->like,
                  "take on this data set's numbers of features and labels, and refuse ids beyond");
  verb.add_option("--cache-dir", flags->cache_dir, "folder for caches, instead of beside the file");
  verb.add_flag("--no-normalize", flags->no_normalize,
                "keep values as they are instead of scaling rows to length 1");
  add_read_flags(verb, flags->read);
  add_force(verb, flags->force);
  verb.footer(std::string("A file packed with --output has the same bytes on every machine.\n\n"
                          "Examples:\n"
                          "  gleaner dataset pack train.txt.zst\n"
                          "  gleaner dataset pack test.txt --like train.txt --output test.gleaner"
                          "\n\n") +
              kExitCodes);
}

void add_split(CLI::App& dataset, int& exit_status) {
  CLI::App& verb =
      *dataset.add_subcommand("split", "cut a data set into a training and a test part");
  auto flags = set_action<SplitFlags>(verb, exit_status, run_dataset_split);
  verb.add_option("source", flags->source, "text (plain, gzip or zstd) or packed file")->required();
  verb.add_option("--train", flags->train, "file for the training part")->required();
  verb.add_option("--test", flags->test, "file for the test part")->required();
  verb.add_option("--share", flags->share, "share of the points that go to the test part")
      ->capture_default_str();
  verb.add_option("--seed", flags->seed, "another seed, another split")->capture_default_str();
  add_read_flags(verb, flags->read);
  add_force(verb, flags->force);
  verb.footer(
      std::string("Where a point goes depends on the seed and its place in the file alone. "
                  "Writes XC text,\ncompressed if the names end in .gz or .zst.\n\n"
                  "Examples:\n"
                  "  gleaner dataset split all.txt --train train.txt.zst --test test.txt.zst"
                  "\n"
                  "  gleaner dataset split all.svm --first-feature 0 --share 0.1 --seed 7 "
                  "\\\n      --train train.txt --test test.txt\n\n") +
      kExitCodes);
}

void add_synth(CLI::App& dataset, int& exit_status) {
  CLI::App& verb =
      *dataset.add_subcommand("synth", "write points with a planted structure, of any number");
  auto flags = set_action<SynthFlags>(verb, exit_status, run_dataset_synth);
  SynthOptions& options = flags->options;
  verb.add_option("--train", flags->train, "file to write")->required();
  verb.add_option("--test", flags->test, "file for further points of the same structure");
  verb.add_option("--points", flags->points)->capture_default_str();
  verb.add_option("--test-points", flags->test_points)->capture_default_str();
  verb.add_option("--features", options.dimensions.features)->capture_default_str();
  verb.add_option("--labels", options.dimensions.labels)->capture_default_str();
  verb.add_option("--labels-per-point", options.labels_per_point, "on average, about")
      ->capture_default_str();
  verb.add_option("--features-per-point", options.features_per_point, "on average, about")
      ->capture_default_str();
  verb.add_option("--zipf", options.zipf, "exponent of the labels' frequencies; 0: all equal")
      ->capture_default_str();
  verb.add_option("--noise", options.noise, "share of the features that mean nothing")
      ->capture_default_str();
  verb.add_option("--seed", options.seed)->capture_default_str();
  add_force(verb, flags->force);
  verb.footer(std::string("Every label has a prototype of features, and companions it likes to "
                          "appear with. Memory does not\ngrow with the set. Writes XC text, "
                          "compressed if the names end in .gz or .zst.\n\nExamples:\n"
                          "  gleaner dataset synth --train train.txt --test test.txt\n"
                          "  gleaner dataset synth --train wide.txt.zst --points 10000000 --labels "
                          "3000000 \\\n      --features 1000000\n\n") +
              kExitCodes);
}

void add_debian(CLI::App& dataset, int& exit_status) {
  CLI::App& verb =
      *dataset.add_subcommand("debian", "make a real data set from this machine's package index");
  auto flags = set_action<DebianFlags>(verb, exit_status, run_dataset_debian);
  verb.add_option("--output", flags->output, "folder to write to")->required();
  verb.add_option("--dump", flags->dump,
                  "saved output of 'apt-cache dumpavail' (plain, gzip or zstd) to use instead");
  verb.add_option("--share", flags->options.test_share,
                  "share of the packages that go to the test part")
      ->capture_default_str();
  verb.add_option("--seed", flags->options.seed, "another seed, other parts")
      ->capture_default_str();
  verb.add_option("--min-dependents", flags->options.dependents_min,
                  "leave out labels with fewer packages that depend on them")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_force(verb, flags->force);
  verb.footer(std::string("One point a package that depends on others. Features: words of its "
                          "name, short description,\nsection, tags and maintainer, weighted by "
                          "rarity. Labels: its dependencies, the first of\nalternatives. Writes "
                          "train.txt, test.txt, labels.txt, features.txt, train.points.txt and\n"
                          "test.points.txt.\n\nExamples:\n"
                          "  gleaner dataset debian --output debian\n"
                          "  apt-cache dumpavail | zstd > dump.zst; gleaner dataset debian --dump "
                          "dump.zst --output debian\n\n") +
              kExitCodes);
}

}  // namespace

void add_read_flags(CLI::App& verb, ReadFlags& flags) {
  verb.add_option("--format", flags.format,
                  "text form: auto looks at the first line (xc: a header of three numbers)")
      ->check(CLI::IsMember({"auto", "xc", "libsvm"}))
      ->capture_default_str();
  verb.add_option("--first-feature", flags.first_feature,
                  "id that libsvm text gives to the first feature; never guessed")
      ->check(CLI::IsMember({0, 1}))
      ->capture_default_str();
}

void add_dataset_commands(CLI::App& app, int& exit_status) {
  CLI::App& dataset = *app.add_subcommand("dataset", "look at, pack, split and make data sets");
  dataset.require_subcommand(1);
  add_info(dataset, exit_status);
  add_pack(dataset, exit_status);
  add_split(dataset, exit_status);
  add_synth(dataset, exit_status);
  add_debian(dataset, exit_status);
}

}  // namespace gleaner
