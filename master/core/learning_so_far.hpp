// How well a run has learned up to its checkpoint, as far as decisions depend on it: whether it has
// diverged, and whether it still improves. All of it follows from the model's configuration and
// data, and so do the decisions. A value.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"

namespace gleaner {

// The sign by which a round is found to have diverged: its loss, or quantized activations that
// collapse. When the lag is too large for the learning rates, hidden units overshoot: their
// activations grow, then nearly all units turn off, and rows learn from activations that carry
// nothing. The loss hardly shows this. Pure; it does not depend on who trained the round.
struct Divergence {
  enum class Sign : std::uint8_t {
    kLoss,        // nats per example: of the round, and of the earlier round beside it
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

// The lengths of a round's quantized activations, averaged over consecutive batches of at least
// `kWindow` examples, so that a few odd examples decide nothing.
class CodeLengths {
 public:
  static constexpr std::uint64_t kWindow = 512;
  // Harmless falls are by a factor of 6 or less, as measured: common/model/RECIPES.md, "Lag".
  static constexpr double kFallMax = 16;
  static constexpr double kWeakBelow = 0.25;

  // `longest`: the longest mean of an earlier round; 0 if there is none.
  explicit CodeLengths(double longest) : longest_before_(longest) {}

  // Adds a batch: its examples and the mean length of their activations. Batches come in order.
  void add(std::uint32_t examples, double mean_length);

  // The shortest length below a kFallMax-th of the longest length before it in the round, if any.
  // Nullopt when the round began weak: training the round again would begin weak too.
  [[nodiscard]] std::optional<Divergence> collapse() const {
    return weak_start_ ? std::nullopt : collapse_;
  }

  // The round's first length if it is below kWeakBelow of the longest length of earlier rounds: an
  // earlier round collapsed, and showed it too late.
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

// How many evaluations in a row without a higher P@1 end a run.
struct Patience {
  std::uint32_t evaluations = 0;  // at least; 0: the run never ends early
  std::uint32_t divisor = 0;      // and all evaluations so far divided by this; 0: no more

  friend bool operator==(const Patience&, const Patience&) = default;
};

// Patience of a run whose owner set no number of epochs. A third of the evaluations, and at least
// 3, would end a slow run before its best (tests/bench/RESULTS.md).
inline constexpr Patience kPatienceAuto{5, 2};

struct LearningSoFar {
  // A round is a reference for later rounds when its loss is lower than the loss of every earlier
  // reference, by at least this fraction. A run has few references, so that all of them can be
  // audited.
  static constexpr double kLowerBy = 0.1;

  // loss of the last reference round, nats per example; negative: none yet
  double lowest_loss = -1;
  double longest_codes = 0;        // mean length of quantized activations in a round
  double best_p_at_1 = -1;         // of an evaluation
  RoundIndex best_checkpoint = 0;  // the first with best_p_at_1
  std::uint32_t evaluations = 0;
  std::uint32_t evaluations_since_best = 0;

  // Whether a round with this loss becomes a reference. A loss of 0 does not: beside it every later
  // round would have diverged.
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
