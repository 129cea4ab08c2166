// Opens a store for the verbs that look at one, beside the master that may be writing it, and tells
// a person what went wrong.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "common/result.hpp"
#include "storage/keep/open_to_read.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// The lines of --help that list the exit statuses of these verbs.
inline constexpr const char* kStoreExitCodes =
    "Exit status: 0 done, 1 failure of the system, 2 usage, 4 no usable store.";

// The store that a verb is asked about, first of its arguments.
void add_store(CLI::App& verb, std::string& folder);

// For verbs that read a store whole: where a master has it open, this process takes what others
// leave of the processors. Threads that are made later inherit it.
void give_way_to_master(const std::string& folder);

// Opens the run and does `action` with it. Prints an error to stderr; returns the exit status.
int run_on_store(const std::string& folder, const std::function<Result<void>(RunStore&)>& action);

// Errors from within a store do not know where it lies: adds the folder.
Result<void> name_folder(Result<void> result, const std::string& folder);

// Prints the error of a failed result to stderr; returns the exit status either way.
int report_on_store(const Result<void>& result);

// Whether a word of the command line says where a run is: the folder of a store, the line that a
// master prints, HOST:PORT, or the address of a page.
bool is_place(const std::string& word);

// A folder that goes with its object.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gleaner
