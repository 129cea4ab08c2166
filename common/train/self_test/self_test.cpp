#include "common/train/self_test/self_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/train/aligned_vector.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kWidth = 64;

// Values made by integer operations only, which are the same on every machine.
class Values {
 public:
  explicit Values(std::uint64_t stream) : rng_(kSeed, Purpose::kSelfTest, stream) {}

  Rng& rng() { return rng_; }

  // A float of either sign, with a magnitude from 2^low to 2^(high + 1), which may be subnormal.
  float next(int low, int high) {
    const auto range = static_cast<std::uint64_t>(high - low + 1);
    const int exponent = low + static_cast<int>(rng_.next_below(range));
    const std::uint64_t bits = rng_.next();
    const std::uint32_t mantissa = static_cast<std::uint32_t>(bits) & 0x7fffffU;
    const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000U;
    const std::uint32_t magnitude =
        exponent >= -126 ? static_cast<std::uint32_t>(exponent + 127) << 23 | mantissa
                         : (mantissa | 0x800000U) >> (-126 - exponent);
    return std::bit_cast<float>(sign | magnitude);
  }

  std::vector<float> list(std::size_t count, int low, int high) {
    std::vector<float> values(count);
    for (float& value : values) value = next(low, high);
    return values;
  }

  std::vector<float> positive(std::size_t count, int low, int high) {
    std::vector<float> values = list(count, low, high);
    for (float& value : values) value = std::abs(value);
    return values;
  }

  std::vector<std::uint8_t> codes(std::size_t count) {
    std::vector<std::uint8_t> values(count);
    for (auto& value : values) value = static_cast<std::uint8_t>(rng_.next_below(255) - 127);
    return values;
  }

  std::vector<std::uint32_t> words(std::size_t count) {
    std::vector<std::uint32_t> values(count);
    for (auto& value : values) value = static_cast<std::uint32_t>(rng_.next());
    return values;
  }

 private:
  Rng rng_;
};

// kNearOne * kBelowOne + c, with c odd in its last bit, is so close to the midpoint between two
// floats that a double cannot tell them apart. Rounding to double first and then to float gives a
// wrong result.
constexpr float kNearOne = 0x1.000002p-12F;
constexpr float kBelowOne = 0x1.fffffcp-13F;

std::vector<float> odd_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::bit_cast<float>(0x3f800001U + 2 * static_cast<std::uint32_t>(i));
    if (i % 4 >= 2) values[i] = -values[i];
  }
  return values;
}

// Zeros, subnormals, powers, numbers next to them, the largest.
std::vector<float> special_values() {
  const std::array<std::uint32_t, 16> bits = {0,          1,          3,          0x00400000,
                                              0x007fffff, 0x00800000, 0x00800001, 0x1a000001,
                                              0x33800000, 0x3effffff, 0x3f7fffff, 0x3f800001,
                                              0x4b000001, 0x4b800001, 0x7e800000, 0x7f7fffff};
  std::vector<float> values;
  for (const std::uint32_t word : bits) {
    values.push_back(std::bit_cast<float>(word));
    values.push_back(std::bit_cast<float>(word | 0x80000000U));
  }
  return values;
}

struct Factors {
  std::vector<float> a, b;
};

// Vectors whose product is an odd value and then close to a midpoint, one lane at a time, so that
// no sum of lanes hides an error; and products in several ranges, the last subnormal.
std::vector<Factors> dot_factors() {
  Values values(1);
  const std::vector<float> odd = odd_values(kLanes);
  std::vector<Factors> all;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Factors& factors =
        all.emplace_back(Factors{std::vector<float>(2 * kLanes), std::vector<float>(2 * kLanes)});
    factors.a[lane] = odd[lane];
    factors.b[lane] = 1.0F;
    factors.a[kLanes + lane] = lane % 2 == 0 ? kNearOne : -kNearOne;
    factors.b[kLanes + lane] = kBelowOne;
  }
  all.push_back({values.list(16, -3, 3), values.list(16, -3, 3)});
  all.push_back({values.list(256, -20, 10), values.list(256, -10, 20)});
  all.push_back({values.list(48, 0, 40), values.list(48, -40, 0)});
  all.push_back({values.list(128, -80, -66), values.list(128, -80, -66)});
  return all;
}

