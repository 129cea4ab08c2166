#include "storage/keep/store_check.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/console/terminal.hpp"
#include "storage/record.hpp"

namespace gleaner {
namespace {

// The reason why the record cannot be used, without the error's advice.
std::string why(const Error& error) {
  const std::size_t from = error.message.find("is damaged: ");
  const std::size_t to = error.message.find("; restore");
  if (from == std::string::npos || to == std::string::npos) return error.message;
  const std::size_t begin = from + std::string_view("is damaged: ").size();
  return error.message.substr(begin, to - begin);
}

}  // namespace

void Findings::add(std::string check, std::string where, std::string what) {
  ++count_;
  if (kept_.size() == kKeptMax) return;
  kept_.push_back({std::move(check), printable(where), printable(what)});
}

void Findings::add(Table table, ByteView key, std::string what) {
  add(table_name(table), describe_key(table, key), std::move(what));
}

std::string brief(const std::string& message) {
  const std::size_t open = message.find('(');
  const std::size_t from = open == std::string::npos ? 0 : open + 1;
  const std::size_t to = std::min(message.find(": stored = "), message.find("): "));
  return message.substr(from, to == std::string::npos ? to : to - from);
}

bool walk_records(Store& store, Table table, ByteView begin, ByteView end, Findings& findings,
                  const std::function<void(ByteView, ByteView, ByteView)>& visit) {
  const auto scanned = store.scan(table, begin, end, [&](ByteView key, ByteView record) {
    const Result<ByteView> payload = open_record(table, key, record);
    if (payload) {
      visit(key, record, *payload);
    } else {
      findings.add(table, key, why(payload.error()));
    }
    return true;
  });
  if (scanned) return true;
  const std::string where =
      begin.empty() ? "all of the table" : "from " + describe_key(table, begin) + " on";
  findings.add(table_name(table), where, "cannot be read: " + brief(scanned.error().message));
  return false;
}

void add_file_finding(Findings& findings, const Error& error) {
  // "the file NAME is damaged: REASON".
  const std::string what = brief(error.message);
  const std::size_t middle = what.find(" is damaged: ");
  if (middle == std::string::npos) {
    findings.add("files", "", what);
  } else {
    findings.add("files", what.substr(0, middle), what.substr(middle + 1));
  }
}

CheckedRun check_store(Store& store, Findings& findings, const CheckHooks& hooks) {
  for (const Error& error : store.damaged_files()) add_file_finding(findings, error);
  CheckedRun run = check_run_table(store, findings);
  check_stored_rows(store, run, findings, hooks);
  check_staged_commits(store, run, findings);
  check_history(store, run, findings, hooks);
  check_ledger(store, run, findings, hooks);
  return run;
}

}  // namespace gleaner
