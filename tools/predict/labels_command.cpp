// `gleaner labels`: adds labels to a trained model, without training, and retires others.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/data/packed_writer.hpp"
#include "common/limits.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/open_to_read.hpp"
#include "storage/keep/wide_start.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/label_texts.hpp"
#include "tools/predict/write_model.hpp"

namespace gleaner {
namespace {

struct LabelsFlags {
  std::string file;
  std::string add;       // labels with their words; empty: none
  std::string language;  // of SKOS's labels
  std::string retire;    // ids, one per line; empty: none
  std::string target;    // empty: `file`
  bool json = false;
};

class LabelChange {
 public:
  explicit LabelChange(const LabelsFlags& flags) : flags_(flags) {}

  Result<void> open();
  Result<void> add_labels();
  Result<void> retire_labels();
  Result<WrittenModel> write();
  [[nodiscard]] Report report() const;

 private:
  [[nodiscard]] Error refuse(const std::string& why) const {
    return {ErrorCode::kInvalidData, fmt::format("{}: {}", flags_.file, why)};
  }

  void add(const LabelText& text);
  // A name that is no label is counted.
  void retire(const std::string& id);
  Result<std::unique_ptr<PackedDataset>> packed_texts(const std::string& path) const;

  const LabelsFlags& flags_;
  std::unique_ptr<InitialModel> model_;
  std::unique_ptr<RunStore> run_;  // as the file is
  PredictData data_;
  std::vector<std::string> names_;
  std::vector<std::string> titles_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Point> texts_;          // of labels whose rows are made
  std::set<std::uint32_t> are_made_;  // new labels, and labels that are no longer retired
  std::set<std::uint32_t> are_retired_;
  std::uint64_t unknown_ = 0;
};

}  // namespace

Result<void> LabelChange::open() {
  if (!is_model_file(flags_.file)) {
    return refuse(
        "labels are changed in a model file: write one with 'gleaner export STORE --data "
        "FOLDER --to NAME.safetensors'");
  }
  auto model = InitialModel::open(flags_.file);
  if (!model) return model.error();
  model_ = std::move(*model);
  auto run = open_run_to_read(flags_.file);
  if (!run) return run.error();
  run_ = std::move(*run);
  auto data = PredictData::open_names(flags_.file, run_->identity());
  if (!data) return data.error();
  data_ = std::move(*data);
  if (model_->hidden() != 0)
    return refuse(
        "only labels of a model without hidden units have rows "
        "of words, and this one has hidden units");
  if (data_.words() == nullptr || data_.names().labels.size() == 0) {
    return refuse("it does not carry the names and words of its data set: export it with --data");
  }
  for (std::uint32_t label = 0; label < model_->labels(); ++label) {
    names_.emplace_back(data_.names().labels.name(label));
    titles_.emplace_back(data_.names().titles.name(label));
    numbers_.try_emplace(names_.back(), label);
  }
  return {};
}

void LabelChange::add(const LabelText& text) {
  if (text.is_retired) return numbers_.contains(text.id) ? retire(text.id) : void();
  const auto [place, is_new] = numbers_.try_emplace(text.id, names_.size());
  const std::uint32_t label = place->second;
  if (is_new) {
    names_.push_back(text.id);
    titles_.emplace_back();
  }
  if (!text.name.empty() || !text.notation.empty()) {
    titles_[label] = text.name + "\t" + text.notation;
  }
  if (!is_new && model_->has_label(label)) return;
  are_made_.insert(label);
  // Even a label without words needs a row.
  const std::vector<std::string> none(1);
  for (const std::string& words : text.texts.empty() ? none : text.texts) {
    texts_.push_back(data_.words()->point_of(words));
    texts_.back().labels = {label};
  }
}

Result<void> LabelChange::add_labels() {
  if (flags_.add.empty()) return {};
  const auto texts = read_label_texts(flags_.add, flags_.language);
  if (!texts) return texts.error();
  for (const LabelText& text : *texts) add(text);
  if (names_.size() <= kLabelsMax) return {};
  return refuse(fmt::format("{} labels, of at most {}", names_.size(), kLabelsMax));
}

void LabelChange::retire(const std::string& id) {
  const bool is_bracketed = id.size() > 2 && id.front() == '<' && id.back() == '>';
  const auto found = numbers_.find(is_bracketed ? id.substr(1, id.size() - 2) : id);
  if (found == numbers_.end()) {
    ++unknown_;
  } else if (model_->has_label(found->second) || are_made_.contains(found->second)) {
    are_retired_.insert(found->second);
  }
}

Result<void> LabelChange::retire_labels() {
  if (flags_.retire.empty()) return {};
  const auto ids = NameTable::load(flags_.retire);
  if (!ids) return ids.error();
  for (std::uint32_t i = 0; i < ids->size(); ++i) {
    if (!ids->name(i).empty()) retire(std::string(ids->name(i)));
  }
  return {};
}

Result<std::unique_ptr<PackedDataset>> LabelChange::packed_texts(const std::string& path) const {
  auto writer = PackedWriter::create(path, true);
  if (!writer) return writer.error();
  for (const Point& point : texts_) {
    if (auto added = (*writer)->add(point); !added) return added.error();
  }
  const Dimensions size{run_->identity().model.features, static_cast<std::uint32_t>(names_.size())};
  auto finished = (*writer)->finish(size, {}, "", AtomicFile::Existing::kReplace);
  if (!finished) return finished.error();
  auto opened = PackedDataset::open(path);
  std::remove(path.c_str());
  return opened;
}

Result<WrittenModel> LabelChange::write() {
  const std::string& target = flags_.target.empty() ? flags_.file : flags_.target;
  RunIdentity identity = run_->identity();
  identity.model.labels = static_cast<std::uint32_t>(names_.size());
  identity.settings.erase(std::string("names.") + kLabelNamesFile);
  std::unique_ptr<PackedDataset> texts;
  std::unique_ptr<WideStart> start;  // null if no row is made
  if (!texts_.empty()) {
    auto packed = packed_texts(target + ".texts");
    if (!packed) return packed.error();
    texts = std::move(*packed);
    const std::vector<std::uint32_t> occurrences = data_.words()->words.occurrences();
    auto made =
        WideStart::of_texts(identity.model, *texts, {occurrences.begin(), occurrences.end()});
    if (!made) return made.error();
    start = std::move(*made);
  }
  const WideRowOf row_of = [&](std::uint32_t label, WideRow& row) -> Result<void> {
    if (are_retired_.contains(label)) {
      row.bias = kRetiredBias;
      return {};
    }
    if (are_made_.contains(label)) return start->make_row(label, row);
    return model_->read_wide_row(label, row);
  };
  const auto sizes = wide_sizes(identity.model, row_of);
  if (!sizes) return sizes.error();
  if (sizes->rows > kWideRowsMax) return refuse("a shard would have too many rows");
  identity.model.wide_rows = sizes->rows;
  std::vector<std::uint32_t> counts = model_->label_counts();
  counts.resize(names_.size());
  auto changed = RunStore::create_or_open(std::make_unique<MemoryStore>(), identity, counts,
                                          wide_initial_rows(identity.model, row_of));
  if (!changed) return changed.error();
  NameTable labels, titles;
  for (const std::string& name : names_) labels.add(name);
  for (const std::string& title : titles_) titles.add(title);
  data_.set_labels(std::move(labels), std::move(titles));
  const std::vector<ModelPart> parts = {{flags_.file, std::move(*changed), 0, ""}};
  return write_model(parts, {target, &data_, nullptr, false}, [](auto, auto) {});
}

Report LabelChange::report() const {
  const auto made = std::ranges::count_if(
      are_made_, [this](std::uint32_t label) { return !are_retired_.contains(label); });
  Report report;
  report.fact("labels", "labels", cell_count(names_.size()));
  report.fact("added", "added", cell_count(static_cast<std::uint64_t>(made)));
  report.fact("retired", "retired", cell_count(are_retired_.size()));
  report.fact("unknown", "not labels", cell_count(unknown_));
  return report;
}

void add_labels_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand(
      "labels", "add labels to a trained model without training, or retire some");
  auto flags = std::make_shared<LabelsFlags>();
  verb.add_option("file", flags->file, "model file of gleaner export with --data")->required();
  verb.add_option("--add", flags->add,
                  "labels with their words, in a form of 'gleaner dataset convert --label-texts'; "
                  "known ones get the file's names");
  verb.add_option("--language", flags->language, "of SKOS's labels; else the most frequent");
  verb.add_option("--retire", flags->retire, "file with the id of a label to retire a line");
  verb.add_option("--to", flags->target, "file to write, instead of replacing the model");
  verb.add_flag("--json", flags->json, "one JSON object about what was written");
  verb.footer(
      "An added label's weights are its words', so it answers at once; later training goes on from "
      "there\n(gleaner import). A retired label is never answered, and keeps its number. gleaner "
      "serve goes over to\nthe file by itself.\n\n"
      "Examples:\n"
      "  gleaner labels model.safetensors --add new.tsv\n"
      "  gleaner labels model.safetensors --retire old.txt --to model2.safetensors\n\n"
      "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable model.");
  verb.callback([flags, &exit_status] {
    const auto change_labels = [&]() -> Result<void> {
      LabelChange change(*flags);
      if (auto opened = change.open(); !opened) return opened;
      if (auto added = change.add_labels(); !added) return added;
      if (auto retired = change.retire_labels(); !retired) return retired;
      const auto written = change.write();
      if (!written) return written.error();
      return print_report(change.report(), report_form(flags->json), "labels", flags->file);
    };
    exit_status = report_on_store(change_labels());
  });
}

}  // namespace gleaner
