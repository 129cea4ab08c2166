#include "common/float_state.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <thread>

#include "common/thread_pool.hpp"

namespace gleaner {
namespace {

// Half of the least normal float, which a processor that flushes subnormals makes 0.
float half_of_least_normal() {
  volatile float least = std::numeric_limits<float>::min();
  volatile float half = 0.5F;
  return least * half;
}

// The sound state but for subnormals, which are taken for 0 and made 0.
std::uint64_t flushing_state() {
#if defined(__x86_64__)
  return sound_float_state() | 0x8040;
#elif defined(__aarch64__)
  return sound_float_state() | 1U << 24;
#else
  return sound_float_state();
#endif
}

}  // namespace

#if defined(__x86_64__) || defined(__aarch64__)

TEST_CASE("float state: a thread that flushes subnormals is put right", "[float_state]") {
  std::thread([] {
    write_float_state(flushing_state());
    CHECK(half_of_least_normal() == 0.0F);
    set_float_state();
    CHECK(half_of_least_normal() > 0.0F);
    CHECK(read_float_state() == sound_float_state());
  }).join();
}

TEST_CASE("float state: a change is put right, and a second one is refused by name",
          "[float_state]") {
  std::thread([] {
    FloatWatch watch;
    CHECK(watch.check().ok());
    write_float_state(flushing_state());
    CHECK(watch.check().ok());
    CHECK(read_float_state() == sound_float_state());
    CHECK(watch.check().ok());
    write_float_state(flushing_state());
    const Result<void> refused = watch.check();
    CHECK(read_float_state() == sound_float_state());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kFault);
    CHECK_THAT(refused.error().message, Catch::Contains(float_state_difference(flushing_state())));
  }).join();
}

TEST_CASE("float state: workers are put right before each loop, whatever a loop did to them",
          "[float_state]") {
  for (const unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    const auto all_keep_subnormals = [&] {
      std::atomic<bool> all = true;
      pool.parallel_for(100, [&](std::size_t, unsigned) {
        if (half_of_least_normal() == 0.0F) all = false;
      });
      return all.load();
    };
    REQUIRE(all_keep_subnormals());
    pool.parallel_for(100, [](std::size_t, unsigned) { write_float_state(flushing_state()); });
    REQUIRE(all_keep_subnormals());
    set_float_state();
  }
}

#endif

#if defined(__x86_64__)
TEST_CASE("float state: the x87 control word and flags that report are told apart from MXCSR",
          "[float_state]") {
  const std::uint64_t single = sound_float_state() & ~(std::uint64_t{0x300} << 32);
  std::thread([single] {
    write_float_state(single);
    CHECK(read_float_state() == single);
    set_float_state();
    volatile float three = 3.0F;
    volatile float third = 1.0F / three;  // sets the flag of inexact results
    (void)third;
    CHECK(read_float_state() == sound_float_state());
  }).join();
  CHECK(float_state_difference(single) == "the x87 control word is 0x003f and has to be 0x033f");
  CHECK(float_state_difference(flushing_state()) == "MXCSR is 0x9fc0 and has to be 0x1f80");
}
#endif

}  // namespace gleaner
