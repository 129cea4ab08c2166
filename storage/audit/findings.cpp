#include "storage/audit/findings.hpp"

#include <utility>

#include "common/console/terminal.hpp"
#include "storage/keys.hpp"

namespace gleaner {

void Findings::add(std::string check, std::string where, std::string what) {
  ++count_;
  if (kept_.size() == kKeptMax) return;
  kept_.push_back({std::move(check), printable(where), printable(what)});
}

void Findings::add(Table table, ByteView key, std::string what) {
  add(table_name(table), describe_key(table, key), std::move(what));
}

}  // namespace gleaner
