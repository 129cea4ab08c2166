// The table of settings: from it flags, the file and the reference are made.
#include <chrono>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "master/config/config.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

template <typename T>
SettingValue model_value(T& value, const ModelField<T>& field) {
  if constexpr (std::is_enum_v<T>) {
    return choice_setting(value, model_words(T{}));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_setting(value, field.low, field.high);
  } else {
    return integer_setting(value, field.low, field.high);
  }
}

// A model key, unset by default.
template <typename T>
SettingValue override_value(ModelOverrides& overrides, const ModelField<T>& field) {
  T scratch{};
  SettingValue value = model_value(scratch, field);
  value.words.emplace_back(kAutoText);
  value.set = [&overrides, field](std::string_view text) {
    if (text == kAutoText) {
      overrides.clear(field.member);
      return true;
    }
    T parsed{};
    if (!model_value(parsed, field).set(text)) return false;
    overrides.set(field.member, parsed);
    return true;
  };
  value.get = [&overrides, field]() -> std::string {
    std::optional<T> own = overrides.get(field.member);
    return own ? model_value(*own, field).get() : std::string(kAutoText);
  };
  return value;
}

// The sections of the table, for a configuration.
struct Sections {
  Settings& settings;
  MasterConfig& c;

  void add_data();
  void add_run();
  void add_backup();
  void add_model();
  void add_evaluation();
  void add_page();
  void add_limits();
  void add_network();
  void add_scheduling();
  void add_output();
};

}  // namespace

void Sections::add_data() {
  settings.begin_section("data", "The data for training and evaluation.");
  settings.add("train", SettingScope::kMachine, "",
               "Training file: Extreme Classification Repository or libsvm text, plain or "
               "compressed by gzip or zstd. Required.",
               text_setting(c.data.train, "PATH"));
  settings.add("test", SettingScope::kMachine, "",
               "Test file for precision@k, in the same form. Without it nothing is evaluated.",
               text_setting(c.data.test, "PATH"));
  settings.add(
      "init_from", SettingScope::kMachine, "",
      "Model that the run begins with instead of random weights, in safetensors form, "
      "as gleaner export writes it. Labels and features are matched by name where both sides "
      "have names, else by number; the run's others begin as in any run.",
      text_setting(c.data.init_from, "FILE"));
  settings.add("cache_dir", SettingScope::kMachine, "",
               "Folder for the packed form of the data. Empty: beside the data file.",
               text_setting(c.data.cache_dir, "DIR"));
  settings.add("l2_normalise", SettingScope::kModel, "",
               "Scale every example's features to length one.",
               boolean_setting(c.data.l2_normalise));
}

