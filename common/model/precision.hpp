// How good predictions are, as records, events, tables and lines show it: precision@k and
// propensity-scored precision@k (see master/tasks/metrics.hpp). Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace gleaner {

// Fractions between 0 and 1 over the examples that were scored; negative where nothing was
// measured.
struct Precision {
  static constexpr std::array<std::uint32_t, 3> kDepths = {1, 3, 5};

  std::array<double, 3> p = {-1, -1, -1};    // precision@k for each depth k
  std::array<double, 3> psp = {-1, -1, -1};  // propensity-scored precision@k for each depth k
  double p_at_1_halfwidth = -1;  // of the 95 % interval of p[0]; negative when all were scored

  [[nodiscard]] double at_1() const { return p[0]; }

  [[nodiscard]] bool is_measured() const { return at_1() >= 0; }

  friend bool operator==(const Precision&, const Precision&) = default;
};

// Calls `visit(name, title, value)` for the figure at each depth: its name for programs, in JSON
// and in stores, and its title for people.
template <typename P, typename Visit>
void visit_depths(P& precision, const Visit& visit) {
  visit("p_at_1", "P@1", precision.p[0]);
  visit("p_at_3", "P@3", precision.p[1]);
  visit("p_at_5", "P@5", precision.p[2]);
  visit("psp_at_1", "PSP@1", precision.psp[0]);
  visit("psp_at_3", "PSP@3", precision.psp[1]);
  visit("psp_at_5", "PSP@5", precision.psp[2]);
}

// Calls `visit(name, value)` for every figure.
template <typename P, typename Visit>
void visit_precision(P& precision, const Visit& visit) {
  visit_depths(precision, [&](const char* name, const char*, auto& value) { visit(name, value); });
  visit("p_at_1_halfwidth", precision.p_at_1_halfwidth);
}

// "P@1 0.5941 ± 0.0100  P@3 ...  PSP@5 ...", or "not evaluated".
std::string to_text(const Precision& precision, const char* plus_minus = "±");

}  // namespace gleaner
