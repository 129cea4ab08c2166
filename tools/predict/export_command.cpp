// `gleaner export`: one trained model or several as one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/console/terminal.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/predict/export_model.hpp"
#include "tools/predict/write_model.hpp"

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

Report report_of(const ExportFlags& flags, const std::vector<ModelPart>& parts,
                 const WrittenModel& written) {
  Report report;
  report.fact("file", "file", cell_text(flags.target));
  report.fact("bytes", "size", cell_bytes(written.bytes));
  report.fact("reads_texts", "reads raw texts",
              {written.reads_texts,
               written.reads_texts ? "yes" : "no: --data gives it the words of a data set"});
  if (flags.prune) {
    Cell left_out = cell_count(written.left_out);
    left_out.text += fmt::format(" of {} labels, never active", grouped(written.labels));
    report.fact("left_out", "left out", std::move(left_out));
  }
  if (parts.size() == 1) {
    report.fact("checkpoint", "checkpoint", cell_count(trained_checkpoint(*parts.front().run)));
    report.fact("digest", "digest", cell_text(written.digest));
    return report;
  }
  report.fact("hidden", "hidden units", cell_count(written.hidden));
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

// Names and words come from --data, or else from a model file that carries them.
Result<void> export_model(const ExportFlags& flags) {
  const auto parts = open_parts(flags.stores);
  if (!parts) return parts.error();
  const Result<RunIdentity> identity = identity_of(*parts);
  if (!identity) return identity.error();
  const std::string& first = flags.stores.front();
  const std::string& data = flags.data.empty() && is_model_file(first) ? first : flags.data;
  const auto known =
      data.empty() ? Result<PredictData>(PredictData()) : PredictData::open_names(data, *identity);
  if (!known) return known.error();
  const Result<NameTable> labels = label_names_of(*identity, flags.labels);
  if (!labels) return labels.error();
  ModelTarget target{flags.target, &*known, flags.labels.empty() ? nullptr : &*labels, flags.prune};
  ProgressLine progress("Exporting");
  const auto written = write_model(*parts, target, [&](std::uint64_t done, std::uint64_t total) {
    progress.show(done, total, "shards");
  });
  if (!written) return written.error();
  return print_report(report_of(flags, *parts, *written), report_form(flags.json), "export",
                      fmt::format("{}", fmt::join(flags.stores, " ")));
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
    exit_status = report_on_store(export_model(*flags));
  });
}

}  // namespace gleaner
