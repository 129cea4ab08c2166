#include "storage/keep/kept_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "storage/engine/store_folder.hpp"
#include "storage/keep/open_to_read.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKeptSuffix = ".kept";
constexpr const char* kPartSuffix = ".part";
constexpr std::size_t kNameLengthMax = 64;
// The manifest changes a few times per round; a copy takes a fraction of a second.
constexpr int kAttemptsMax = 50;

fs::path kept_folder(const std::string& store) {
  return without_slash(store) + kKeptSuffix;
}

// A name is a folder's name, is shown to people and is typed in shells.
Result<void> check_name(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= kNameLengthMax && name[0] != '.' &&
                    name[0] != '-' && !name.ends_with(kPartSuffix) &&
                    std::ranges::all_of(name, [](unsigned char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
                    });
  if (fits) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a kept checkpoint's name has 1 to {} letters, digits, '.', '-' and "
                           "'_', and begins with a letter or a digit",
                           kNameLengthMax)};
}

// The present manifest and its size, which grows with every change of the set of files.
struct ManifestState {
  std::string name;
  std::uintmax_t bytes = 0;
  friend bool operator==(const ManifestState&, const ManifestState&) = default;
};

ManifestState manifest_of(const fs::path& store) {
  ManifestState state;
  std::ifstream current(store / "CURRENT");
  std::getline(current, state.name);
  std::error_code error;
  state.bytes = fs::file_size(store / state.name, error);
  return state;
}

// Returns false, to be tried again, when a file disappeared or the manifest changed.
Result<bool> copy_once(const fs::path& store, const fs::path& target) {
  std::error_code error;
  fs::remove_all(target, error);
  if (fs::create_directories(target, error); error) {
    return Error{is_out_of_room(error.value()) ? ErrorCode::kDiskFull : ErrorCode::kIo,
                 fmt::format("{} cannot be made: {}", target.string(), error.message())};
  }
  const ManifestState before = manifest_of(store);
  const auto take = [&](const std::string& name, bool is_link) {
    if (is_link) fs::create_hard_link(store / name, target / name, error);
    // Not every file system has hard links.
    if (!is_link || (error && error != std::errc::no_such_file_or_directory &&
                     !is_out_of_room(error.value()))) {
      fs::copy_file(store / name, target / name, error);
    }
    return !error;
  };
  bool is_whole = take(before.name, false) && take("CURRENT", false);
  for (const std::string& name : table_files(store.string())) {
    if (!is_whole) break;
    is_whole = take(name, true) || error == std::errc::no_such_file_or_directory;
  }
  for (const std::string& name : log_files(store.string())) {
    is_whole = is_whole && take(name, false);
  }
  if (is_whole) return manifest_of(store) == before;
  if (error == std::errc::no_such_file_or_directory) return false;
  return Error{
      is_out_of_room(error.value()) ? ErrorCode::kDiskFull : ErrorCode::kIo,
      fmt::format("{} cannot be kept as {}: {}", store.string(), target.string(), error.message())};
}

}  // namespace

std::string kept_path(const std::string& store, const std::string& name) {
  return (kept_folder(store) / name).string();
}

std::vector<std::string> kept_names(const std::string& store) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kept_folder(store), error)) {
    const std::string name = entry.path().filename().string();
    if (check_name(name) && holds_database(entry.path().string())) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> kept_before(const std::string& store, RoundIndex checkpoint) {
  std::vector<std::pair<RoundIndex, std::string>> kept;
  for (const std::string& name : kept_names(store)) {
    const std::string path = kept_path(store, name);
    const auto run = open_run_to_read(path);
    if (run && (*run)->checkpoint() < checkpoint) kept.emplace_back((*run)->checkpoint(), path);
  }
  std::ranges::sort(kept);
  std::vector<std::string> paths;
  for (auto& [round, path] : kept) paths.push_back(std::move(path));
  return paths;
}

Result<void> keep_checkpoint(const std::string& store, const std::string& name,
                             const std::string& reach) {
  if (auto found = find_store_folder(store); !found) return found;
  if (auto fits = check_name(name); !fits) return fits;
  const fs::path target = kept_path(store, name);
  const fs::path part = target.string() + kPartSuffix;
  std::error_code error;
  if (fs::exists(target, error)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} exists already: name another one, or drop it first", target.string())};
  }
  if (auto linked = link_store(reach.empty() ? store : reach, part.string()); !linked)
    return linked;
  fs::rename(part, target, error);
  if (!error) return {};
  const std::string reason = error.message();
  fs::remove_all(part, error);
  return Error{ErrorCode::kIo,
               fmt::format("{} cannot be put in its place: {}", part.string(), reason)};
}

Result<void> link_store(const std::string& store, const std::string& target) {
  if (auto found = find_store_folder(store); !found) return found;
  Result<bool> is_whole = false;
  for (int attempt = 0; attempt < kAttemptsMax && is_whole && !*is_whole; ++attempt) {
    is_whole = copy_once(store, target);
  }
  if (is_whole && *is_whole) return {};
  std::error_code error;
  fs::remove_all(target, error);
  if (!is_whole) return is_whole.error();
  return Error{ErrorCode::kBusy, fmt::format("the files of {} keep changing: try again", store)};
}

Result<void> drop_kept(const std::string& store, const std::string& name) {
  if (auto fits = check_name(name); !fits) return fits;
  const std::string path = kept_path(store, name);
  if (!holds_database(path)) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} has no kept checkpoint '{}': gleaner checkpoint list {} shows "
                             "those there are",
                             store, name, store)};
  }
  if (writer_of(path)) {
    return Error{ErrorCode::kBusy, fmt::format("a gleaner-master trains {}: stop it first", path)};
  }
  std::error_code error;
  // Removed first: without it, the rest of an interrupted deletion is no store.
  fs::remove(fs::path(path) / "CURRENT", error);
  if (!error) fs::remove_all(path, error);
  if (!error) return {};
  return Error{ErrorCode::kIo, fmt::format("{} cannot be deleted: {}", path, error.message())};
}

}  // namespace gleaner
