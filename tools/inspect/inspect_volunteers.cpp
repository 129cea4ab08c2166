// The accounts of volunteers, as the store has them: written with every checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "common/access/key_id.hpp"
#include "tools/inspect/inspect_views.hpp"

namespace gleaner {
namespace {

// By examples trained, most first.
Result<std::vector<VolunteerAccount>> sorted_accounts(RunStore& run) {
  auto accounts = run.accounts();
  if (accounts) std::ranges::stable_sort(*accounts, std::greater<>(), &VolunteerAccount::examples);
  return accounts;
}

Cell identity_cell(const VolunteerAccount& account) {
  const std::string all = to_text(KeyId{account.identity_high, account.identity_low});
  // Volunteers in the master's process are numbered.
  return {all, account.identity_high == 0 ? all.substr(all.size() - 8) : all.substr(0, 8)};
}

constexpr std::size_t kNameWidth = 24;

Cell name_cell(const VolunteerAccount& account, TextStyle style) {
  Cell cell = cell_text(account.name);
  cell.text = fit(cell.text, kNameWidth, style);
  return cell;
}

}  // namespace

Result<Report> inspect_volunteers(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  double all = 0;
  for (const VolunteerAccount& account : *accounts) all += static_cast<double>(account.examples);
  Report report;
  auto& table = report.table("volunteers", {{"identity", "identity", true},
                                            {"name", "name", true},
                                            {"examples", "examples x shards"},
                                            {"share", "share"},
                                            {"bytes_down", "down"},
                                            {"bytes_up", "up"},
                                            {"faults", "faults"},
                                            {"last_seen_wall_seconds", "last seen (UTC)"}});
  for (const VolunteerAccount& account : *accounts) {
    table.rows.push_back({identity_cell(account), name_cell(account, request.style),
                          cell_count(account.examples),
                          cell_share(static_cast<double>(account.examples) / all, 1),
                          cell_bytes(account.down.all), cell_bytes(account.up.all),
                          cell_count(account.faults), cell_time(account.last_seen_wall_seconds)});
  }
  return report;
}

Result<Report> inspect_units(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  Report report;
  auto& table = report.table("units", {{"identity", "identity", true},
                                       {"name", "name", true},
                                       {"issued", "issued"},
                                       {"answered", "answered"},
                                       {"refused", "refused"},
                                       {"expired", "expired"},
                                       {"out", "out"},
                                       {"commits", "commits"}});
  for (const VolunteerAccount& a : *accounts) {
    const std::uint64_t ended = a.units + a.units_refused + a.units_expired;
    table.rows.push_back({identity_cell(a), name_cell(a, request.style), cell_count(a.units_issued),
                          cell_count(a.units), cell_count(a.units_refused),
                          cell_count(a.units_expired),
                          ended > a.units_issued ? cell_none() : cell_count(a.units_issued - ended),
                          cell_count(a.commits)});
  }
  return report;
}

Result<Report> inspect_traffic(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  Report report;
  auto& table = report.table("traffic", {{"identity", "identity", true},
                                         {"name", "name", true},
                                         {"direction", "", true},
                                         {"bytes", "all"},
                                         {"units", "units"},
                                         {"evaluation", "evaluation"},
                                         {"commits", "commits"},
                                         {"shards", "shards"},
                                         {"points", "examples"},
                                         {"rest", "rest"}});
  Traffic both;
  const auto add_row = [&](const VolunteerAccount& account, const char* direction,
                           const Traffic& t) {
    both += t;
    table.rows.push_back({identity_cell(account), name_cell(account, request.style),
                          cell_text(direction), cell_bytes(t.all), cell_bytes(t.units),
                          cell_bytes(t.evaluation), cell_bytes(t.commits), cell_bytes(t.shards),
                          cell_bytes(t.points), cell_bytes(t.rest())});
  };
  for (const VolunteerAccount& account : *accounts) {
    add_row(account, "down", account.down);
    add_row(account, "up", account.up);
  }
  if (both.all > 0) {
    report.fact("commit_share", "commits' share of all",
                cell_share(static_cast<double>(both.commits) / static_cast<double>(both.all), 1));
  }
  return report;
}

}  // namespace gleaner
