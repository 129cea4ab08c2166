#include "volunteer/identity.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/check.hpp"
#include "common/dataset/atomic_file.hpp"

namespace gleaner::volunteer {
namespace {

std::string to_text(const Identity& identity) {
  return fmt::format("{:016x}{:016x}", identity.high, identity.low);
}

Result<Identity> parse(const std::string& text, const std::string& path) {
  Identity identity;
  if (text.size() != 32 ||
      std::sscanf(text.c_str(), "%16" SCNx64 "%16" SCNx64, &identity.high, &identity.low) != 2) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} does not hold 32 hexadecimal digits: delete it to become a new "
                             "volunteer",
                             path)};
  }
  return identity;
}

// A volunteer may be killed while it writes: half an identity would keep it from ever starting
// again.
Result<void> write_whole(const std::string& path, const std::string& text) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (auto written = (*file)->write(text.data(), text.size()); !written) return written.error();
  return (*file)->commit(AtomicFile::Existing::kReplace);
}

}  // namespace

Identity random_identity() {
  Identity identity;
  GLEANER_CHECK(getentropy(&identity, sizeof identity) == 0);
  return identity;
}

Result<Identity> load_identity(const std::string& cache_dir) {
  if (cache_dir.empty()) return random_identity();
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  const std::string path = (std::filesystem::path(cache_dir) / "identity").string();
  if (std::ifstream file(path); file) {
    std::string text;
    file >> text;
    // An empty file is what a power cut leaves of one that was not synced: nothing is lost with it.
    if (!text.empty()) return parse(text, path);
  }
  const Identity identity = random_identity();
  if (auto written = write_whole(path, to_text(identity) + "\n"); !written) {
    return Error{ErrorCode::kIo,
                 written.error().message + ": choose a --cache folder that can be written"};
  }
  return identity;
}

}  // namespace gleaner::volunteer
