#include "tools/export_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/terminal.hpp"
#include "storage/identity.hpp"
#include "tools/dataset_console.hpp"
#include "tools/model_file.hpp"
#include "tools/model_rows.hpp"
#include "tools/report.hpp"
#include "tools/store_access.hpp"

namespace gleaner {
namespace {

constexpr const char* kExportFormat = "gleaner model 1";

struct ExportFlags {
  std::string store;
  std::string target;
  std::string labels;
  bool prune = false;
  bool force = false;
  bool json = false;
};

// The output rows of the file, by label. A label is left out when its neuron was never active: no
// update ever touched its row, which is therefore not stored.
class OutputRows {
 public:
  explicit OutputRows(std::uint32_t labels) : place_(labels, kLeftOut) {}

  static Result<OutputRows> of(RunStore& run, bool prune) {
    const ShardMap& map = run.shard_map();
    OutputRows rows(run.identity().model.labels);
    std::vector<bool> is_kept(rows.place_.size(), !prune);
    for (std::uint32_t s = 0; prune && s < map.shard_count(); ++s) {
      const ShardId shard{s};
      if (!map.is_output(shard)) continue;
      const std::uint32_t begin = map.neurons(shard).begin;
      auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
        is_kept[map.label_of_neuron(begin + row.row)] = row.is_stored;
      });
      if (!visited) return visited.error();
    }
    for (std::uint32_t label = 0; label < is_kept.size(); ++label) {
      if (!is_kept[label]) continue;
      rows.place_[label] = static_cast<std::uint32_t>(rows.labels_.size());
      rows.labels_.push_back(label);
    }
    return rows;
  }

  // Nothing when it is left out.
  [[nodiscard]] std::optional<std::uint32_t> place(std::uint32_t label) const {
    return place_[label] == kLeftOut ? std::nullopt : std::optional(place_[label]);
  }

  // Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& labels() const { return labels_; }

  [[nodiscard]] std::size_t left_out() const { return place_.size() - labels_.size(); }

 private:
  static constexpr std::uint32_t kLeftOut = UINT32_MAX;
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> labels_;
};

// Places in the list of tensors.
enum Tensor : std::size_t {
  kInputWeight,
  kInputBias,
  kOutputWeight,
  kOutputBias,
  kLabelCounts,
  kMetadata,
  kLabelNames,
  kOutputLabels,  // with --prune
};

Result<ModelFileForm> form_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return ModelFileForm::kSafetensors;
  if (path.ends_with(".npz")) return ModelFileForm::kNpz;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} ends in neither .safetensors nor .npz: the ending of --to names the "
                           "form",
                           path)};
}

// A name a line, as many as there are output rows.
std::string joined(const NameTable& names, const OutputRows& rows) {
  std::string text;
  if (names.size() == 0) return text;
  for (const std::uint32_t label : rows.labels()) text += std::string(names.name(label)) + "\n";
  return text;
}

Result<std::map<std::string, std::string>> metadata_of(RunStore& run) {
  std::map<std::string, std::string> metadata = {{"format", kExportFormat}};
  for (const auto& [name, text] : model_fields(run.identity().model)) {
    metadata["model." + name] = text;
  }
  for (const auto& [name, text] : run.identity().settings) metadata.emplace(name, text);
  metadata["checkpoint"] = std::to_string(run.checkpoint());
  const Result<std::string> digest = run.checkpoint_digest();
  if (!digest) return digest.error();
  metadata["digest"] = *digest;
  return metadata;
}

Result<void> fill_rows(RunStore& run, const OutputRows& rows, ModelFile& file) {
  const ShardMap& map = run.shard_map();
  const ModelConfig& model = run.identity().model;
  const std::size_t hidden = model.hidden;
  const auto input = file.floats(kInputWeight);
  const auto input_bias = file.floats(kInputBias);
  const auto output = file.floats(kOutputWeight);
  const auto output_bias = file.floats(kOutputBias);
  std::uint8_t* const counts = file.data(kLabelCounts).data();
  ProgressLine progress("Exporting");
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    progress.show(s, map.shard_count(), "shards");
    const ShardId shard{s};
    const NeuronRange neurons = map.neurons(shard);
    const std::vector<std::uint32_t> label_counts = run.label_counts(shard);
    auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
      if (!map.is_output(shard)) {
        const auto target = row.row == model.features
                                ? input_bias.begin()
                                : input.begin() + static_cast<long>(row.row * hidden);
        std::ranges::copy(row.values, target + neurons.begin);
        return;
      }
      const auto place = rows.place(map.label_of_neuron(neurons.begin + row.row));
      if (!place) return;
      std::copy(row.values.begin(), row.values.end() - 1,
                output.begin() + static_cast<long>(*place * hidden));
      output_bias[*place] = row.values.back();
      std::memcpy(counts + *place * sizeof(std::uint32_t), &label_counts[row.row],
                  sizeof(std::uint32_t));
    });
    if (!visited) return visited;
  }
  return {};
}

