#include "tools/cli/store_access.hpp"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "storage/engine/store_folder.hpp"

namespace gleaner {
namespace {

// Whatever is wrong with a store that was to be read is the store's.
ExitCode exit_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kVersion:
    case ErrorCode::kNotFound:
      return ExitCode::kStore;
    default:
      return exit_code_of(code);
  }
}

}  // namespace

bool is_place(const std::string& word) {
  std::error_code ignored;
  return word.find(':') != std::string::npos || std::filesystem::is_directory(word, ignored);
}

void add_store(CLI::App& verb, std::string& folder) {
  verb.add_option("store", folder, "folder that gleaner-master was given as --store")->required();
}

void give_way_to_master(const std::string& folder) {
  // It concerns one thread in Linux, here the only one. Any process may have less.
  const sched_param none{};
  if (writer_of(folder)) ::sched_setscheduler(0, SCHED_IDLE, &none);
}

int run_on_store(const std::string& folder, const std::function<Result<void>(RunStore&)>& action) {
  Result<std::unique_ptr<RunStore>> run = open_run_to_read(folder);
  const Result<void> done = run ? action(**run) : Result<void>(run.error());
  if (done) return 0;
  return report_on_store(name_folder(done.error(), folder));
}

Result<void> name_folder(Result<void> result, const std::string& folder) {
  if (result) return result;
  return name_folder(result.error(), folder);
}

int report_on_store(const Result<void>& result) {
  if (result || is_reader_lost(result)) return 0;
  print_error("gleaner: " + result.error().message);
  return static_cast<int>(exit_status_of(result.error().code));
}

}  // namespace gleaner
