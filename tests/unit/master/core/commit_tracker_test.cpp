#include "master/core/batches/commit_tracker.hpp"

#include <catch2/catch.hpp>

namespace gleaner {

TEST_CASE("commit tracker: a commit is complete when its last part is durable", "[commit]") {
  CommitTracker commits(1);
  commits.expect(0, ShardId{0}, 3);
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 2));
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 0));
  REQUIRE(commits.staged(0, ShardId{0}, 1));
}

TEST_CASE("commit tracker: a part that comes twice counts once", "[commit]") {
  CommitTracker commits(1);
  commits.expect(0, ShardId{0}, 2);
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 0));
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 0));
  REQUIRE(commits.staged(0, ShardId{0}, 1));
  // A later holder's replay commits the same again: nothing completes a second time.
  commits.expect(0, ShardId{0}, 2);
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 0));
  REQUIRE_FALSE(commits.staged(0, ShardId{0}, 1));
  REQUIRE(commits.is_whole(0));
}

TEST_CASE("commit tracker: a round is whole when every shard has committed it", "[commit]") {
  CommitTracker commits(2);
  REQUIRE_FALSE(commits.is_whole(0));
  for (const RoundIndex round : {0u, 1u}) commits.expect(round, ShardId{0}, 1);
  REQUIRE(commits.staged(0, ShardId{0}, 0));
  REQUIRE_FALSE(commits.is_whole(0));
  commits.expect(0, ShardId{1}, 1);
  REQUIRE_FALSE(commits.is_whole(0));  // on its way, not durable
  REQUIRE(commits.staged(0, ShardId{1}, 0));
  REQUIRE(commits.is_whole(0));
  REQUIRE_FALSE(commits.is_whole(1));
}

TEST_CASE("commit tracker: a forgotten round is as if it had never been", "[commit]") {
  CommitTracker commits(1);
  for (const RoundIndex round : {0u, 1u}) {
    commits.expect(round, ShardId{0}, 1);
    commits.staged(round, ShardId{0}, 0);
  }
  commits.forget(0);
  REQUIRE_FALSE(commits.is_whole(0));
  REQUIRE(commits.is_whole(1));
}

}  // namespace gleaner
