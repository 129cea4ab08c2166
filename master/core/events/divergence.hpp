// By what a round is seen to have diverged: its loss, or hidden codes that collapse. When the lag
// is too large for the rates, the hidden units overshoot: the lengths of their codes grow, then
// nearly all units are off, and rows learn from codes that say nothing, which the loss hardly
// shows. Pure; all of it is the same whoever trained the round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gleaner {

struct Divergence {
  enum class Sign : std::uint8_t {
    kLoss,        // nats per example: of the round, and of the earlier one that it is compared with
    kCodeLength,  // mean length of hidden codes: of the round, and the longest before it
  };
  Sign sign = Sign::kLoss;
  double value = 0;
  double before = 0;
  friend bool operator==(const Divergence&, const Divergence&) = default;
};

// For programs: "loss" or "code_length".
std::string_view sign_name(Divergence::Sign sign);
// For people: a clause without a full stop.
std::string sentence(const Divergence& divergence);

// The lengths of a round's hidden codes, over consecutive batches of `kWindow` examples together,
// so that few odd examples decide nothing.
class CodeLengths {
 public:
  static constexpr std::uint64_t kWindow = 512;
  // Measured in volunteer/train/RECIPES.md, "Lag": harmless falls are by 6 and less.
  static constexpr double kFallMax = 16;
  static constexpr double kWeakBelow = 0.25;

  // `longest`: the mean of a round before; 0 if there was none.
  explicit CodeLengths(double longest) : longest_before_(longest) {}

  // A batch's examples and the mean length of their codes, in the order of the batches.
  void add(std::uint32_t examples, double mean_length);

  // The shortest that was less than a kFallMax-th of the longest before it in the round, if one
  // was. Nothing where the round began weak: training it again would begin there too.
  [[nodiscard]] std::optional<Divergence> collapse() const {
    return weak_start_ ? std::nullopt : collapse_;
  }

  // The round's first length, when it is less than kWeakBelow of the longest round's before: the
  // collapse was in the rounds before and has shown too late.
  [[nodiscard]] const std::optional<Divergence>& weak_start() const { return weak_start_; }

 private:
  double longest_before_;
  double longest_ = 0;  // in the round
  double sum_ = 0;
  std::uint64_t examples_ = 0;
  bool has_begun_ = false;
  std::optional<Divergence> weak_start_;
  std::optional<Divergence> collapse_;
};

}  // namespace gleaner
