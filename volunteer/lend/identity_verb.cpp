// `gleaner-volunteer identity`: shows the key in a cache folder, exports and imports it.
#include <fmt/format.h>

#include <filesystem>

#include "common/access/key_pair.hpp"
#include "common/access/secret_file.hpp"
#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kKeyBytesMax = 4096;

Error wrong(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

// Copies a key file, unless a file with another key is in its place.
Result<std::string> copy_key(const std::string& source, const std::string& target) {
  const Result<KeyPair> key = KeyPair::load(source);
  if (!key) return key.error();
  std::error_code error;
  if (std::filesystem::exists(target, error)) {
    const Result<KeyPair> there = KeyPair::load(target);
    if (!there || there->id() != key->id()) {
      return wrong(target + " exists, and is not this key: move it away first");
    }
  }
  const auto text = read_secret_file(source, kKeyBytesMax);
  if (!text) return text.error();
  if (auto written = write_secret_file(target, text->value_or(""), SecretFile::kNew); !written) {
    return written.error();
  }
  return fmt::format("{} is in {}, which only its owner may read.\n", to_text(key->id()), target);
}

}  // namespace

Result<std::string> identity(const std::vector<std::string>& words, const std::string& cache) {
  if (cache.empty()) return wrong("identity needs the --cache DIR of the volunteer");
  const std::string own = (std::filesystem::path(cache) / "key").string();
  if (words.empty()) {
    const Result<KeyPair> key = KeyPair::load(own);
    if (!key) return key.error();
    return to_text(key->id()) + "\n";
  }
  if (words.size() != 2 || (words[0] != "export" && words[0] != "import")) {
    return wrong("identity takes nothing, export FILE, or import FILE");
  }
  if (words[0] == "export") return copy_key(own, words[1]);
  std::error_code ignored;  // the write reports the error
  std::filesystem::create_directories(cache, ignored);
  const Result<std::string> copied = copy_key(words[1], own);
  if (!copied) return copied;
  return *copied +
         "Two volunteers with one key end each other: use it on one machine at a time. "
         "Machines that help at once share their credit by one --name.\n";
}

}  // namespace gleaner::volunteer
