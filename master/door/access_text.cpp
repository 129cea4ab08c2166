// An access book as text: a line for each entry, fields between tabs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/text.hpp"
#include "master/door/access_book.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kFirstLine = "gleaner access 2";
// The first line of an older version, whose invites have no convictions.
constexpr std::string_view kFirstLineBefore = "gleaner access 1";

// Cuts a line at tabs into this number of parts. The last part may be empty.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

bool is_text(std::string_view text) {
  return text.size() <= kNameBytesMax && is_printable(text);
}

bool read_invite(const std::vector<std::string_view>& fields, bool has_convictions,
                 AccessBook& book) {
  if (fields.size() != (has_convictions ? 10 : 9)) return false;
  const auto convictions =
      has_convictions ? parse_number(fields[9]) : std::optional<std::int64_t>(0);
  if (!convictions || *convictions > std::int64_t{kPeersMax}) return false;
  const auto id = parse_invite_id(fields[1]);
  const auto role = parse_role(fields[2]);
  const auto created = parse_number(fields[6]);
  const auto expires = parse_number(fields[7]);
  if (!id || raw(*id) == 0 || !role || !created || !expires || !is_text(fields[8])) return false;
  Invite invite;
  invite.role = *role;
  invite.is_trusted = fields[3] == "trusted";
  if (!invite.is_trusted && fields[3] != "stranger") return false;
  invite.is_reusable = fields[4] == "reusable";
  if (!invite.is_reusable && fields[4] != "unused") {
    invite.used_by = parse_key_id(fields[4]);
    if (!invite.used_by) return false;
  }
  invite.is_revoked = fields[5] == "revoked";
  if (!invite.is_revoked && fields[5] != "open") return false;
  invite.created = *created;
  invite.expires = *expires;
  invite.label = fields[8];
  invite.convictions = static_cast<std::uint32_t>(*convictions);
  return book.invites.size() < kInvitesMax && book.invites.emplace(*id, std::move(invite)).second;
}

bool read_peer(const std::vector<std::string_view>& fields, AccessBook& book) {
  if (fields.size() != 5) return false;
  const auto id = parse_key_id(fields[1]);
  if (!id || !is_text(fields[3]) || !is_text(fields[4])) return false;
  PeerRule rule;
  rule.is_banned = fields[2] == "banned" || fields[2] == "banned,approved";
  rule.is_approved = fields[2] == "approved" || fields[2] == "banned,approved";
  if (!rule.is_banned && !rule.is_approved) return false;
  rule.name = fields[3];
  rule.reason = fields[4];
  return book.peers.size() < kPeersMax && book.peers.emplace(*id, std::move(rule)).second;
}

}  // namespace

std::string print(const AccessBook& book) {
  std::string text = fmt::format("{}\nwhere\t{}\n", kFirstLine, book.where);
  for (const auto& [id, invite] : book.invites) {
    text += fmt::format("invite\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", to_text(id),
                        role_name(invite.role), invite.is_trusted ? "trusted" : "stranger",
                        invite.is_reusable ? "reusable"
                        : invite.used_by   ? to_text(*invite.used_by)
                                           : "unused",
                        invite.is_revoked ? "revoked" : "open", invite.created, invite.expires,
                        invite.label, invite.convictions);
  }
  for (const auto& [id, rule] : book.peers) {
    text += fmt::format("peer\t{}\t{}\t{}\t{}\n", to_text(id),
                        rule.is_banned && rule.is_approved ? "banned,approved"
                        : rule.is_banned                   ? "banned"
                                                           : "approved",
                        rule.name, rule.reason);
  }
  return text;
}

Result<AccessBook> parse_access_book(std::string_view text) {
  AccessBook book;
  bool has_convictions = true;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<std::string_view> fields = fields_of(line);
    bool is_good = false;
    if (number == 0) {
      has_convictions = line == kFirstLine;
      is_good = has_convictions || line == kFirstLineBefore;
    } else if (number == 1) {
      is_good = fields.size() == 2 && fields[0] == "where" && is_printable(fields[1]);
      if (is_good) book.where = fields[1];
    } else if (fields[0] == "invite") {
      is_good = read_invite(fields, has_convictions, book);
    } else if (fields[0] == "peer") {
      is_good = read_peer(fields, book);
    }
    ++number;
    if (!is_good) {
      return Error{ErrorCode::kCorrupt, fmt::format("line {} makes no sense", number)};
    }
  }
  if (number < 2) return Error{ErrorCode::kCorrupt, "it is cut short"};
  return book;
}

}  // namespace gleaner
