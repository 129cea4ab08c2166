// A fixed piece of work that shows whether a machine computes the same bits as all others: every
// kernel on chosen values (numbers that reveal double rounding, subnormals, infinities), and a few
// training steps of both kinds of layer. Compilers, C libraries and drivers can change floating
// point; this test finds it before the machine joins a run. Takes about 20 ms.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/result.hpp"
#include "common/train/kernels.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// One digest per kernel, named as in `Kernels`, then "training" and "wide_training", always in the
// same order.
std::vector<KernelDigest> self_test(const Kernels& kernels);

// The self_test() of a correct machine, for any instruction set.
const std::vector<KernelDigest>& expected_digests();

std::uint64_t digest_of_all(std::span<const KernelDigest> digests);

// How the first wrong kernel differs: "dot gives 12ab... and has to give 34cd...". Empty when all
// digests are as expected.
std::string first_difference(std::span<const KernelDigest> found);

struct SoundLevel {
  SimdLevel level = SimdLevel::kScalar;
  std::vector<std::string> warnings;  // about better levels that compute wrong bits
};

// The best level, from `wanted` downwards, that passes the test; kFault when none does.
// `kernels_of` gives a level's table.
Result<SoundLevel> find_sound_level(
    SimdLevel wanted, const std::function<const Kernels&(SimdLevel)>& kernels_of = kernels_for);

// For programs at start-up, before anything computes: sets default_kernels() to the best level that
// the environment allows and that passes the test. Returns warnings for people. Errors: of
// simd_level_from_environment, and kFault.
Result<std::vector<std::string>> use_sound_level();

// self_test() of default_kernels(), computed once.
const std::vector<KernelDigest>& own_digests();

// The test of every available level, for people.
struct SelfTestReport {
  std::string text;  // lines
  bool is_sound = true;
};

SelfTestReport self_test_report();

// A digest of numbers. All NaNs are added as one value, since their bits are the processor's
// choice. Private to the test's files.
class TestDigest {
 public:
  void add(std::uint64_t word);
  void add(float value);

  template <typename List>
  void add_all(const List& values) {
    for (const auto value : values) {
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        add(value);
      } else {
        add(static_cast<std::uint64_t>(value));
      }
    }
  }

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// Training steps of both kinds of layer: see self_test_training.cpp.
void train_for_test(const Kernels& kernels, TestDigest& digest);
void train_wide_for_test(const Kernels& kernels, TestDigest& digest);

}  // namespace gleaner
