// The views of the accounts of volunteers, which the store writes with every checkpoint.

#include <algorithm>
#include <string>

#include "common/access/standing.hpp"
#include "storage/run_store.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

// By examples trained, most first.
Result<std::vector<AccountRecord>> sorted_accounts(RunStore& run) {
  auto accounts = run.accounts();
  if (accounts) std::ranges::stable_sort(*accounts, std::greater<>(), &AccountRecord::examples);
  return accounts;
}

Cell identity_cell(const AccountRecord& account) {
  const std::string all = to_text(account.identity);
  // Volunteers in the master's process are numbered.
  return {all, account.identity.high == 0 ? all.substr(all.size() - 8) : all.substr(0, 8)};
}

constexpr std::size_t kNameWidth = 24;

Cell name_cell(const AccountRecord& account, TextStyle style) {
  return cell_fit(account.name, kNameWidth, style);
}

}  // namespace

Result<Report> inspect_volunteers(RunStore& run, const InspectRequest& request) {
  const auto accounts = sorted_accounts(run);
  if (!accounts) return accounts.error();
  double all = 0;
  for (const AccountRecord& account : *accounts) all += static_cast<double>(account.examples);
  Report report;
  auto& table = report.table("volunteers", {{"identity", "identity", true},
                                            {"name", "name", true},
                                            {"examples", "examples x shards"},
                                            {"share", "share"},
                                            {"bytes_down", "down"},
                                            {"bytes_up", "up"},
                                            {"faults", "faults"},
                                            {"last_seen_wall_seconds", "last seen (UTC)"}});
  for (const AccountRecord& account : *accounts) {
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
  for (const AccountRecord& a : *accounts) {
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
  const auto add_row = [&](const AccountRecord& account, const char* direction, const Traffic& t) {
    both += t;
    table.rows.push_back({identity_cell(account), name_cell(account, request.style),
                          cell_text(direction), cell_bytes(t.all), cell_bytes(t.units),
                          cell_bytes(t.evaluation), cell_bytes(t.commits), cell_bytes(t.shards),
                          cell_bytes(t.points), cell_bytes(t.rest())});
  };
  for (const AccountRecord& account : *accounts) {
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
