#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "common/settings/settings_value.hpp"
#include "common/time.hpp"
#include "master/door/access_book.hpp"
#include "master/door/access_file.hpp"
#include "master/door/administration.hpp"
#include "storage/engine/store_folder.hpp"
#include "tools/admit/master_query.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

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

// Changes rights in a running master, or in the store of a master that does not run. `where` is
// the folder of a store, or an administrator's address gleaner://HOST:PORT/KEY.INVITE.
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
  if (note) {
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

struct AccessFlags {
  std::string where;
  AccessRequest request;
  std::string role = "volunteer";
  std::string expires;
  bool json = false;
};

using Flags = std::shared_ptr<AccessFlags>;

// The subject of a document, without the secret of an address.
std::string subject(const AccessFlags& flags) {
  const auto address = parse_master_address(flags.where);
  return flags.where.starts_with(kAddressScheme) && address ? to_text(address->where) : flags.where;
}

const char* program_for(Role role) {
  switch (role) {
    case Role::kObserver:
      return "gleaner status";
    case Role::kVolunteer:
      return "gleaner-volunteer";
    case Role::kAdmin:
      return "gleaner peers";
  }
  return "";
}

Report invites_report(const AccessAnswer& answer) {
  Report report;
  ReportTable& table = report.table("invites", {{"id", "invite", true},
                                                {"role", "role", true},
                                                {"is_trusted", "trusted", true},
                                                {"is_reusable", "reusable", true},
                                                {"state", "state", true},
                                                {"created_wall_seconds", "made (UTC)"},
                                                {"expires_wall_seconds", "expires (UTC)"},
                                                {"label", "label", true},
                                                {"address", "address", true}});
  const auto yes = [](bool is) { return Cell{is, is ? "yes" : "no"}; };
  for (const InviteEntry& i : answer.invites) {
    table.rows.push_back(
        {cell_text(i.id), cell_text(role_name(i.role)), yes(i.is_trusted), yes(i.is_reusable),
         cell_text(i.state), cell_time(static_cast<std::int64_t>(i.created_wall)),
         i.expires_wall == 0 ? Cell{nullptr, "never"}
                             : cell_time(static_cast<std::int64_t>(i.expires_wall)),
         cell_text(i.label), cell_text(i.address)});
  }
  return report;
}

Report peers_report(const AccessAnswer& answer) {
  Report report;
  ReportTable& table = report.table("peers", {{"id", "peer", true},
                                              {"name", "name", true},
                                              {"address", "address", true},
                                              {"is_here", "here", true},
                                              {"is_trusted", "trusted", true},
                                              {"is_banned", "banned", true},
                                              {"invite", "invite", true},
                                              {"reason", "reason", true}});
  const auto yes = [](bool is) { return Cell{is, is ? "yes" : "no"}; };
  for (const PeerEntry& p : answer.peers) {
    table.rows.push_back({cell_text(p.id), cell_text(p.name), cell_text(p.peer), yes(p.is_here),
                          yes(p.is_trusted), yes(p.is_banned), cell_text(p.invite),
                          cell_text(p.reason)});
  }
  return report;
}

Result<void> prepare(AccessFlags& flags) {
  // "ban run1 atlas" is understood as "ban atlas run1".
  if (is_place(flags.request.subject) && !is_place(flags.where)) {
    std::swap(flags.request.subject, flags.where);
  }
  if (flags.where.empty()) {
    const char* master = std::getenv("GLEANER_MASTER");  // NOLINT(concurrency-mt-unsafe)
    if (master == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   "say where: the folder of a store, or an administrator's address"};
    }
    flags.where = master;
  }
  flags.request.role = *parse_role(flags.role);
  if (flags.expires.empty()) return {};
  const auto seconds = parse_duration_seconds(flags.expires);
  if (!seconds) return seconds.error();
  flags.request.expires_s = *seconds;
  return {};
}

Result<void> run(AccessFlags& flags, const char* verb) {
  if (auto ready = prepare(flags); !ready) return ready;
  const auto answer = change_access(flags.where, flags.request);
  if (!answer) return answer.error();
  if (flags.request.verb == AccessVerb::kListInvites) {
    return print_report(invites_report(*answer), report_form(flags.json), verb, subject(flags));
  }
  if (flags.request.verb == AccessVerb::kListPeers) {
    return print_report(peers_report(*answer), report_form(flags.json), verb, subject(flags));
  }
  std::string text = answer->sentence + "\n";
  Json body = Json::object();
  body["done"] = answer->sentence;
  for (const InviteEntry& invite : answer->invites) {
    text += fmt::format("  {} {}\n", program_for(invite.role), invite.address);
    body["invite"] = invite.id;
    body["address"] = invite.address;
  }
  return print_done(flags.json, verb, subject(flags), body, text);
}

