#include "volunteer/identity.hpp"

#include <filesystem>
#include <system_error>

namespace gleaner::volunteer {

Result<KeyPair> load_identity(const std::string& cache_dir) {
  if (cache_dir.empty()) return KeyPair::make();
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  auto key = KeyPair::load_or_make((std::filesystem::path(cache_dir) / "key").string());
  if (!key && key.error().code == ErrorCode::kIo) {
    return Error{ErrorCode::kIo,
                 key.error().message + " (choose a --cache folder that can be written)"};
  }
  return key;
}

}  // namespace gleaner::volunteer
