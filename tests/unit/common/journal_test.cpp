#include <catch2/catch.hpp>

#include "common/console/output.hpp"
#include "common/os/process.hpp"

namespace gleaner {

using Fields = std::vector<std::string>;

TEST_CASE("journal: the members of an event become fields", "[journal]") {
  REQUIRE(journal_fields("gleaner-master", Priority::kNotice, "epoch 1: P@1 0.5\nwell",
                         R"({"event":"evaluated","p_at_1":0.5,"all":true,"seconds":null,)"
                         R"("name":"a \"b\"\n","shards":[1,2]})") ==
          Fields{"MESSAGE=epoch 1: P@1 0.5\nwell", "PRIORITY=5", "SYSLOG_IDENTIFIER=gleaner-master",
                 "GLEANER_EVENT=evaluated", "GLEANER_P_AT_1=0.5", "GLEANER_ALL=true",
                 "GLEANER_NAME=a \"b\"\n", "GLEANER_SHARDS=[1,2]"});
}

TEST_CASE("journal: an entry needs no event", "[journal]") {
  REQUIRE(journal_fields("p", priority_of(LogLevel::kError), "bad", "") ==
          Fields{"MESSAGE=bad", "PRIORITY=3", "SYSLOG_IDENTIFIER=p"});
}

TEST_CASE("journal: levels are those of syslog", "[journal]") {
  REQUIRE(priority_of(LogLevel::kWarning) == Priority::kWarning);
  REQUIRE(priority_of(LogLevel::kInfo) == Priority::kInfo);
  REQUIRE(priority_of(LogLevel::kDebug) == Priority::kDebug);
}

TEST_CASE("journal: a stream leads there when JOURNAL_STREAM has both its numbers", "[journal]") {
  REQUIRE(os::names_file("8:4711", 8, 4711));
  REQUIRE_FALSE(os::names_file("8:4711", 9, 4711));
  REQUIRE_FALSE(os::names_file("8:4711", 8, 471));
  REQUIRE_FALSE(os::names_file("", 0, 0));
}

}  // namespace gleaner
