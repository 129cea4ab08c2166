// The power fails at every write to the store in turn.
#include <catch2/catch.hpp>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

using FailedWrite = MemoryStore::FailedWrite;

class ShortRun {
 public:
  ShortRun() {
    options_.model = world_.model();
    options_.expected = &world_.calm(options_.model);
    options_.restart_after_most = Millis(100);
    writes_ = world_.run(options_).writes;
  }

  [[nodiscard]] std::uint64_t writes() const { return writes_; }

  // With the power failing at these writes.
  ClusterResult with(std::vector<CrashPoint> crashes) {
    ClusterOptions options = options_;
    options.crash_points = std::move(crashes);
    ClusterResult result = world_.run(options);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
    REQUIRE(result.reached.digests == options_.expected->digests);
    return result;
  }

 private:
  SmallWorld world_;
  ClusterOptions options_;
  std::uint64_t writes_ = 0;
};

}  // namespace

TEST_CASE("crashes: the power may fail before or after any write of a run", "[sim]") {
  ShortRun run;
  REQUIRE(run.writes() > 50);
  for (std::uint64_t write = 0; write < run.writes(); ++write) {
    for (const FailedWrite outcome : {FailedWrite::kDropped, FailedWrite::kApplied}) {
      INFO("write " << write << (outcome == FailedWrite::kApplied ? ", after" : ", before"));
      REQUIRE(run.with({{write, outcome}}).happened["branch.power_failed_at_a_write"] == 1);
    }
  }
}

TEST_CASE("crashes: it may fail again at any write of the recovery", "[sim]") {
  ShortRun run;
  // A start and the round that was open take no more writes than this.
  constexpr std::uint64_t kRecoveryWrites = 16;
  for (std::uint64_t write = 0; write < run.writes(); write += 7) {
    for (std::uint64_t again = 0; again < kRecoveryWrites; ++again) {
      const FailedWrite outcome = again % 2 == 0 ? FailedWrite::kDropped : FailedWrite::kApplied;
      INFO("write " << write << ", then write " << again);
      run.with({{write, FailedWrite::kDropped}, {again, outcome}});
    }
  }
}

TEST_CASE("crashes: it may fail three times in a row", "[sim]") {
  ShortRun run;
  for (std::uint64_t write = 0; write < run.writes(); write += 11) {
    INFO("write " << write);
    run.with(
        {{write, FailedWrite::kApplied}, {0, FailedWrite::kDropped}, {1, FailedWrite::kApplied}});
  }
}

}  // namespace gleaner::sim