void test_dot(const Kernels& kernels, TestDigest& digest) {
  for (const Factors& factors : dot_factors()) {
    digest.add(kernels.dot(factors.a.data(), factors.b.data(), factors.a.size()));
  }
}

void test_sum_of_squares(const Kernels& kernels, TestDigest& digest) {
  for (const Factors& factors : dot_factors()) {
    digest.add(kernels.sum_of_squares(factors.a.data(), factors.a.size()));
  }
}

void test_axpy(const Kernels& kernels, TestDigest& digest) {
  std::vector<float> y = odd_values(kWidth);
  kernels.axpy(kNearOne, std::vector<float>(kWidth, kBelowOne).data(), y.data(), kWidth);
  digest.add_all(y);
  kernels.axpy(-kNearOne, std::vector<float>(kWidth, kBelowOne).data(), y.data(), kWidth);
  digest.add_all(y);
  const std::vector<float> special = special_values();
  for (const float factor : special) {
    for (std::size_t turn = 0; turn < special.size(); ++turn) {
      y = special;
      std::rotate(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(turn), y.end());
      kernels.axpy(factor, special.data(), y.data(), y.size());
      digest.add_all(y);
    }
  }
}

void test_rms_steps(const Kernels& kernels, TestDigest& digest) {
  Values values(2);
  const RmsRule rule{3e-3F, 0.999F, 0.001F, kFirstFraction, 1e-8F};
  for (int i = 0; i < 8; ++i) {
    const std::vector<float> squares = values.positive(kRowsPerStep, -100, 20);
    std::vector<float> states = values.positive(kRowsPerStep, -140, 20);
    states[3] = states[8] = 0;
    std::vector<float> factors(kRowsPerStep);
    kernels.rms_steps(rule, squares.data(), 48, states.data(), factors.data());
    digest.add_all(states);
    digest.add_all(factors);
  }
}

void test_dequantise(const Kernels& kernels, TestDigest& digest) {
  Values values(3);
  for (const int exponent : {-148, -120, -10, 0}) {
    std::vector<float> floats(kWidth);
    const std::vector<std::uint8_t> codes = values.codes(kWidth);
    kernels.dequantise(values.next(exponent, exponent), codes.data(), floats.data(), kWidth);
    digest.add_all(floats);
  }
}

void test_round_gradient(const Kernels& kernels, TestDigest& digest) {
  Values values(4);
  std::vector<std::uint32_t> first = values.words(kWidth);
  std::vector<std::uint32_t> second = values.words(kWidth);
  std::array<std::uint32_t*, 2> sums = {first.data(), second.data()};
  std::array<std::uint32_t, 16> check{};
  kernels.round_gradient({kWidth, sums.data(), sums.size(), 0x12345678, check.data()});
  digest.add_all(first);
  digest.add_all(second);
  digest.add_all(check);
}

void test_logistic(const Kernels& kernels, TestDigest& digest) {
  Values values(5);
  std::vector<float> x = special_values();
  for (const float value : {64.0F, -64.0F, 100.0F, -100.0F, 0.34657359F, -0.34657359F}) {
    x.push_back(value);
  }
  while (x.size() < 1024) x.push_back(values.next(-8, 5));
  std::vector<float> sigmoid(x.size());
  std::vector<float> softplus(x.size());
  kernels.losses[0].curves(x.data(), sigmoid.data(), softplus.data(), x.size());
  digest.add_all(sigmoid);
  digest.add_all(softplus);
}

