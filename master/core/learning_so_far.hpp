// How well a run has learned up to its checkpoint, as far as decisions rest on it: when it has
// diverged, and when it has nothing more to gain. All of it follows from the model's configuration
// and data, so that the decisions do too. A value.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"

namespace gleaner {

// By what a round is seen to have diverged: its loss, or quantized activations that collapse. When
// the lag is too large for the rates, the hidden units overshoot: the lengths of their codes grow,
// then nearly all units are off, and rows learn from codes that say nothing, which the loss hardly
// shows. Pure; all of it is the same whoever trained the round.
struct Divergence {
  enum class Sign : std::uint8_t {
    kLoss,        // nats per example: of the round, and of the earlier one that it is compared with
    kCodeLength,  // mean length of quantized activations: of the round, and the longest before it
  };
  Sign sign = Sign::kLoss;
  double value = 0;
  double before = 0;
  friend bool operator==(const Divergence&, const Divergence&) = default;
};

// For programs: "loss" or "code_length".
inline std::string_view sign_name(Divergence::Sign sign) {
  return sign == Divergence::Sign::kLoss ? "loss" : "code_length";
}

// For people: a clause without a full stop.
inline std::string sentence(const Divergence& divergence) {
  if (divergence.sign == Divergence::Sign::kLoss) {
    return fmt::format("the loss rose to {:.4g} nats an example, from {:.4g}", divergence.value,
                       divergence.before);
  }
  return fmt::format("the quantized activations shrank to a length of {:.3g}, from {:.3g}",
                     divergence.value, divergence.before);
}

// The lengths of a round's quantized activations, over consecutive batches of `kWindow` examples
// together, so that few odd examples decide nothing.
class CodeLengths {
 public:
  static constexpr std::uint64_t kWindow = 512;
  // Measured in common/model/RECIPES.md, "Lag": harmless falls are by 6 and less.
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

inline void CodeLengths::add(std::uint32_t examples, double mean_length) {
  sum_ += mean_length * examples;
  examples_ += examples;
  if (examples_ < kWindow) return;
  const double length = sum_ / static_cast<double>(examples_);
  sum_ = 0;
  examples_ = 0;
  if (!has_begun_ && length < kWeakBelow * longest_before_) {
    weak_start_ = Divergence{Divergence::Sign::kCodeLength, length, longest_before_};
  }
  has_begun_ = true;
  if (length * kFallMax < longest_ && (!collapse_ || length < collapse_->value)) {
    collapse_ = Divergence{Divergence::Sign::kCodeLength, length, longest_};
  }
  longest_ = std::max(longest_, length);
}

// Evaluations in a row without a higher P@1 after which a run is finished.
struct Patience {
  std::uint32_t evaluations = 0;  // at least; 0: it never ends early
  std::uint32_t divisor = 0;      // and all evaluations so far divided by this; 0: no more

  friend bool operator==(const Patience&, const Patience&) = default;
};

// A run that nobody gave a number of epochs has this patience. A third of the evaluations, and 3 at
// least, would end a slow run before its best (tests/bench/RESULTS.md).
inline constexpr Patience kPatienceAuto{5, 2};

struct LearningSoFar {
  // A round is compared with later ones when its loss is lower by this fraction than that of every
  // such round before. There are few such rounds in a run, so that all of them can be audited.
  static constexpr double kLowerBy = 0.1;

  double lowest_loss = -1;         // of such a round, nats per example; negative: none yet
  double longest_codes = 0;        // mean length of quantized activations in a round
  double best_p_at_1 = -1;         // of an evaluation
  RoundIndex best_checkpoint = 0;  // the first that had it
  std::uint32_t evaluations = 0;
  std::uint32_t evaluations_since_best = 0;

  // Whether the loss becomes the one that later rounds are compared with. A loss of 0 does not:
  // beside it every later round would have diverged.
  [[nodiscard]] bool is_lower(double loss) const {
    return loss > 0 && (lowest_loss < 0 || loss < (1 - kLowerBy) * lowest_loss);
  }

  void add_round(double loss, double code_length) {
    if (loss <= 0) return;
    if (is_lower(loss)) lowest_loss = loss;
    longest_codes = std::max(longest_codes, code_length);
  }

  void add_evaluation(RoundIndex checkpoint, double p_at_1) {
    ++evaluations;
    ++evaluations_since_best;
    if (p_at_1 <= best_p_at_1) return;
    best_p_at_1 = p_at_1;
    best_checkpoint = checkpoint;
    evaluations_since_best = 0;
  }

  [[nodiscard]] bool is_past_best(const Patience& patience) const {
    if (patience.evaluations == 0 || evaluations_since_best < patience.evaluations) return false;
    if (patience.divisor == 0) return true;
    // A network may find nothing for some epochs before it begins to learn.
    return best_p_at_1 > 0 && evaluations_since_best >= evaluations / patience.divisor;
  }
};

}  // namespace gleaner
