// The self-test on the levels of this machine, and on tables of kernels that are wrong in ways in
// which compilers and libraries are.
#include "common/train/self_test/self_test.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "common/float_state.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// As mingw-w64's fmaf: rounded to double, then to float.
float fma_rounding_twice(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
}

void axpy_rounding_twice(float a, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = fma_rounding_twice(a, x[i], y[i]);
}

float dot_rounding_twice(const float* a, const float* b, std::size_t n) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % 16] = fma_rounding_twice(a[i], b[i], lanes[i % 16]);
  for (int l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
  for (int l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

void add_rows_rounding_twice(const float* rows, std::size_t stride, const std::uint32_t* picks,
                             const float* factors, std::size_t count, float* sum,
                             std::size_t width) {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const row = rows + picks[i] * stride;
    for (std::size_t j = 0; j < width; ++j) sum[j] = fma_rounding_twice(factors[i], row[j], sum[j]);
  }
}

// As with one flipped bit of a constant: the last bit of every thousandth result is wrong.
void logistic_with_a_wrong_bit(const float* x, float* sigmoid, float* softplus, std::size_t n) {
  kernels_for(SimdLevel::kScalar).losses[0].curves(x, sigmoid, softplus, n);
  if (n > 1000) softplus[1000] = std::nextafter(softplus[1000], 0.0F);
}

// The names of kernels whose digests are not as expected.
std::vector<std::string> wrong_kernels(const Kernels& kernels) {
  const std::vector<KernelDigest> found = self_test(kernels);
  const std::vector<KernelDigest>& expected = expected_digests();
  REQUIRE(found.size() == expected.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].kernel == expected[i].kernel);
    if (found[i] != expected[i]) names.push_back(found[i].kernel);
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

TEST_CASE("self test: every level of this machine gives the expected digests", "[self_test]") {
  for (const SimdLevel level : available_simd_levels()) {
    CAPTURE(simd_level_name(level));
    REQUIRE(self_test(kernels_for(level)) == expected_digests());
    REQUIRE(first_difference(self_test(kernels_for(level))).empty());
  }
  const SelfTestReport report = self_test_report();
  REQUIRE(report.is_sound);
  REQUIRE_THAT(report.text, Catch::Contains("scalar") && Catch::Contains("right"));
}

TEST_CASE("self test: a fused multiply-add that rounds twice is found in each kernel it is in",
          "[self_test]") {
  Kernels broken = kernels_for(SimdLevel::kScalar);
  broken.dot = dot_rounding_twice;
  REQUIRE(has(wrong_kernels(broken), "dot"));
  broken = kernels_for(SimdLevel::kScalar);
  broken.axpy = axpy_rounding_twice;
  REQUIRE(has(wrong_kernels(broken), "axpy"));
  broken = kernels_for(SimdLevel::kScalar);
  broken.add_rows = add_rows_rounding_twice;
  REQUIRE(has(wrong_kernels(broken), "add_rows"));
}

TEST_CASE("self test: a single wrong bit is found and named", "[self_test]") {
  Kernels broken = kernels_for(SimdLevel::kScalar);
  broken.losses[0].curves = logistic_with_a_wrong_bit;
  REQUIRE(wrong_kernels(broken) == std::vector<std::string>{"logistic"});
  REQUIRE_THAT(first_difference(self_test(broken)),
               Catch::StartsWith("logistic gives ") && Catch::Contains(" and has to give "));
  REQUIRE(digest_of_all(self_test(broken)) != digest_of_all(expected_digests()));
}

TEST_CASE("self test: subnormals that are flushed to zero are found", "[self_test]") {
#if defined(__x86_64__)
  const Kernels& kernels = kernels_for(SimdLevel::kScalar);
  write_float_state(sound_float_state() | 0x8040);
  const std::vector<std::string> wrong = wrong_kernels(kernels);
  set_float_state();
  REQUIRE(has(wrong, "dot"));
  REQUIRE(has(wrong, "axpy"));
  REQUIRE_FALSE(has(wrong, "training"));  // whose pool puts the thread right
#endif
}

TEST_CASE("self test: a wrong level is left for the next lower one, with its name and kernel's",
          "[self_test]") {
  const SimdLevel best = available_simd_levels().back();
  if (best == SimdLevel::kScalar) return;
  Kernels broken = kernels_for(best);
  broken.axpy = axpy_rounding_twice;
  const auto tables = [&](SimdLevel level) -> const Kernels& {
    return level == best ? broken : kernels_for(level);
  };
  const Result<SoundLevel> sound = find_sound_level(best, tables);
  REQUIRE(sound.ok());
  REQUIRE(sound->level < best);
  REQUIRE(sound->warnings.size() == 1);
  REQUIRE_THAT(sound->warnings[0],
               Catch::Contains(simd_level_name(best)) && Catch::Contains("kernel axpy"));
  REQUIRE(find_sound_level(SimdLevel::kScalar, tables)->warnings.empty());
}

TEST_CASE("self test: a machine on which no level is right is refused, naming the kernel",
          "[self_test]") {
  Kernels broken = kernels_for(SimdLevel::kScalar);
  broken.dot = dot_rounding_twice;
  const Result<SoundLevel> sound = find_sound_level(
      available_simd_levels().back(), [&](SimdLevel) -> const Kernels& { return broken; });
  REQUIRE_FALSE(sound.ok());
  REQUIRE(sound.error().code == ErrorCode::kFault);
  REQUIRE_THAT(sound.error().message, Catch::Contains("kernel dot"));
}

TEST_CASE("self test: a volunteer that rounds twice and joins all the same is refused by name",
          "[self_test]") {
  Kernels broken = kernels_for(SimdLevel::kScalar);
  broken.axpy = axpy_rounding_twice;
  CoreConfig settings = tiny_core_config();
  settings.kernels = own_digests();
  MasterDriver master(tiny_model(), settings);
  Hello hello = master.hello("ann");
  hello.kernels = self_test(broken);
  const SessionId refused = master.open();
  master.say(refused, hello);
  REQUIRE_THAT(master.take<Refusal>(refused).sentence, Catch::StartsWith("the kernel axpy gives "));
  REQUIRE(master.is_closed(refused));
  hello.kernels = self_test(kernels_for(SimdLevel::kScalar));
  const SessionId welcome = master.open();
  master.say(welcome, hello);
  REQUIRE(master.count<Welcome>(welcome) == 1);
}

}  // namespace gleaner
