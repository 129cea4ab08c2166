// Opens a store to read, also while a master writes it, and prints errors for a person.
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

// The line of --help with the exit statuses of these verbs.
inline constexpr const char* kStoreExitCodes =
    "Exit status: 0 done, 1 failure of the system, 2 usage, 4 no usable store.";

// Adds the verb's first argument: the store.
void add_store(CLI::App& verb, std::string& folder);

// Lowers the priority of this process where a master has the store open, for verbs that read a
// whole store. Later threads inherit the priority.
void give_way_to_master(const std::string& folder);

// Opens the run and calls `action`. Prints an error to stderr; returns the exit status.
int run_on_store(const std::string& folder, const std::function<Result<void>(RunStore&)>& action);

// Adds the folder to an error, since errors from within a store do not name it.
Result<void> name_folder(Result<void> result, const std::string& folder);

// Prints the error of a failed result to stderr; returns the exit status either way.
int report_on_store(const Result<void>& result);

// Whether a word of the command line names the place of a run: a store's folder, a master's join
// line, HOST:PORT, or the address of a page.
bool is_place(const std::string& word);

// A folder that its object removes.
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
