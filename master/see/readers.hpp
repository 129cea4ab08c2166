// Who reads the page, and what is left of the run for those who may see figures alone. Belongs to
// the server's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/access/standing.hpp"
#include "common/http/http_server.hpp"
#include "master/door/access_book.hpp"
#include "master/see/page_view.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Reduces a status to what observers and volunteers may see.

// Takes names, addresses and what tells of single volunteers out of `status`: figures stay.
void keep_aggregates(RunStatus& status);

// Each sees what those before it see, and more.
enum class Reader : std::uint8_t {
  kNobody,    // asks from elsewhere without an invite that opens
  kObserver,  // asks from elsewhere: figures, neither names nor addresses nor folders
  kHere,      // may use this machine
  kAdmin,     // everything
};

class Readers {
 public:
  // `key` is the page's, for readers on this machine.
  explicit Readers(const InviteSecret& key) : key_(key) {}

  // From then on invites open the page to others too, as long as `access` says.
  void admit_by(std::shared_ptr<const PageAccess> access) { access_ = std::move(access); }

  // `key` is what is shown: the page's key, or an invite.
  [[nodiscard]] Reader who(bool is_local, std::string_view key) const;
  // Says to Reader::kNobody what it takes.
  [[nodiscard]] HttpReply refusal(std::string_view key) const;

 private:
  InviteSecret key_;
  std::shared_ptr<const PageAccess> access_;
};

// Keep what observers see of these; the last one says whether they hear of an event at all.
PageView for_observers(PageView view);
RunFacts for_observers(RunFacts facts);
bool is_for_observers(const RunEvent& event);

}  // namespace gleaner
