// `gleaner export`: one trained model or several as one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/console/terminal.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/predict/export_model.hpp"

namespace gleaner {
namespace {

struct ExportFlags {
  std::vector<std::string> stores;
  std::string target;
  std::string data;  // with names and words; empty: none, or a model file's own
  std::string labels;
  bool prune = false;
  bool force = false;
  bool json = false;
};

// The output rows of the file, by label. A label is left out when its neuron was never active in
// any of the parts: no update ever touched its row, which is therefore not stored.
class OutputRows {
 public:
  explicit OutputRows(std::uint32_t labels) : place_(labels, kLeftOut) {}

  static Result<OutputRows> of(const std::vector<ModelPart>& parts, bool prune) {
    OutputRows rows(parts.front().run->identity().model.labels);
    std::vector<bool> is_kept(rows.place_.size(), !prune);
    for (const ModelPart& part : parts) {
      if (!prune) break;
      auto marked = name_folder(mark_stored(*part.run, is_kept), part.name);
      if (!marked) return marked.error();
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
  static Result<void> mark_stored(RunStore& run, std::vector<bool>& is_kept) {
    const ShardMap& map = run.shard_map();
    for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
      const std::uint32_t begin = map.neurons(ShardId{s}).begin;
      auto visited = visit_model_rows(run, ShardId{s}, [&](const ModelRow& row) {
        if (row.is_stored) is_kept[map.label_of_neuron(begin + row.neuron)] = true;
      });
      if (!visited) return visited;
    }
    return {};
  }

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

// The tensors that rows go to.
struct Weights {
  std::size_t hidden;
  std::span<float> input, input_bias, output, output_bias;
  std::uint8_t* label_counts;
};

// `share` of every output row: logits are sums over the parts.
Result<void> fill_rows(const ModelPart& part, const OutputRows& rows, float share,
                       const Weights& weights, const std::function<void()>& shard_done) {
  RunStore& run = *part.run;
  const ShardMap& map = run.shard_map();
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const NeuronRange neurons = map.neurons(shard);
    const std::vector<std::uint32_t> label_counts = run.label_counts(shard);
    auto visited = visit_model_rows(run, shard, [&](const ModelRow& row) {
      if (!map.is_output(shard)) {
        const auto target = row.row == run.identity().model.features
                                ? weights.input_bias
                                : weights.input.subspan(row.row * weights.hidden, weights.hidden);
        std::ranges::copy(row.values, target.begin() + part.first_unit + neurons.begin);
        return;
      }
      const auto place = rows.place(map.label_of_neuron(neurons.begin + row.row));
      if (!place) return;
      const auto target = weights.output.subspan(*place * weights.hidden + part.first_unit);
      std::ranges::transform(row.values.first(row.values.size() - 1), target.begin(),
                             [&](float weight) { return share * weight; });
      weights.output_bias[*place] += share * row.values.back();
      std::memcpy(weights.label_counts + *place * sizeof(std::uint32_t), &label_counts[row.row],
                  sizeof(std::uint32_t));
    });
    if (!visited) return visited;
    shard_done();
  }
  return {};
}

Result<void> fill_file(const std::vector<ModelPart>& parts, const OutputRows& rows,
                       std::size_t hidden, ModelFile& file) {
  const Weights weights{hidden,
                        file.floats(kInputWeight),
                        file.floats(kInputBias),
                        file.floats(kOutputWeight),
                        file.floats(kOutputBias),
                        file.data(kLabelCounts).data()};
  std::uint64_t shards = 0;
  for (const ModelPart& part : parts) shards += part.run->shard_map().shard_count();
  std::uint64_t done = 0;
  ProgressLine progress("Exporting");
  const float share = 1.0F / static_cast<float>(parts.size());
  for (const ModelPart& part : parts) {
    auto filled =
        fill_rows(part, rows, share, weights, [&] { progress.show(++done, shards, "shards"); });
    if (!filled) return name_folder(std::move(filled), part.name);
  }
  return {};
}

Report report_of(const ExportFlags& flags, const std::vector<ModelPart>& parts,
                 const OutputRows& rows, const ModelFile& file, const ModelConfig& model,
                 bool reads_texts) {
  Report report;
  report.fact("file", "file", cell_text(flags.target));
  report.fact("bytes", "size", cell_bytes(file.bytes()));
  report.fact("reads_texts", "reads raw texts",
              {reads_texts, reads_texts ? "yes" : "no: --data gives it the words of a data set"});
  if (flags.prune) {
    Cell left_out = cell_count(rows.left_out());
    left_out.text += fmt::format(" of {} labels, never active", grouped(model.labels));
    report.fact("left_out", "left out", std::move(left_out));
  }
  if (parts.size() == 1) {
    report.fact("checkpoint", "checkpoint", cell_count(parts.front().run->checkpoint()));
    report.fact("digest", "digest", cell_text(parts.front().digest));
    return report;
  }
  report.fact("hidden", "hidden units", cell_count(model.hidden));
  report.section("", fmt::format("The mean of {} models", parts.size()));
  ReportTable& table = report.table(
      "models",
      {{"store", "store", true}, {"checkpoint", "checkpoint"}, {"digest", "digest", true}});
  for (const ModelPart& part : parts) {
    table.rows.push_back(
        {cell_text(part.name), cell_count(part.run->checkpoint()), cell_text(part.digest)});
  }
  return report;
}

// Writes a file of these tensors, which `fill` fills, and of names and words: from --data, or else
// from a model file that carries them.
Result<void> write_file(const ExportFlags& flags, ModelFileForm form,
                        const std::vector<ModelPart>& parts, const OutputRows& rows,
                        const RunIdentity& identity, std::vector<TensorSpec> tensors,
                        const std::function<Result<void>(ModelFile&)>& fill) {
  const auto metadata = metadata_of(identity, parts);
  if (!metadata) return metadata.error();
  const std::string& first = flags.stores.front();
  const std::string& data = flags.data.empty() && is_model_file(first) ? first : flags.data;
  const auto texts = export_texts(identity, *metadata, data, flags.labels, rows.labels());
  if (!texts) return texts.error();
  const std::size_t first_text = tensors.size();
  const std::vector<TextTensor> contents = text_tensors(*texts);
  for (const TextTensor& content : contents) tensors.push_back(content.spec);
  auto file = ModelFile::create(flags.target, form, std::move(tensors), *metadata);
  if (!file) return file.error();
  for (std::size_t i = 0; i < contents.size(); ++i) {
    std::ranges::copy(contents[i].bytes, (*file)->data(first_text + i).begin());
  }
  if (auto filled = fill(**file); !filled) return filled;
  if (auto finished = (*file)->finish(); !finished) return finished;
  return print_report(report_of(flags, parts, rows, **file, identity.model, !texts->words.empty()),
                      report_form(flags.json), "export",
                      fmt::format("{}", fmt::join(flags.stores, " ")));
}

// A model without a hidden layer: every label keeps its row, since all of them are stored.
Result<void> export_wide(const ExportFlags& flags, ModelFileForm form,
                         const std::vector<ModelPart>& parts) {
  if (parts.size() > 1) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the mean of several models needs a hidden layer, and these have none: export each "
        "of them to a file of its own"};
  }
  RunStore& run = *parts.front().run;
  const Result<WideShape> shape = wide_shape(run);
  if (!shape) return name_folder(shape.error(), parts.front().name);
  const Result<OutputRows> rows = OutputRows::of(parts, /*prune=*/false);
  if (!rows) return rows.error();
  const auto fill = [&](ModelFile& file) {
    ProgressLine progress("Exporting");
    std::uint64_t done = 0;
    auto filled = fill_wide(
        run, *shape, file, [&] { progress.show(++done, run.shard_map().shard_count(), "shards"); });
    return name_folder(std::move(filled), parts.front().name);
  };
  return write_file(flags, form, parts, *rows, run.identity(), wide_tensors(*shape), fill);
}

Result<void> export_model(const ExportFlags& flags, ModelFileForm form) {
  const auto parts = open_parts(flags.stores);
  if (!parts) return parts.error();
  if (is_wide(parts->front().run->identity().model)) return export_wide(flags, form, *parts);
  const Result<RunIdentity> identity = identity_of(*parts);
  if (!identity) return identity.error();
  const ModelConfig& model = identity->model;
  const Result<OutputRows> rows = OutputRows::of(*parts, flags.prune);
  if (!rows) return rows.error();
  const std::uint64_t labels = rows->labels().size();
  using Type = TensorType;
  std::vector<TensorSpec> tensors = {
      {"input.weight", Type::kFloat32, {model.features, model.hidden}},
      {"input.bias", Type::kFloat32, {model.hidden}},
      {"output.weight", Type::kFloat32, {labels, model.hidden}},
      {"output.bias", Type::kFloat32, {labels}},
      {"label_counts", Type::kUint32, {labels}}};
  if (flags.prune) tensors.push_back({"output.labels", Type::kUint32, {labels}});
  return write_file(flags, form, *parts, *rows, *identity, std::move(tensors),
                    [&](ModelFile& file) {
                      if (flags.prune) {
                        std::memcpy(file.data(kOutputLabels).data(), rows->labels().data(),
                                    labels * sizeof(std::uint32_t));
                      }
                      return fill_file(*parts, *rows, model.hidden, file);
                    });
}

}  // namespace

