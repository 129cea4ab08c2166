#include <catch2/catch.hpp>
#include <string>

#include "master/shell/persister.hpp"

namespace gleaner {
namespace {

// One letter a task: s stage, f fold, r read, e evaluation, t settle.
StorageTask task(char kind) {
  switch (kind) {
    case 's':
      return StageTask{};
    case 'f':
      return FoldTask{};
    case 'r':
      return ReadChunkTask{};
    case 't':
      return SettleTask{};
    default:
      return RecordEvaluationTask{};
  }
}

char kind_of(const StorageTask& task) {
  return "sfret"[task.index()];
}

// Does all of it, each fold in `steps` steps; a letter a step.
std::string run(const std::string& tasks, int steps) {
  StorageQueue queue;
  for (const char kind : tasks) queue.push(task(kind));
  std::string order;
  int left = steps;
  while (!queue.empty()) {
    const char kind = kind_of(*queue.next());
    CHECK(kind_of(*queue.next()) == kind);  // the same until its outcome is told
    order += kind;
    if (kind == 'f' && --left > 0) {
      queue.stepped();
    } else {
      if (kind == 'f') left = steps;
      queue.done();
    }
  }
  return order;
}

}  // namespace

TEST_CASE("storage queue: tasks are done in their order", "[master]") {
  CHECK(run("srefsr", 1) == "srefsr");
}

TEST_CASE("storage queue: between the steps of a fold goes what need not wait for it", "[master]") {
  CHECK(run("sfsr", 3) == "sfsrff");
  CHECK(run("sfsstr", 2) == "sfsstrf");
  // At most eight, so that the fold gets on as well.
  CHECK(run("f" + std::string(12, 'r'), 3) == "frrrrrrrrfrrrrf");
  // A task behind an evaluation's record or another fold keeps its place.
  CHECK(run("fest", 2) == "ffest");
  CHECK(run("fsfr", 2) == "fsffrf");
}

TEST_CASE("storage queue: what comes during a step finds its place", "[master]") {
  StorageQueue queue;
  queue.push(FoldTask{});
  CHECK(kind_of(*queue.next()) == 'f');
  for (int i = 0; i < 1000; ++i) queue.push(ReadChunkTask{});
  CHECK(kind_of(*queue.next()) == 'f');
  queue.stepped();
  CHECK(kind_of(*queue.next()) == 'r');
}

}  // namespace gleaner