constexpr const char* kExitStatus =
    "WHERE is the folder of a store, or an administrator's address; otherwise GLEANER_MASTER. A "
    "running master\nacts at once; else the store keeps it for the next one.\n\n"
    "Exit status: 0 done; 1 failure of the system, 2 usage, 4 no usable store, 5 no master "
    "answers, "
    "or it refuses.";

// A verb of `app` that asks for `what`.
CLI::App& add_verb(CLI::App& app, const char* name, const char* doc, AccessVerb what,
                   const char* document, const Flags& flags, int& exit_status) {
  CLI::App& verb = *app.add_subcommand(name, doc);
  flags->request.verb = what;
  verb.callback([flags, document, &exit_status] {
    exit_status = exit_status_of_asking(run(*flags, document));
  });
  return verb;
}

void add_where(CLI::App& verb, const Flags& flags, const char* examples) {
  verb.add_option("where", flags->where, "the store's folder, or an administrator's address");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(std::string(examples) + "\n" + kExitStatus);
}

void add_invite_commands(CLI::App& app, int& exit_status) {
  CLI::App& invite = *app.add_subcommand("invite", "make, list and revoke invites to a run");
  invite.footer(
      "Examples:\n"
      "  gleaner invite create run1 --trusted --expires 7d\n"
      "  gleaner invite list run1");
  invite.require_subcommand(1);

  auto made = std::make_shared<AccessFlags>();
  CLI::App& create = add_verb(invite, "create", "make an invite and print what to paste",
                              AccessVerb::kCreateInvite, "invite create", made, exit_status);
  create.add_option("--role", made->role, "what its holder may do (volunteer unless given)")
      ->check(CLI::IsMember({"observer", "volunteer", "admin"}));
  create.add_flag("--trusted", made->request.is_trusted,
                  "its volunteers are trusted; otherwise they are strangers");
  create.add_flag("--reusable", made->request.is_reusable,
                  "any number of keys may come by it; otherwise the first one alone");
  create.add_option("--expires", made->expires, "nobody is here by it after this time, such as 7d");
  create.add_option("--label", made->request.label, "a note for the list");
  add_where(create, made,
            "Examples:\n"
            "  gleaner invite create run1\n"
            "  gleaner invite create run1 --role observer --reusable --expires 30d\n");

  auto listed = std::make_shared<AccessFlags>();
  CLI::App& list =
      add_verb(invite, "list", "the invites, with what to paste for those that are open",
               AccessVerb::kListInvites, "invite list", listed, exit_status);
  add_where(list, listed,
            "Examples:\n  gleaner invite list run1\n  gleaner invite list run1 --json\n");

  auto revoked = std::make_shared<AccessFlags>();
  CLI::App& revoke = add_verb(invite, "revoke", "end an invite, and the sessions of who came by it",
                              AccessVerb::kRevokeInvite, "invite revoke", revoked, exit_status);
  revoke.add_option("invite", revoked->request.subject, "as `gleaner invite list` names it")
      ->required();
  add_where(revoke, revoked,
            "Examples:\n  gleaner invite revoke mfzwizlt run1\n  gleaner invite revoke mfzwizlt "
            "run1 --json\n");
}

struct PeerVerb {
  const char* name;
  const char* doc;
  AccessVerb verb;
  const char* examples;
};

constexpr PeerVerb kPeerVerbs[] = {
    {"approve", "trust a stranger from now on", AccessVerb::kApprove,
     "Examples:\n  gleaner approve atlas run1\n  gleaner approve mfzwizltoq run1\n"},
    {"ban", "send a key away for good, whatever its invite", AccessVerb::kBan,
     "Examples:\n  gleaner ban atlas run1\n  gleaner ban mfzwizltoq run1 --reason 'sent wrong "
     "sums'\n"},
    {"unban", "admit a key again", AccessVerb::kUnban,
     "Examples:\n  gleaner unban atlas run1\n  gleaner unban mfzwizltoq run1\n"},
};

}  // namespace

void add_access_commands(CLI::App& app, int& exit_status) {
  add_invite_commands(app, exit_status);
  auto listed = std::make_shared<AccessFlags>();
  CLI::App& peers = add_verb(app, "peers", "the keys that are here, approved or banned",
                             AccessVerb::kListPeers, "peers", listed, exit_status);
  add_where(peers, listed, "Examples:\n  gleaner peers run1\n  gleaner peers run1 --json\n");
  for (const PeerVerb& peer : kPeerVerbs) {
    auto flags = std::make_shared<AccessFlags>();
    CLI::App& verb = add_verb(app, peer.name, peer.doc, peer.verb, peer.name, flags, exit_status);
    verb.add_option("peer", flags->request.subject,
                    "its id, the begin of it, or its name, as `gleaner peers` lists them")
        ->required();
    if (peer.verb == AccessVerb::kBan) {
      verb.add_option("--reason", flags->request.label, "what the peer is told");
    }
    add_where(verb, flags, peer.examples);
  }
}

}  // namespace gleaner
