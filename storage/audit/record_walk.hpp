// Records of a table, whatever is wrong with others. One thread.
#pragma once

#include <functional>
#include <string>

#include "common/bytes.hpp"
#include "storage/audit/findings.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// Calls `visit(key, record, payload)` for each record with begin <= key < end (end empty: to the
// table's end) whose envelope holds; the others become findings. Returns false, with a finding,
// when the store could not read on: the rest of the range is unknown.
bool walk_records(Store& store, Table table, ByteView begin, ByteView end, Findings& findings,
                  const std::function<void(ByteView, ByteView, ByteView)>& visit);

// The heart of a storage error, without the place and the advice around it.
std::string brief(const std::string& message);

}  // namespace gleaner
