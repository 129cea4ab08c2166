#include "tools/predict/serve_access.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/access/addresses.hpp"
#include "common/access/key_pair.hpp"
#include "common/access/secret_file.hpp"
#include "common/access/sha256.hpp"
#include "common/http/http_server.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kTokenBytesMin = 16;
constexpr std::size_t kTokenBytesMax = 256;

// Texts of any length become comparable in constant time.
InviteSecret digest_of(std::string_view token) {
  Sha256 sum;
  sum.update({reinterpret_cast<const std::uint8_t*>(token.data()), token.size()});
  const auto bytes = sum.finish_bytes();
  InviteSecret digest{};
  std::copy_n(bytes.begin(), digest.size(), digest.begin());
  return digest;
}

Result<std::string> read_token(const std::string& file) {
  auto text = read_secret_file(file, kTokenBytesMax + 1, SecretFrom::kMount);
  if (!text) return text.error();
  if (!*text) return Error{ErrorCode::kNotFound, file + ": there is no such file"};
  std::string token = std::move(**text);
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  const bool is_word = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_word || token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) {
    return Error{
        ErrorCode::kInvalidData,
        fmt::format("{}: a token is one word of {} to {} letters, digits and signs of ASCII; "
                    "delete the file, and gleaner serve makes a good one",
                    file, kTokenBytesMin, kTokenBytesMax)};
  }
  return token;
}

}  // namespace

Result<HostPort> serve_address(const ServeAccessFlags& flags) {
  Result<HostPort> address = parse_host_port(flags.http);
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--http {}: {}", flags.http, what)};
  };
  if (!address || (!is_loopback(address->host) && !is_numeric(address->host))) {
    return wrong("give an address of this machine in numbers, such as 127.0.0.1:8090");
  }
  if (!is_loopback(address->host) && flags.token_file.empty() && !flags.is_public) {
    return wrong(
        "other machines can ask there, so say who is answered: --token-file FILE, whoever shows "
        "the token in it; --public, everybody");
  }
  return address;
}

ServeAccess::ServeAccess(const ServeAccessFlags& flags)
    : file_(flags.token_file),
      reach_(file_.empty() && !flags.is_public ? HttpReach::kThisMachine : HttpReach::kAnyName) {}

Result<std::unique_ptr<ServeAccess>> ServeAccess::open(const ServeAccessFlags& flags) {
  std::unique_ptr<ServeAccess> access(new ServeAccess(flags));
  if (access->file_.empty()) return access;
  Result<void> read = access->reload();
  if (!read && read.error().code == ErrorCode::kNotFound) {
    const std::string token = page_key_text(make_page_key()) + "\n";
    if (auto made = write_secret_file(access->file_, token, SecretFile::kNew); !made) {
      return made.error();
    }
    read = access->reload();
  }
  if (!read) return read.error();
  return access;
}

bool ServeAccess::admits(std::string_view token) const {
  if (file_.empty()) return true;
  const InviteSecret shown = digest_of(token);
  const std::lock_guard guard(lock_);
  return is_same_secret(shown, digest_);
}

Result<void> ServeAccess::reload() {
  if (file_.empty()) return {};
  auto token = read_token(file_);
  if (!token) return token.error();
  const InviteSecret digest = digest_of(*token);
  const std::lock_guard guard(lock_);
  digest_ = digest;
  return {};
}

}  // namespace gleaner
