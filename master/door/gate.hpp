// Decides for a running master as whom each connection takes part, and does what administrators ask
// for. Changes are in its file before anybody hears of them; that file is small and changes seldom,
// so the I/O thread waits for it.
#pragma once

#include <deque>
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

// The text that a volunteer joins by.
struct JoinLine {
  std::string address;      // empty: no invite is open to all
  bool is_trusted = false;  // the work of whoever comes by it is not audited
};

class Gate {
 public:
  // Says which refusal ends the session of somebody who is here, if any.
  using Verdict = std::function<std::optional<Refusal>(const Standing&)>;

  struct Observer {
    // A verdict that is to be applied to all who are here; it lasts for the call. May be empty.
    std::function<void(const Verdict&)> on_change;
    // An administrator keeps the key, of a volunteer of this name, out. May be empty.
    std::function<void(const KeyId&, const std::string& name)> on_ban;
  };

  // Opens the gate of a master that encrypts. Makes what is missing in the folder `store`: a key, a
  // book, and for a new book one reusable invite for trusted volunteers.
  static Result<std::unique_ptr<Gate>> open(const std::string& store, Observer observer);
  // Opens the gate of a master that does not encrypt: whoever comes is a trusted volunteer, or an
  // observer.
  static std::unique_ptr<Gate> open_to_all();

  // Null where nothing is encrypted.
  [[nodiscard]] const KeyPair* key() const { return key_ ? &*key_ : nullptr; }

  // The master listens at `where`, HOST:PORT: addresses name it from now on. Returns the line with
  // the oldest open invite that anybody may use, a trusted one if there is one.
  Result<JoinLine> listening_at(const std::string& where);

  // The first message of a connection: as whom it takes part, or the answer after which it ends.
  // `now` is in seconds since 1970, as invites expire; `at` is the same moment on a clock that
  // nobody sets.
  std::variant<Standing, Message> admit(const std::optional<KeyId>& key, const std::string& peer,
                                        const Message& first, std::int64_t now, Instant at);
  // A volunteer with this key has come to a relay that was admitted: it stands as the relay does,
  // as identity_behind() it.
  std::variant<Standing, Message> admit_behind(const Standing& relay, const KeyId& key,
                                               std::int64_t now, Instant at);
  // Keeps a key out from now on and after every start, since its answers were false, and counts
  // that against the invite by which it came. Whether that invite is suspended now, and was not
  // before.
  Result<bool> convict(const KeyId& key, InviteId invite, const std::string& name,
                       const std::string& reason);
  // The copy that the page decides by; another one after each change.
  [[nodiscard]] std::shared_ptr<const PageAccess> page_access();
  // Keys that are kept out, with the name that each had and why.
  [[nodiscard]] std::vector<std::pair<KeyId, PeerRule>> banned() const;
  // Time has passed: invites may have expired.
  void tick(std::int64_t now);
  // Who was admitted has gone.
  void gone(const Standing& standing);

 private:
  Gate() = default;
  std::variant<Standing, Message> manage_for(const AccessRequest& request, std::int64_t now);
  void remember(const Standing& standing, const std::string& name, const std::string& peer);
  Result<void> store_changes(AccessBook changed);
  // Lets on_change judge who is here.
  void judge(std::int64_t now);

  std::string store_;
  std::unique_ptr<AccessLock> lock_;
  std::optional<KeyPair> key_;
  AccessBook book_;
  std::shared_ptr<const PageAccess> page_access_;  // null: of an earlier book
  Observer observer_;
  // How often volunteers that nobody vouches for may join, in all and by one invite.
  RateBudget joins_{{1024, 16}, {64, 2}};
  std::map<KeyId, SeenPeer> seen_;       // of late
  std::map<KeyId, std::uint32_t> here_;  // connections of each
  std::int64_t last_tick_ = 0;
};

}  // namespace gleaner