void add_export_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("export", "write a trained model for other programs");
  auto flags = std::make_shared<ExportFlags>();
  verb.add_option("stores", flags->stores,
                  "folder that gleaner-master was given as --store; of several, the mean of their "
                  "logits becomes one model, as wide as all together")
      ->required();
  verb.add_option("--to", flags->target, "file to write: NAME.safetensors or NAME.npz")->required();
  verb.add_option("--data", flags->data,
                  "folder of the run's data set ('gleaner dataset convert --text'): its "
                  "names and words go into the file, which then reads raw texts");
  verb.add_option(
      "--labels", flags->labels,
      "file with a label's name a line, to put into it (otherwise the names of --data)");
  verb.add_flag("--prune", flags->prune,
                "leave out labels whose neuron was never active: no update ever touched it");
  verb.add_flag("--force", flags->force, "replace the file if it exists");
  verb.add_flag("--json", flags->json, "one JSON object about what was written");
  verb.footer(std::string("Weights and biases of the last whole checkpoint in single precision, "
                          "labels in their own order,\nwith configuration and digest. "
                          "tools/predict/README.md lists the tensors and has a NumPy script that "
                          "predicts\nwith them. Several stores are of the same training file, "
                          "with other seeds or settings: together they\npredict better than each "
                          "(an ensemble), and their model is used like any.\n\n"
                          "Examples:\n"
                          "  gleaner export run1 --to model.safetensors --data posts\n"
                          "  gleaner export run1 --to model.npz --labels labels.txt\n"
                          "  gleaner export run1 run2 run3 --to mean.safetensors\n"
                          "  gleaner evaluate mean.safetensors --data test.txt\n\n") +
              kStoreExitCodes);
  verb.callback([flags, &exit_status] {
    const Result<ModelFileForm> form = form_of(flags->target);
    const Result<void> usable =
        form ? guard_outputs({flags->target}, flags->force) : Result<void>(form.error());
    if (!usable) {
      exit_status = report_on_store(usable);
      return;
    }
    for (const std::string& store : flags->stores) give_way_to_master(store);
    exit_status = report_on_store(export_model(*flags, *form));
  });
}

}  // namespace gleaner
