#include "tools/store_access.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "common/exit_code.hpp"
#include "storage/rocks_store.hpp"

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

// Errors from within a store do not know where it lies.
Error name_folder(Error error, const std::string& folder) {
  if (error.message.find(folder) == std::string::npos) {
    error.message = fmt::format("{}: {}", folder, error.message);
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder) {
  auto store = open_rocks_store(folder, OpenMode::kReadOnly);
  if (!store) return name_folder(store.error(), folder);
  auto run = RunStore::open(std::move(*store));
  if (!run) return name_folder(run.error(), folder);
  return run;
}

int run_on_store(const std::string& folder, const std::function<Result<void>(RunStore&)>& action) {
  Result<std::unique_ptr<RunStore>> run = open_run_to_read(folder);
  const Result<void> done = run ? action(**run) : Result<void>(run.error());
  if (done) return 0;
  return report_on_store(name_folder(done.error(), folder));
}

int report_on_store(const Result<void>& result) {
  if (result) return 0;
  fmt::print(stderr, "gleaner: {}\n", result.error().message);
  return static_cast<int>(exit_status_of(result.error().code));
}

}  // namespace gleaner
