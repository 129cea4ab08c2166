#include "common/counter_random.hpp"
#include "schema/gradient.hpp"
#include "tools/bench_loops.hpp"
#include "tools/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kExamples = 256;

}  // namespace

std::vector<BenchLine> bench_codec(const BenchShape& shape) {
  HiddenCodes codes;
  codes.examples = kExamples;
  codes.hidden = shape.hidden;
  codes.scales.assign(kExamples, 0.01F);
  Rng rng(3, Purpose::kTest);
  std::vector<std::int32_t> gradient;
  for (std::size_t i = 0; i < std::size_t{kExamples} * shape.hidden; ++i) {
    codes.codes.push_back(rng.chance(1, 2) ? static_cast<std::uint8_t>(1 + rng.next_below(255))
                                           : std::uint8_t{0});
    gradient.push_back(static_cast<std::int32_t>(rng.next_below(4096)) - 2048);
  }
  const Bytes packed_codes = pack(codes);
  const Bytes packed_gradient = pack_gradient(codes, gradient);
  std::vector<std::int32_t> sum(gradient.size());
  bool is_good = true;
  const auto per_example = [&](const auto& body) {
    return best_seconds(shape.budget, body) / kExamples;
  };
  std::vector<BenchLine> lines;
  lines.push_back({"pack hidden codes", "example",
                   per_example([&] { is_good &= !pack(codes).empty(); }), 0, ""});
  lines.push_back({"unpack hidden codes", "example",
                   per_example([&] { is_good &= unpack_hidden(packed_codes).ok(); }), 0, ""});
  lines.push_back({"pack a gradient", "example",
                   per_example([&] { is_good &= !pack_gradient(codes, gradient).empty(); }), 0,
                   ""});
  lines.push_back({"add a packed gradient", "example", per_example([&] {
                     sum.assign(sum.size(), 0);
                     is_good &= add_gradient(codes, packed_gradient, sum).ok();
                   }),
                   0, ""});
  if (!is_good) lines.clear();
  return lines;
}

}  // namespace gleaner
