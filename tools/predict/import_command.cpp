// `gleaner import`: begins a run from a model file.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "storage/keep/initial_model.hpp"
#include "storage/keep/model_file.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

constexpr const char* kMaster = "gleaner-master";

struct ImportFlags {
  std::string file;
  bool json = false;
};

Result<void> show_model(const ImportFlags& flags) {
  const auto model = InitialModel::open(flags.file);
  if (!model) return model.error();
  const InitialModel& m = **model;
  const auto said = [&](const char* key) {
    const auto entry = m.metadata().find(key);
    return entry == m.metadata().end() ? cell_none() : cell_text(entry->second);
  };
  Report report;
  report.fact("features", "features", cell_count(m.features()));
  report.fact("hidden", "hidden units", cell_count(m.hidden()));
  report.fact("labels", "labels", cell_count(m.labels()));
  report.fact("parameters", "parameters", cell_count(m.parameters()));
  report.fact("fingerprint", "fingerprint", cell_text(fmt::format("{:016x}", m.fingerprint())));
  report.section("said", "Said by the file");
  report.fact("checkpoint", "checkpoint", said("checkpoint"));
  report.fact("digest", "digest", said("digest"));
  return print_report(report, report_form(flags.json), "import", flags.file);
}

// Becomes gleaner-master: the one beside this program, or else the shell's. Returns only an error.
Error start_master(const ImportFlags& flags, const std::vector<std::string>& more) {
  std::vector<std::string> words = {kMaster, "--init-from", flags.file};
  words.insert(words.end(), more.begin(), more.end());
  if (flags.json) words.emplace_back("--json");
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) ::execv((self.parent_path() / kMaster).c_str(), arguments.data());
  ::execvp(kMaster, arguments.data());
  return {ErrorCode::kIo, fmt::format("{} cannot be started, neither from the folder of this "
                                      "program nor as the shell finds it: {}",
                                      kMaster, std::generic_category().message(errno))};
}

}  // namespace

void add_import_command(CLI::App& app, int& exit_status) {
  CLI::App& verb =
      *app.add_subcommand("import", "start a run from a model that gleaner export wrote");
  auto flags = std::make_shared<ImportFlags>();
  verb.add_option("file", flags->file, "model in safetensors form; first of the arguments")
      ->required();
  verb.add_flag("--json", flags->json, "one JSON object about the model; of a run, its events");
  verb.allow_extras();
  verb.footer(std::string(
      "Alone, reads FILE whole and says what a run would begin with. With the arguments of\n"
      "gleaner-master it becomes that program, with --init-from FILE before them: the run begins "
      "with the\nmodel's weights, on the same data or others. Labels and features of --train that "
      "the model does not\nhave begin as in any run. The same command resumes it.\n\n"
      "Examples:\n"
      "  gleaner import model.safetensors\n"
      "  gleaner import model.safetensors --train more.txt --test test.txt --store run2 --local 2\n"
      "  gleaner import model.safetensors --train more.txt --store run2 --listen 0.0.0.0:7070\n\n"
      "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store, 5 "
      "network:\nthose of gleaner-master."));
  verb.callback([&verb, flags, &exit_status] {
    const std::vector<std::string> more = verb.remaining();
    exit_status = report_on_store(more.empty() ? show_model(*flags)
                                               : Result<void>(start_master(*flags, more)));
  });
}

}  // namespace gleaner
