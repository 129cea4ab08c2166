// The text that a lender reads before it joins.
#include "volunteer/about.hpp"

#include <catch2/catch.hpp>

namespace gleaner::volunteer {
namespace {

using Catch::Matchers::Contains;

RunStatus birds() {
  RunStatus status;
  status.name = "birds";
  status.purpose = "Names birds.";
  status.labels = 13'330;
  status.features = 203'882;
  status.shard_bytes = 10 << 20;
  status.holder_bytes = 5 << 20;
  status.shards.resize(6);
  status.input_shards = 2;
  return status;
}

std::string told(const RunStatus& status) {
  return about_text(status, "h:7070", {"atlas", 4, std::uint64_t{1} << 30});
}

}  // namespace

TEST_CASE("about: memory is that of one shard and of all, without the input shards", "[about]") {
  REQUIRE_THAT(told(birds()), Contains("15.0 MiB for one of its 4 shards, 45.0 MiB for all"));
  REQUIRE_THAT(told(birds()), Contains("13,330 labels from 203,882 features, without a hidden"));
}

TEST_CASE("about: traffic of a day is the average of those who have helped", "[about]") {
  RunStatus status = birds();
  status.served_us = 59'999'999;
  REQUIRE_THAT(told(status), Contains("none is measured"));
  status.served_us = 2ull * 24 * 3600 * 1'000'000;
  status.served_bytes_down = 6 << 20;
  status.served_bytes_up = 2 << 20;
  REQUIRE_THAT(told(status), Contains("3.0 MiB received and 1.0 MiB sent in a day"));
}

TEST_CASE("about: an older master's silence is told, and peers' text is printable", "[about]") {
  RunStatus old;
  old.run = "d03a";
  old.build = "0.0.9";
  REQUIRE_THAT(told(old), Contains("the master, version 0.0.9, does not say"));
  REQUIRE_THAT(told(old), Contains("The run d03a of the master at h:7070."));
  old.purpose = "\x1b[2J";
  REQUIRE_THAT(told(old), !Contains("\x1b"));
}

}  // namespace gleaner::volunteer
