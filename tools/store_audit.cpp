#include "tools/store_audit.hpp"

#include "tools/record_walk.hpp"

namespace gleaner {

AuditedRun audit_store(Store& store, Findings& findings, const AuditHooks& hooks) {
  for (const Error& error : store.damaged_files()) findings.add("files", "", brief(error.message));
  AuditedRun run = audit_run(store, findings);
  audit_rows(store, run, findings, hooks);
  audit_staged(store, run, findings);
  audit_history(store, run, findings, hooks);
  audit_ledger(store, findings, hooks);
  return run;
}

}  // namespace gleaner
