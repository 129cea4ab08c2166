#include "storage/audit/store_audit.hpp"

#include "storage/audit/record_walk.hpp"

namespace gleaner {

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

AuditedRun audit_store(Store& store, Findings& findings, const AuditHooks& hooks) {
  for (const Error& error : store.damaged_files()) add_file_finding(findings, error);
  AuditedRun run = audit_run(store, findings);
  audit_rows(store, run, findings, hooks);
  audit_staged(store, run, findings);
  audit_history(store, run, findings, hooks);
  audit_ledger(store, run, findings, hooks);
  return run;
}

}  // namespace gleaner
