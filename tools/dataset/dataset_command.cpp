#include "tools/dataset/dataset_command.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

constexpr const char* kExitCodes =
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data.";

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "one JSON object; tools/JSON.md lists its fields");
}

void add_force(CLI::App& verb, bool& force) {
  verb.add_flag("--force", force, "replace outputs that exist");
}

// The folder of a data set stands for its training part: text, or packed as Python's fit() writes
// it.
void take_folder(std::string& source) {
  for (const char* part : {"train.txt", "train.gleaner"}) {
    const std::filesystem::path path = std::filesystem::path(source) / part;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    source = path.string();
    return;
  }
}

// The flags live as long as the command line that fills them: its callback owns them.
template <typename Flags, typename Run>
std::shared_ptr<Flags> set_action(CLI::App& verb, int& exit_status, Run run) {
  auto flags = std::make_shared<Flags>();
  verb.callback([flags, &exit_status, run] {
    if constexpr (requires { flags->source; }) take_folder(flags->source);
    exit_status = report(run(*flags));
  });
  return flags;
}

void add_info(CLI::App& dataset, int& exit_status) {
  CLI::App& verb = *dataset.add_subcommand(
      "info", "what is in a data set, and by line and column what cannot be trained on");
  auto flags = set_action<InfoFlags>(verb, exit_status, run_dataset_info);
  verb.add_option("source", flags->source,
                  "text (plain, gzip or zstd) or packed file; or a folder that convert wrote")
      ->required();
  verb.add_option("--like", flags->like, "refuse ids beyond the ids of this data set");
  verb.add_option("--limit", flags->limit, "list at most N problems; all are counted")
      ->capture_default_str();
  verb.add_flag("--plot", flags->plot, "draw how frequent the labels are, by rank");
  add_json(verb, flags->json);
  add_read_flags(verb, flags->read);
  verb.footer(std::string("Reads to the end whatever it finds, and makes no cache. Of a packed "
                          "file, every checksum is\ncompared. Names the most frequent labels if "
                          "labels.txt lies beside the file. The head are the fewest\nlabels that "
                          "hold half of all occurrences, the tail those that hold the last tenth, "
                          "and those never seen.\n\nExamples:\n"
                          "  gleaner dataset info train.txt.zst\n"
                          "  gleaner dataset info test.svm --like train.svm --limit 1000\n"
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
  add_json(verb, flags->json);
  add_force(verb, flags->force);
  verb.footer(std::string("A file packed with --output has the same bytes on every machine.\n\n"
                          "Examples:\n"
                          "  gleaner dataset pack train.txt.zst\n"
                          "  gleaner dataset pack test.txt --like train.txt --output test.gleaner"
                          "\n\n") +
              kExitCodes);
}

void add_split(CLI::App& dataset, int& exit_status) {
  CLI::App& verb = *dataset.add_subcommand(
      "split", "cut a data set into a training and a test part, or draw a sample of it");
  auto flags = set_action<SplitFlags>(verb, exit_status, run_dataset_split);
  verb.add_option("source", flags->source, "text (plain, gzip or zstd) or packed file")->required();
  CLI::Option* const train = verb.add_option("--train", flags->train, "file of the training part");
  CLI::Option* const test = verb.add_option("--test", flags->test, "file of the test part");
  CLI::Option* const sample =
      verb.add_option("--sample", flags->sample,
                      "instead of both parts, a file of some examples, in the form of its name")
          ->excludes(train)
          ->excludes(test);
  CLI::Option* const points =
      verb.add_option("--points", flags->points, "exactly N examples")->needs(sample);
  verb.add_option("--share", flags->share, "fraction of the examples for the test part or sample")
      ->capture_default_str()
      ->excludes(points);
  verb.add_option("--seed", flags->seed, "another seed, another choice")->capture_default_str();
  add_read_flags(verb, flags->read);
  add_json(verb, flags->json);
  add_force(verb, flags->force);
  verb.footer(std::string("Where an example goes depends on the seed and its place in the file "
                          "alone. A sample keeps the order;\nany choice of N examples is as likely "
                          "as any other. Memory does not grow with the set. Names that\nend in .gz "
                          "or .zst are compressed.\n\nExamples:\n"
                          "  gleaner dataset split all.txt --train train.txt.zst --test "
                          "test.txt.zst\n"
                          "  gleaner dataset split train.txt --sample small.txt --points 10000"
                          "\n\n") +
              kExitCodes);
}

void add_synth(CLI::App& dataset, int& exit_status) {
  CLI::App& verb =
      *dataset.add_subcommand("synth", "write examples with a planted structure, of any number");
  auto flags = set_action<SynthFlags>(verb, exit_status, run_dataset_synth);
  SynthOptions& options = flags->options;
  verb.add_option("--train", flags->train, "file to write")->required();
  verb.add_option("--test", flags->test, "file for further examples of the same structure");
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
  verb.add_option("--noise", options.noise, "fraction of the features that mean nothing")
      ->capture_default_str();
  verb.add_option("--seed", options.seed)->capture_default_str();
  add_json(verb, flags->json);
  add_force(verb, flags->force);
  verb.footer(std::string("Every label has a prototype of features, and companions it likes to "
                          "appear with. Memory does not\ngrow with the set. Writes XC text, "
                          "compressed if the names end in .gz or .zst.\n\nExamples:\n"
                          "  gleaner dataset synth --train train.txt --test test.txt\n"
                          "  gleaner dataset synth --train wide.txt.zst --points 10000000 --labels "
                          "3000000 \\\n      --features 1000000\n\n") +
              kExitCodes);
}

void add_text_flags(CLI::App& verb, TextFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    return verb.add_option(name, value, what)->group("Texts and tags");
  };
  add("--text", flags.fields.text, "columns or keys whose words are features; commas between them")
      ->delimiter(',');
  add("--tags", flags.fields.tags, "column or key with the tags: the labels");
  add("--name", flags.fields.name,
      "column or key with a name for the example (otherwise its text's beginning)");
  add("--tag-separator", flags.fields.tag_separator,
      "what stands between tags; or list for ['a', 'b'], or '<>' for <a><b>");
  add("--records", flags.form, "csv or tsv, both with a row of names, or json (also lines of it)")
      ->check(CLI::IsMember({"csv", "tsv", "json", "jsonl"}));
  add("--separator", flags.separator, "what stands between fields: one character, or tab");
  add("--quote", flags.quote, "double: quotes hold a field together (as in csv); none (as in tsv)")
      ->check(CLI::IsMember({"double", "none"}));
  add("--encoding", flags.encoding, "of the texts, as iconv names it: windows-1252, GB18030, ...");
  add("--label-texts", flags.label_texts,
      "the labels' words: CSV, TSV or JSON lines with id and name or text; lines of id, tab, name; "
      "or SKOS in Turtle");
  add("--language", flags.language, "of SKOS's labels, as en; unless given, the most frequent");
  add("--words", flags.words, "how a text is cut into words: icu, characters:A-B, both, or ascii")
      ->capture_default_str();
  add("--min-count", flags.count_min, "leave out words that fewer training examples have")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add("--min-tag-count", flags.tag_count_min, "leave out tags that fewer training examples have")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add("--share", flags.test_share, "fraction of the examples that go to a test part");
  add("--seed", flags.seed, "another seed, other parts")->capture_default_str();
  add("--vocabulary", flags.vocabulary,
      "folder made before: use its words, rarities and labels, and write one file");
}

void add_convert(CLI::App& dataset, int& exit_status) {
  CLI::App& verb = *dataset.add_subcommand(
      "convert", "from one form of data set to another, or from texts with tags");
  auto flags = set_action<ConvertFlags>(verb, exit_status, run_dataset_convert);
  verb.add_option("source", flags->source,
                  "data set in any form; or CSV, TSV or JSON, also - for standard input")
      ->required();
  verb.add_option("--output", flags->output, "file to write; a folder for a new data set of texts")
      ->required();
  verb.add_option("--to", flags->to,
                  "form to write; unless given, as the name ends: .gleaner, .svm or .libsvm, else "
                  "xc")
      ->check(CLI::IsMember({"xc", "libsvm", "packed"}));
  verb.add_option("--like", flags->like,
                  "take on this data set's numbers of features and labels, and refuse ids beyond");
  verb.add_flag("--no-normalize", flags->no_normalize,
                "keep values as they are instead of scaling packed rows to length 1");
  add_read_flags(verb, flags->read);
  add_text_flags(verb, flags->text);
  add_json(verb, flags->json);
  add_force(verb, flags->force);
  verb.footer(
      std::string("With --text, writes train.txt, labels.txt, features.txt, words.json and "
                  "train.points.txt into a\nfolder, and with --share also test.txt and "
                  "test.points.txt. --label-texts adds its labels, and label_texts.txt, with "
                  "which a label's weights begin.\nValues are (1 + ln occurrences) times\nthe "
                  "word's rarity "
                  "among the training examples. With --vocabulary, a later file is made the same "
                  "way:\nits --text and --tags are the training part's unless given.\n\n"
                  "Examples:\n"
                  "  gleaner dataset convert train.svm --output train.txt.zst\n"
                  "  gleaner dataset convert posts.csv --text title,body --tags tags --share 0.2 "
                  "--output posts\n"
                  "  gleaner dataset convert new.jsonl --vocabulary posts --output posts/new.txt"
                  "\n\n") +
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
  CLI::App& dataset = *app.add_subcommand("dataset", "look at, check, convert and make data sets");
  dataset.require_subcommand(1);
  add_info(dataset, exit_status);
  add_convert(dataset, exit_status);
  add_pack(dataset, exit_status);
  add_split(dataset, exit_status);
  add_synth(dataset, exit_status);
}

}  // namespace gleaner