void Sections::add_run() {
  settings.begin_section("run", "Where the run lives and how this process takes part.");
  settings.add("store", SettingScope::kMachine, "",
               "Folder of the run: checkpoints, history, ledger. Made when it does not exist; a "
               "run in it is resumed. Required.",
               text_setting(c.run.store, "DIR"));
  settings.add(
      "purpose", SettingScope::kMachine, "",
      "Purpose of the run, in up to 200 bytes. Volunteers' owners are shown this and the name of"
      " the store's folder.",
      text_setting(c.core.purpose, "TEXT"));
  settings.add("local", SettingScope::kMachine, "volunteers",
               "Volunteers that run inside this process.", integer_setting(c.run.local, 0, 256));
  settings.add(
      "threads", SettingScope::kMachine, "threads",
      "Compute threads of the master's worker and of each local volunteer. auto: the machine's "
      "cores, shared by the local volunteers.",
      or_auto(c.run.threads, [](std::uint32_t& field) { return integer_setting(field, 1, 1024); }));
  settings.add("min_volunteers", SettingScope::kMachine, "volunteers",
               "Training starts when N have joined.",
               integer_setting(c.core.min_volunteers, 1, 100'000));
  settings.add("input_layer", SettingScope::kMachine, "",
               "Holder of the input layer. master: this process, in memory. volunteers: they "
               "lease its shards (model.input_shards), for data with very many features. The "
               "model is the same to the bit, and a run may be resumed with the other.",
               choice_setting(c.run.input_layer, {"master", "volunteers"}));
  settings.add(
      "fallback_local_s", SettingScope::kMachine, "seconds",
      "After this time without volunteers one inside this process trains, until others have been"
      " here for as long; 0: the run waits.",
      integer_setting(c.run.fallback_local_s, 0, 86'400), "fallback-local");
  settings.add("stop_grace_s", SettingScope::kMachine, "seconds",
               "How long a stop (SIGINT, SIGTERM) waits for the open round to become a "
               "checkpoint.",
               span_setting<std::chrono::seconds>(c.core.stop_grace, 0, 86'400));
  settings.add("disk_reserve", SettingScope::kMachine, "",
               "Training pauses while the store's disk has less free space than this.",
               bytes_setting(c.run.disk_reserve, 0, (std::uint64_t{1} << 20) * kMiB));
}

void Sections::add_backup() {
  settings.begin_section("backup",
                         "Copies of the store, made while training goes on: gleaner backup and "
                         "gleaner restore read them.");
  settings.add("folder", SettingScope::kMachine, "",
               "Folder for backups of this run, best on another disk. Made when it does not "
               "exist. Empty: no backups.",
               text_setting(c.backup.folder, "DIR"), "backup");
  settings.add("every_min", SettingScope::kMachine, "minutes",
               "Time between backups, and from the start to the first; 0: every checkpoint. The "
               "end of the run is always backed up.",
               integer_setting(c.backup.every_min, 0, 10'080), "backup-every");
  settings.add("keep", SettingScope::kMachine, "backups",
               "Backups older than the last N are removed.",
               integer_setting(c.backup.keep, 1, 1000), "backup-keep");
  settings.add("command", SettingScope::kMachine, "",
               "Shell command after each backup, with the folder as $1, such as restic backup "
               "\"$1\", or rclone sync \"$1\" REMOTE:DIR. A failure is a warning and a metric. The "
               "end of the run waits for it.",
               text_setting(c.backup.command, "COMMAND"), "backup-command");
}

void Sections::add_model() {
  settings.begin_section("model",
                         "Everything the trained model depends on besides the data. A run keeps "
                         "these for good. auto: chosen from the data when the run is made.");
  settings.add("seed", SettingScope::kModel, "", "All random choices follow from it.",
               integer_setting(c.seed, 0, std::numeric_limits<std::int64_t>::max()));
  settings.add("recipe", SettingScope::kModel, "",
               "Goal of the values left at auto: good results in little time (auto), a first"
               " look (fast), or the most accurate known (best). Without a hidden layer, auto and "
               "best first train candidates on a part of the data, and say so.",
               choice_setting(c.recipe, {"auto", "fast", "best"}));
  settings.add(
      "commit_share", SettingScope::kModel, "",
      "Fraction of two volunteers' bytes that commits may take. The recipe chooses rounds long "
      "enough for it, up to 1,500,000 examples. Lower: less traffic, and more work to repeat "
      "when a volunteer dies.",
      number_setting(c.commit_share, 0.01, 0.9));
  for_each_model_key([&](const auto& field) {
    settings.add(field.name, SettingScope::kModel, field.unit, field.doc,
                 override_value(c.model, field));
  });
}

void Sections::add_evaluation() {
  settings.begin_section("evaluation",
                         "Precision@1, 3, 5 and their propensity-scored forms on the test "
                         "file. Every evaluation of a run scores the same test examples. Where "
                         "they are a sample, `gleaner evaluate` scores the whole file afterwards.");
  settings.add("every_epochs", SettingScope::kRun, "epochs",
               "Epochs between evaluations, each at the next checkpoint; 0: only at the end.",
               integer_setting(c.core.evaluate_every_epochs, 0, 100'000), "evaluate-every");
  settings.add("sample", SettingScope::kRun, "examples",
               "Test examples that an evaluation scores, drawn by the seed; auto: as many as "
               "take a tenth of the training between two evaluations, but at least 1,000.",
               or_auto(c.evaluation.sample,
                       [](std::uint64_t& field) {
                         return or_word(field, integer_setting(field, 1, std::int64_t{1} << 40),
                                        "all", kEvaluateAll);
                       }),
               "evaluate-sample");
  settings.add(
      "patience", SettingScope::kMachine, "evaluations",
      "Evaluations in a row without a higher P@1 that end the training; 0: never. auto: 5, and "
      "at least half of all evaluations so far, if recipe is auto and epochs is not set; "
      "otherwise 0.",
      or_auto(c.evaluation.patience,
              [](std::uint32_t& field) { return integer_setting(field, 0, 100'000); }),
      "patience");
  settings.add("keep_best", SettingScope::kMachine, "",
               "Keep the checkpoint with the highest P@1 as STORE.kept/best, a store of its own.",
               boolean_setting(c.evaluation.keep_best));
  settings.add("keep_every", SettingScope::kMachine, "checkpoints",
               "Keep the start and every N-th checkpoint as STORE.kept/round-NUMBER, each a store "
               "of its own; 0: none.",
               integer_setting(c.evaluation.keep_every, 0, 1'000'000), "keep-every");
  settings.add("new_test", SettingScope::kMachine, "",
               "Begin figures, best checkpoint and patience again when the store has figures"
               " of another test file; otherwise such a start is refused.",
               boolean_setting(c.evaluation.new_test));
}

void Sections::add_page() {
  SettingValue http = or_word(c.network.http, host_port_setting(c.network.http, false),
                              std::string("off"), std::string());
  http.range = "such as 127.0.0.1:8080, an address in numbers";
  settings.add("http", SettingScope::kMachine, "",
               "Address of the run's page, API and metrics, or the next free port; port 0 takes "
               "any. At 127.0.0.1 only this machine reaches it. At an address of a network, or "
               "0.0.0.0, readers with an invite do too, and nothing is encrypted.",
               std::move(http));
  settings.add("serve_program", SettingScope::kMachine, "",
               "Portable gleaner-volunteer, served as /gleaner-volunteer to machines without"
               " Gleaner; off: none; auto: the file that tools/packaging/portable/build made"
               " beside this program's build.",
               text_setting(c.network.serve_program, "FILE"));
}

void Sections::add_limits() {
  settings.add("send_queue_bytes", SettingScope::kMachine, "",
               "Most bytes that wait to be sent to one volunteer; a volunteer further behind is "
               "cut off.",
               bytes_setting(c.network.send_queue_bytes, kMiB, 65'536 * kMiB));
  settings.add("limit_up", SettingScope::kMachine, "Mbit/s",
               "Send no more than this to all volunteers together; auto: no limit.",
               or_auto(c.network.limit_up, [](double& field) {
                 return number_setting(field, kLimitMegabitsMin, 1e6);
               }));
  settings.add("limit_down", SettingScope::kMachine, "Mbit/s",
               "Receive no more than this from all volunteers together; auto: no limit.",
               or_auto(c.network.limit_down, [](double& field) {
                 return number_setting(field, kLimitMegabitsMin, 1e6);
               }));
  settings.add("volunteers_max", SettingScope::kMachine, "volunteers",
               "Most volunteers at a time; others are told to wait, and try again.",
               integer_setting(c.core.sessions_max, 1, 100'000));
  settings.add("waiting_max", SettingScope::kMachine, "connections",
               "Most connections that have not introduced themselves; a further one closes the "
               "oldest.",
               integer_setting(c.network.waiting_max, 1, 100'000));
  settings.add("waiting_per_address_max", SettingScope::kMachine, "connections",
               "The same for the connections of one address.",
               integer_setting(c.network.waiting_per_address_max, 1, 100'000));
}

void Sections::add_network() {
  settings.begin_section("network", "How volunteers reach the master.");
  settings.add("listen", SettingScope::kMachine, "",
               "Address at which volunteers join; port 0 takes a free one and prints it. Empty: "
               "only local volunteers, and a free port of this machine for questions.",
               host_port_setting(c.network.listen, false));
  settings.add("advertise", SettingScope::kMachine, "",
               "Host in join lines, and a port if it differs from that of listen: the address by"
               " which volunteers reach this machine, such as that of a router. Empty: this "
               "machine's name, or its first address.",
               host_setting(c.network.advertise));
  settings.add("insecure", SettingScope::kMachine, "",
               "Encrypt nothing and admit everybody who reaches the port; volunteers must be"
               " started with it too. Only for networks on which everybody is trusted.",
               boolean_setting(c.network.insecure));
  add_page();
  settings.add("audit", SettingScope::kMachine, "",
               "How much of strangers' work others repeat and compare. all: the model is the "
               "honest one, even with liars. adaptive: a stranger's first two rounds, then some."
               " off: nothing. Volunteers of a trusted invite are not audited.",
               choice_setting(c.core.audit, {"off", "adaptive", "all"}));
  settings.add("audit_share", SettingScope::kMachine, "",
               "With audit = adaptive, the fraction of a stranger's later rounds that is "
               "audited, drawn unpredictably.",
               number_setting(c.core.audit_share, 0.001, 1.0));
  settings.add("heartbeat_ms", SettingScope::kMachine, "milliseconds",
               "Both sides send something at least this often.",
               span_setting<Millis>(c.core.heartbeat, 10, 600'000));
  settings.add(
      "silence_ms", SettingScope::kMachine, "milliseconds",
      "A volunteer that sends nothing for this time counts as dead, and its shards go to others;"
      " more than twice heartbeat_ms.",
      span_setting<Millis>(c.core.silence, 50, 3'600'000));
  settings.add("join_timeout_ms", SettingScope::kMachine, "milliseconds",
               "A connection must introduce itself within this time.",
               span_setting<Millis>(c.core.join_timeout, 100, 600'000));
  settings.add("stall_s", SettingScope::kMachine, "seconds",
               "A volunteer that does not answer its work within this time is let go.",
               span_setting<std::chrono::seconds>(c.core.stall, 1, 86'400));
  settings.add("rejoin_grace_ms", SettingScope::kMachine, "milliseconds",
               "After a restart, or when every volunteer was lost at once, shards wait this time"
               " for volunteers that still have them.",
               span_setting<Millis>(c.core.rejoin_grace, 0, 600'000));
  settings.add("farewell_s", SettingScope::kMachine, "seconds",
               "How long the port stays open after the end of a run for volunteers that were "
               "lost in its last 10 minutes; 0: it closes at once.",
               integer_setting(c.network.farewell_s, 0, 86'400));
  add_limits();
}

void Sections::add_scheduling() {
  settings.begin_section("scheduling",
                         "How work is handed out. Nothing here reaches a trained number.");
  settings.add("batches_per_unit_max", SettingScope::kMachine, "batches",
               "Batches that one work unit may hold.",
               integer_setting(c.core.batches_per_unit_max, 1, kBatchesPerUnitMax));
  settings.add(
      "unit_target_ms", SettingScope::kMachine, "milliseconds",
      "Time that a work unit may take a volunteer that catches up. A unit of new batches holds "
      "at most a quarter of the lag.",
      span_setting<Millis>(c.core.unit_target, 1, 60'000));
  settings.add("balance_hysteresis", SettingScope::kMachine, "fraction",
               "Shards move when batches would be faster by more than this fraction, and have "
               "been so for some rounds.",
               number_setting(c.core.balance_hysteresis, 0.0, 10.0));
}

void Sections::add_output() {
  settings.begin_section("output", "The program's output.");
  settings.add("log_format", SettingScope::kMachine, "",
               "text: lines for people; json: events, one JSON object a line (EVENTS.md).",
               choice_setting(c.output.log_format, {"text", "json"}));
  settings.add("quiet", SettingScope::kMachine, "", "Print only results, warnings and errors.",
               boolean_setting(c.output.quiet));
  settings.add("verbose", SettingScope::kMachine, "", "Print every checkpoint and decision.",
               boolean_setting(c.output.verbose));
}

Settings master_settings(MasterConfig& config) {
  Settings settings;
  Sections sections{settings, config};
  sections.add_data();
  sections.add_run();
  sections.add_backup();
  sections.add_model();
  sections.add_evaluation();
  sections.add_network();
  sections.add_scheduling();
  sections.add_output();
  settings.show({"data.train",     "data.test",         "data.init_from",     "run.store",
                 "run.purpose",    "run.local",         "run.threads",        "backup.folder",
                 "model.seed",     "model.recipe",      "model.epochs",       "evaluation.patience",
                 "network.listen", "network.advertise", "network.insecure",   "network.http",
                 "network.audit",  "network.limit_up",  "network.limit_down", "output.log_format",
                 "output.quiet",   "output.verbose"});
  return settings;
}

}  // namespace gleaner
