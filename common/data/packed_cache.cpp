#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/data/open_or_pack.hpp"
#include "common/data/packed_format.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;

// The name in a cache folder that is shared by files of all folders.
std::string shared_name(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::weakly_canonical(path, error);
  if (error) absolute = fs::absolute(path, error);
  const std::string text = absolute.string();
  return fmt::format("{}-{:016x}.gleaner", fs::path(path).filename().string(),
                     checksum(text.data(), text.size()));
}

std::string user_cache_folder() {
  // Read before any thread could change the environment; none does.
  const char* xdg = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe)
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/gleaner";
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/gleaner";
  return {};
}

// A folder without any write permission should stay unchanged, even by root, whom the kernel lets
// write.
bool is_marked_read_only(const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";

  struct stat status {};

  return ::stat(folder.c_str(), &status) == 0 && (status.st_mode & 0222) == 0;
}

}  // namespace

Result<std::string> source_key(const std::string& path, const PackOptions& options) {
  struct stat status {};

  if (::stat(path.c_str(), &status) != 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, fmt::format("{}: cannot be opened: {}", path,
                                   std::generic_category().message(errno))};
  }
  const auto& limits = options.text.limits;
  // The last line is part of the keys of all existing caches.
  return fmt::format(
      "gleaner packed {}\nbytes {}\nchanged {}.{:09}, {}.{:09}\ninode {}\nformat {}\nfirst feature "
      "{}\nnormalize {}\nlimits {}\nat least 0x0\n",
      packed::kVersion, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
      status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_ino,
      static_cast<int>(options.text.format), options.text.libsvm_first_feature,
      options.normalize ? 1 : 0,
      limits ? fmt::format("{}x{}", limits->features, limits->labels) : "none");
}

std::vector<std::string> cache_candidates(const std::string& path, const PackOptions& options) {
  if (!options.cache_dir.empty()) return {options.cache_dir + "/" + shared_name(path)};
  std::vector<std::string> candidates;
  if (!is_marked_read_only(path)) candidates.push_back(path + ".gleaner");
  const std::string folder = user_cache_folder();
  if (!folder.empty()) candidates.push_back(folder + "/" + shared_name(path));
  return candidates;
}

}  // namespace gleaner