void test_train_rows(const Kernels& kernels, TestDigest& digest) {
  constexpr std::size_t kExamples = 12;
  constexpr std::size_t kHeld = 5;
  Values values(6);
  const std::vector<std::uint32_t> rows = {0, 2, 3};
  std::vector<ActivePair> pairs;
  std::vector<std::size_t> pair_ends;
  for (const std::size_t count : {std::size_t{12}, std::size_t{1}, std::size_t{7}}) {
    for (std::size_t i = 0; i < count; ++i) {
      const ActivePair kind = values.rng().chance(1, 3) ? kTruePair : ActivePair{0};
      pairs.push_back(static_cast<ActivePair>(i | kind));
    }
    pair_ends.push_back(pairs.size());
  }
  std::vector<float> logits(pairs.size() + 16);
  std::vector<float> deltas(pairs.size() + 16);
  pairs.resize(pairs.size() + 16);
  const std::vector<std::uint8_t> codes = values.codes(kExamples * kWidth);
  const std::vector<float> scales = values.positive(kExamples, -12, -6);
  std::vector<std::uint32_t> gradient_sums(kExamples * kWidth);
  std::vector<float> weights = values.list(kHeld * kWidth, -6, 0);
  std::vector<float> gradients(kRowsPerStep * kWidth);
  std::vector<float> biases = values.list(kHeld, -2, 1);
  std::vector<float> states = values.positive(kHeld, -20, -1);
  states[2] = 0;
  const RmsRule rule{3e-3F, 0.999F, 0.001F, kFirstFraction, 1e-8F};
  for (int step = 0; step < 3; ++step) {
    const std::int64_t loss = kernels.losses[0].train_rows({.width = kWidth,
                                                            .weights = weights.data(),
                                                            .biases = biases.data(),
                                                            .states = states.data(),
                                                            .rows = rows.data(),
                                                            .row_count = rows.size(),
                                                            .pair_ends = pair_ends.data(),
                                                            .pairs = pairs.data(),
                                                            .codes = codes.data(),
                                                            .scales = scales.data(),
                                                            .gradient_sums = gradient_sums.data(),
                                                            .gradient_magic = gradient_magic(-10),
                                                            .logits = logits.data(),
                                                            .deltas = deltas.data(),
                                                            .gradients = gradients.data()},
                                                           rule);
    digest.add(static_cast<std::uint64_t>(loss));
  }
  digest.add_all(weights);
  digest.add_all(biases);
  digest.add_all(states);
  digest.add_all(gradient_sums);
}

void test_score_rows(const Kernels& kernels, TestDigest& digest) {
  constexpr std::size_t kRows = 6;
  constexpr std::size_t kExamples = 5;
  Values values(7);
  for (const int exponent : {0, -70}) {
    const std::vector<float> weights = values.list(kRows * kWidth, exponent - 3, exponent);
    const std::vector<float> biases = values.list(kRows, 2 * exponent - 2, 2 * exponent);
    const std::vector<float> hidden = values.list(kExamples * kWidth, exponent - 3, exponent);
    std::vector<float> scores(kRows * kExamples);
    kernels.score_rows({kWidth, weights.data(), biases.data(), kRows, hidden.data(), kExamples,
                        scores.data(), kRows});
    digest.add_all(scores);
  }
}

// Two blocks of projections of kWidth columns.
struct TestProjections {
  std::vector<float> flips;
  std::vector<std::int8_t> pairs;
  std::vector<std::int32_t> thresholds;
  SignProjections view;

  TestProjections() : flips(2 * kWidth), pairs(kWidth * flips.size()), thresholds(flips.size()) {
    Values values(8);
    view = {kWidth, kWidth, flips.size(), flips.data(), pairs.data(), thresholds.data()};
    for (float& flip : flips) flip = values.rng().chance(1, 2) ? 1.0F : -1.0F;
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t p = 0; p < view.count; ++p) {
        const std::size_t entry = p % kWidth;
        const bool is_odd = std::popcount(entry & i) % 2 != 0;
        const int sign = (flips[p - entry + i] > 0) != is_odd ? 1 : -1;
        pairs[(i / 2) * 2 * view.count + 2 * p + i % 2] = static_cast<std::int8_t>(sign);
        thresholds[p] += kCodeOffset * sign;
      }
    }
  }
};

