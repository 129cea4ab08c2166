// The kinds of readers of the page, and the parts of the run that observers see. Belongs to the
// server's thread.
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

// Removes names, addresses and details of single volunteers from `status`. Figures stay.
void keep_aggregates(RunStatus& status);

// Each kind sees everything that the kinds before it see, and more.
enum class Reader : std::uint8_t {
  kNobody,    // elsewhere, without a valid invite
  kObserver,  // elsewhere: figures, without names, addresses and folders
  kHere,      // a user of this machine
  kAdmin,     // everything
};

class Readers {
 public:
  // `key` is the page's, for readers on this machine.
  explicit Readers(const InviteSecret& key) : key_(key) {}

  // From now on invites also open the page, by the rules of `access`.
  void admit_by(std::shared_ptr<const PageAccess> access) { access_ = std::move(access); }

  // The kind of a reader that shows `key`: the page's key, or an invite.
  [[nodiscard]] Reader who(bool is_local, std::string_view key) const;
  // Tells Reader::kNobody what it needs.
  [[nodiscard]] HttpReply refusal(std::string_view key) const;

 private:
  InviteSecret key_;
  std::shared_ptr<const PageAccess> access_;
};

// Reduce these to what observers see. The last one tells whether observers get the event.
PageView for_observers(PageView view);
RunFacts for_observers(RunFacts facts);
bool is_for_observers(const RunEvent& event);

}  // namespace gleaner
