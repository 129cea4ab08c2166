#include "tools/access/access_target.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "common/time.hpp"
#include "master/access/access_file.hpp"
#include "master/access/access_verbs.hpp"
#include "storage/master_note.hpp"
#include "tools/access/master_query.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
namespace {

// Where no master listens for the store: its file is changed, and read when one starts.
Result<AccessAnswer> change_file(const std::string& store, const AccessRequest& request,
                                 const std::optional<std::string>& no_master) {
  const auto key = KeyPair::load_or_make(master_key_path(store));
  if (!key) return key.error();
  const bool is_change =
      request.verb != AccessVerb::kListInvites && request.verb != AccessVerb::kListPeers;
  const auto lock = AccessLock::take(store, AccessLock::Wait::kNo);
  if (!lock && is_change) {
    return Error{lock.error().code,
                 no_master ? *no_master : lock.error().message + ", which is about to listen"};
  }
  auto book = read_access_book(store);
  if (!book) return book.error();
  const AccessBook before = *book;
  auto answer = manage(*book, *key, request, {}, wall_seconds());
  if (!answer || *book == before) return answer;
  if (auto written = write_access_book(store, *book); !written) return written.error();
  return answer;
}

}  // namespace

Result<AccessAnswer> change_access(const std::string& where, const AccessRequest& request) {
  std::error_code error;
  if (!std::filesystem::is_directory(where, error)) {
    const auto address = parse_master_address(where);
    if (!address) {
      return Error{ErrorCode::kInvalidArgument,
                   where.starts_with(kAddressScheme)
                       ? address.error().message
                       : where +
                             " is neither the folder of a store nor an administrator's address "
                             "gleaner://HOST:PORT/KEY.INVITE"};
    }
    if (auto fits = check_secrecy(*address, false); !fits) return fits.error();
    return ask_access(*address, request);
  }
  if (const auto store = open_run_to_read(where); !store) return store.error();
  const auto note = read_master_note(where);
  std::optional<std::string> no_master;
  if (note && note->port != MasterPort::kPage) {
    const auto address = owner_address(where, *note);
    if (!address) return address.error();
    auto answer = ask_access(*address, request);
    // Nobody there, or somebody else: what a master that was killed has left behind.
    const bool is_there = answer || (answer.error().code != ErrorCode::kIo &&
                                     answer.error().code != ErrorCode::kIdentity);
    if (is_there) return answer;
    no_master = answer.error().message;
  }
  return change_file(where, request, no_master);
}

}  // namespace gleaner