Result<void> export_model(RunStore& run, const ExportFlags& flags, ModelFileForm form) {
  if (run.checkpoint() == 0) {
    return Error{ErrorCode::kNotFound,
                 "the run has no checkpoint yet: wait until the master has "
                 "finished the first round"};
  }
  const ModelConfig& model = run.identity().model;
  const Result<NameTable> names = label_names_of(run.identity(), flags.labels);
  if (!names) return names.error();
  const Result<OutputRows> rows = OutputRows::of(run, flags.prune);
  if (!rows) return rows.error();
  const std::uint64_t labels = rows->labels().size();
  const auto metadata = metadata_of(run);
  if (!metadata) return metadata.error();
  const std::string metadata_text = Json(*metadata).dump();
  const std::string label_names = joined(*names, *rows);
  using Type = TensorType;
  std::vector<TensorSpec> tensors = {
      {"input.weight", Type::kFloat32, {model.features, model.hidden}},
      {"input.bias", Type::kFloat32, {model.hidden}},
      {"output.weight", Type::kFloat32, {labels, model.hidden}},
      {"output.bias", Type::kFloat32, {labels}},
      {"label_counts", Type::kUint32, {labels}},
      {"metadata", Type::kUint8, {metadata_text.size()}},
      {"label_names", Type::kUint8, {label_names.size()}}};
  if (flags.prune) tensors.push_back({"output.labels", Type::kUint32, {labels}});
  auto file = ModelFile::create(flags.target, form, std::move(tensors), *metadata);
  if (!file) return file.error();
  if (flags.prune) {
    std::memcpy((*file)->data(kOutputLabels).data(), rows->labels().data(),
                labels * sizeof(std::uint32_t));
  }
  std::ranges::copy(metadata_text, (*file)->data(kMetadata).begin());
  std::ranges::copy(label_names, (*file)->data(kLabelNames).begin());
  if (auto filled = fill_rows(run, *rows, **file); !filled) return filled;
  if (auto finished = (*file)->finish(); !finished) return finished;
  Report report;
  report.fact("file", "file", cell_text(flags.target));
  report.fact("bytes", "size", cell_bytes((*file)->bytes()));
  report.fact("checkpoint", "checkpoint", cell_count(run.checkpoint()));
  if (flags.prune) {
    Cell left_out = cell_count(rows->left_out());
    left_out.text += fmt::format(" of {} labels, never active", grouped(model.labels));
    report.fact("left_out", "left out", std::move(left_out));
  }
  report.fact("digest", "digest", cell_text(metadata->at("digest")));
  return print_report(report, flags.json ? ReportForm::kJson : ReportForm::kPeople, "export",
                      flags.store);
}

}  // namespace

void add_export_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("export", "write a trained model for other programs");
  auto flags = std::make_shared<ExportFlags>();
  verb.add_option("store", flags->store, "folder that gleaner-master was given as --store")
      ->required();
  verb.add_option("--to", flags->target, "file to write: NAME.safetensors or NAME.npz")->required();
  verb.add_option("--labels", flags->labels, "file with a label's name a line, to put into it");
  verb.add_flag("--prune", flags->prune,
                "leave out labels whose neuron was never active: no update ever touched it");
  verb.add_flag("--force", flags->force, "replace the file if it exists");
  verb.add_flag("--json", flags->json, "one JSON object about what was written");
  verb.footer(std::string("Weights and biases of the last whole checkpoint in single precision, "
                          "labels in their own order,\nwith configuration and digest. "
                          "tools/README.md lists the tensors and has a NumPy script that "
                          "predicts\nwith them.\n\n"
                          "Examples:\n"
                          "  gleaner export run1 --to model.safetensors\n"
                          "  gleaner export run1 --to model.npz --labels labels.txt\n\n") +
              kStoreExitCodes);
  verb.callback([flags, &exit_status] {
    const Result<ModelFileForm> form = form_of(flags->target);
    const Result<void> usable =
        form ? guard_outputs({flags->target}, flags->force) : Result<void>(form.error());
    if (!usable) {
      exit_status = report_on_store(usable);
      return;
    }
    give_way_to_master(flags->store);
    exit_status =
        run_on_store(flags->store, [&](RunStore& run) { return export_model(run, *flags, *form); });
  });
}

}  // namespace gleaner
