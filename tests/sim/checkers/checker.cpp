#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {

std::vector<std::unique_ptr<Checker>> all_checkers(SimLog& log, const ClusterOptions& options) {
  std::vector<std::unique_ptr<Checker>> checkers;
  checkers.push_back(make_lease_checker(log, options));
  checkers.push_back(make_batch_checker(log, options));
  checkers.push_back(make_commit_checker(log));
  checkers.push_back(make_checkpoint_checker(log, options));
  checkers.push_back(make_account_checker(log, options));
  checkers.push_back(make_bounds_checker(log, options));
  checkers.push_back(make_coverage_marks(log));
  return checkers;
}

}  // namespace gleaner::sim