void test_project_codes(const Kernels& kernels, TestDigest& digest) {
  const TestProjections projections;
  Values values(9);
  for (int i = 0; i < 4; ++i) {
    std::vector<std::uint16_t> bits(projections.view.count / 16);
    kernels.project_codes(projections.view, values.codes(kWidth).data(), bits.data());
    digest.add_all(bits);
  }
}

void test_project_rows(const Kernels& kernels, TestDigest& digest) {
  const TestProjections projections;
  Values values(10);
  for (const int exponent : {0, -120, -145}) {
    const std::vector<float> rows = values.list(5 * kWidth, exponent - 4, exponent);
    std::array<const float*, 5> pointers{};
    for (std::size_t r = 0; r < pointers.size(); ++r) pointers[r] = rows.data() + r * kWidth;
    std::vector<std::uint16_t> bits(pointers.size() * projections.view.count / 16);
    kernels.project_rows(projections.view, pointers.data(), pointers.size(), bits.data());
    digest.add_all(bits);
  }
}

void test_round_delta(const Kernels& kernels, TestDigest& digest) {
  Values values(11);
  for (const int exponent : {-110, -40, -12, 0, 20}) {
    const std::vector<float> committed = values.list(kWidth, -12, -2);
    std::vector<float> now = committed;
    for (float& value : now) value += values.next(exponent - 5, exponent);
    std::vector<std::int8_t> levels(kWidth);
    digest.add(kernels.round_delta(committed.data(), now.data(), levels.data(), kWidth));
    digest.add_all(now);
    digest.add_all(levels);
  }
}

void test_add_rows(const Kernels& kernels, TestDigest& digest) {
  constexpr std::size_t kStride = 208;  // a width of every level's blocks, and a remainder
  constexpr std::size_t kRows = 24;
  Values values(12);
  const std::vector<float> list = values.list(kRows * kStride, -70, 2);
  AlignedVector<float> rows(list.begin(), list.end());
  std::fill_n(rows.begin(), kStride, kBelowOne);
  const std::vector<float> odd = odd_values(kStride);
  AlignedVector<float> sum(odd.begin(), odd.end());
  std::vector<std::uint32_t> picks = {0, 0};
  std::vector<float> factors = {kNearOne, -kNearOne};
  for (std::uint32_t row = 1; row < kRows; ++row) {
    picks.push_back(static_cast<std::uint32_t>(row * 7 % kRows));
    factors.push_back(values.next(-70, 2));
  }
  kernels.add_rows(rows.data(), kStride, picks.data(), factors.data(), 2, sum.data(), kStride);
  digest.add_all(sum);
  std::ranges::fill(sum, 0.0F);
  kernels.add_rows(rows.data(), kStride, picks.data() + 2, factors.data() + 2, picks.size() - 2,
                   sum.data(), kStride);
  digest.add_all(sum);
}

struct Part {
  const char* kernel;
  void (*test)(const Kernels& kernels, TestDigest& digest);
  std::uint64_t expected;
};

// A digest changes when the results of a kernel change (a new protocol) or when the test does.
constexpr Part kParts[] = {
    {"dot", test_dot, 0x5e0ba70c04548404},
    {"axpy", test_axpy, 0x879342dcd3767de6},
    {"sum_of_squares", test_sum_of_squares, 0xde9a8f0abb2b14b9},
    {"rms_steps", test_rms_steps, 0x758b4f60ca281efe},
    {"dequantise", test_dequantise, 0x3616cb78a1589c5c},
    {"round_gradient", test_round_gradient, 0xbf16881b52c3d4db},
    {"logistic", test_logistic, 0xafef88b96cc6174f},
    {"train_rows", test_train_rows, 0xcdeabe0cdabc4a63},
    {"score_rows", test_score_rows, 0xb752cf30b8d8f392},
    {"project_codes", test_project_codes, 0x4d24604680bd54dd},
    {"project_rows", test_project_rows, 0x2fb56de733dd1fa7},
    {"round_delta", test_round_delta, 0xa27b625df848caf3},
    {"add_rows", test_add_rows, 0x59daa3960af9701d},
    {"training", train_for_test, 0x46aa8a28e9817b37},
    {"wide_training", train_wide_for_test, 0xbe2f4e3e62052a10},
};

}  // namespace

