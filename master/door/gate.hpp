// Decides the standing of each connection to a running master, and performs administrators'
// requests. A change is in the file before anybody learns of it. The file is small and changes
// seldom, so that the I/O thread waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/access/key_pair.hpp"
#include "common/access/standing.hpp"
#include "common/rates.hpp"
#include "common/result.hpp"
#include "master/door/access_book.hpp"
#include "master/door/access_file.hpp"
#include "master/door/administration.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The text by which a volunteer joins.
struct JoinLine {
  std::string address;      // empty: no invite is open to all
  bool is_trusted = false;  // whether work by this invite goes unaudited
  std::string before;       // HOST:PORT of earlier lines, if that differed; empty: it did not
};

class Gate {
 public:
  // The refusal that ends a present session, if any.
  using Verdict = std::function<std::optional<Refusal>(const Standing&)>;

  struct Observer {
    // Applies a verdict, which is valid during the call, to all present sessions. May be empty.
    std::function<void(const Verdict&)> on_change;
    // An administrator bans the key of a volunteer of this name. May be empty.
    std::function<void(const KeyId&, const std::string& name)> on_ban;
  };

  // Opens the gate of a master that encrypts. Makes what is missing in the folder `store`: a key, a
  // book, and for a new book a reusable invite for trusted volunteers.
  static Result<std::unique_ptr<Gate>> open(const std::string& store, Observer observer);
  // Opens the gate of a master that does not encrypt: everybody is a trusted volunteer or an
  // observer.
  static std::unique_ptr<Gate> open_to_all();

  // Null if nothing is encrypted.
  [[nodiscard]] const KeyPair* key() const { return key_ ? &*key_ : nullptr; }

  // The master listens at `where`, HOST:PORT, which addresses name from now on. Returns the line of
  // the oldest open invite for everybody, preferring trusted invites.
  Result<JoinLine> listening_at(const std::string& where);

  // Decides on the first message of a connection: its standing, or the answer after which it ends.
  // `now` is in seconds since 1970, for invites; `at` is the same moment on a clock that nobody
  // sets.
  std::variant<Standing, Message> admit(const std::optional<KeyId>& key, const std::string& peer,
                                        const Message& first, std::int64_t now, Instant at);
  // Decides on a volunteer with this key behind an admitted relay: it has the relay's standing, and
  // its identity is identity_behind() the relay.
  std::variant<Standing, Message> admit_behind(const Standing& relay, const KeyId& key,
                                               std::int64_t now, Instant at);
  // Bans a key whose answers were false, also after restarts, and counts the conviction against its
  // invite. Returns whether this suspends the invite.
  Result<bool> convict(const KeyId& key, InviteId invite, const std::string& name,
                       const std::string& reason);
  // The copy by which the page decides; a new one after each change.
  [[nodiscard]] std::shared_ptr<const PageAccess> page_access();
  // Banned keys, each with its name and the reason.
  [[nodiscard]] std::vector<std::pair<KeyId, PeerRule>> banned() const;
  // Time has passed: invites may have expired.
  void tick(std::int64_t now);
  // An admitted connection has ended.
  void gone(const Standing& standing);

 private:
  Gate() = default;
  std::variant<Standing, Message> manage_for(const AccessRequest& request, std::int64_t now);
  void remember(const Standing& standing, const std::string& name, const std::string& peer);
  Result<void> store_changes(AccessBook changed);
  // Applies the present rules to all present sessions.
  void judge(std::int64_t now);

  std::string store_;
  std::unique_ptr<AccessLock> lock_;
  std::optional<KeyPair> key_;
  AccessBook book_;
  std::shared_ptr<const PageAccess> page_access_;  // null: out of date
  Observer observer_;
  // Limits how often strangers may join, in all and by one invite.
  RateBudget joins_{{1024, 16}, {64, 2}};
  std::map<KeyId, SeenPeer> seen_;       // lately
  std::map<KeyId, std::uint32_t> here_;  // connections by key
  std::int64_t last_tick_ = 0;
};

}  // namespace gleaner
