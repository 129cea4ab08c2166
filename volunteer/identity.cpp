#include "volunteer/identity.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/check.hpp"

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
    return parse(text, path);
  }
  const Identity identity = random_identity();
  std::ofstream file(path);
  file << to_text(identity) << "\n";
  file.close();
  if (!file) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot write {}: choose a --cache folder that can be written", path)};
  }
  return identity;
}

}  // namespace gleaner::volunteer
