#include "storage/audit/record_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "storage/keys.hpp"
#include "storage/record.hpp"

namespace gleaner {
namespace {

// Why the record cannot be used, without the advice that an error gives.
std::string why(const Error& error) {
  const std::size_t from = error.message.find("is damaged: ");
  const std::size_t to = error.message.find("; restore");
  if (from == std::string::npos || to == std::string::npos) return error.message;
  const std::size_t begin = from + std::string_view("is damaged: ").size();
  return error.message.substr(begin, to - begin);
}

}  // namespace

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

}  // namespace gleaner
