// The self-test alone: its digests on standard output, and 0 when they are right.
#include "common/train/self_test/self_test.hpp"

#include <cstdio>

int main() {
  const gleaner::SelfTestReport report = gleaner::self_test_report();
  std::fputs(report.text.c_str(), stdout);
  return report.is_sound ? 0 : 1;
}