void TestDigest::add(std::uint64_t word) {
  value_ = mix64(value_ ^ word);
}

void TestDigest::add(float value) {
  add(std::uint64_t{std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value)});
}

std::vector<KernelDigest> self_test(const Kernels& kernels) {
  std::vector<KernelDigest> digests;
  for (const Part& part : kParts) {
    TestDigest digest;
    part.test(kernels, digest);
    digests.push_back({part.kernel, digest.value()});
  }
  return digests;
}

const std::vector<KernelDigest>& expected_digests() {
  static const std::vector<KernelDigest> digests = [] {
    std::vector<KernelDigest> list;
    for (const Part& part : kParts) list.push_back({part.kernel, part.expected});
    return list;
  }();
  return digests;
}

std::uint64_t digest_of_all(std::span<const KernelDigest> digests) {
  TestDigest all;
  for (const KernelDigest& each : digests) all.add(each.digest);
  return all.value();
}

std::string first_difference(std::span<const KernelDigest> found) {
  const std::vector<KernelDigest>& expected = expected_digests();
  const auto [right, wrong] = std::ranges::mismatch(expected, found);
  if (right == expected.end() || wrong == found.end()) return "";
  return fmt::format("{} gives {:016x} and has to give {:016x}", right->kernel, wrong->digest,
                     right->digest);
}

Result<SoundLevel> find_sound_level(SimdLevel wanted,
                                    const std::function<const Kernels&(SimdLevel)>& kernels_of) {
  std::vector<SimdLevel> levels = available_simd_levels();
  std::erase_if(levels, [&](SimdLevel level) { return level > wanted; });
  SoundLevel sound;
  std::string difference;
  for (std::size_t i = levels.size(); i-- > 0;) {
    difference = first_difference(self_test(kernels_of(levels[i])));
    if (difference.empty()) {
      sound.level = levels[i];
      return sound;
    }
    sound.warnings.push_back(
        fmt::format("the instruction set {} gives wrong results here (kernel {}) and is not used: "
                    "tell the makers of this program, with the output of gleaner-volunteer "
                    "--self-test",
                    simd_level_name(levels[i]), difference));
  }
  return Error{ErrorCode::kFault,
               fmt::format("this program computes other bits on this machine than everywhere else "
                           "(kernel {}), so its work would spoil a model: install the published "
                           "program, and tell the makers of this one, with the output of "
                           "gleaner-volunteer --self-test",
                           difference)};
}

Result<std::vector<std::string>> use_sound_level() {
  const Result<SimdLevel> wanted = simd_level_from_environment();
  if (!wanted) return wanted.error();
  Result<SoundLevel> sound = find_sound_level(*wanted);
  if (!sound) return sound.error();
  set_default_level(sound->level);
  return std::move(sound->warnings);
}

const std::vector<KernelDigest>& own_digests() {
  static const std::vector<KernelDigest> digests = self_test(default_kernels());
  return digests;
}

SelfTestReport self_test_report() {
  SelfTestReport report;
  const std::vector<KernelDigest>& expected = expected_digests();
  for (const SimdLevel level : available_simd_levels()) {
    const std::vector<KernelDigest> found = self_test(kernels_for(level));
    report.is_sound = report.is_sound && found == expected;
    report.text += fmt::format("{:16} {:016x}  {}\n", simd_level_name(level), digest_of_all(found),
                               found == expected ? "right" : "wrong");
    for (std::size_t i = 0; i < found.size(); ++i) {
      report.text += fmt::format("  {:14} {:016x}", found[i].kernel, found[i].digest);
      const bool is_right = found[i] == expected[i];
      report.text +=
          is_right ? "\n" : fmt::format("  wrong: it has to be {:016x}\n", expected[i].digest);
    }
  }
  report.text += report.is_sound ? "This machine computes what all machines compute.\n"
                                 : "This machine computes other bits than all others.\n";
  return report;
}

}  // namespace gleaner
