#include "tests/support/lies.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {
namespace {

// About the work on one shard.
Lie about_outcome(std::function<void(ShardOutcome&)> change) {
  return about<UnitResult>([change = std::move(change)](UnitResult& r) {
    change(r.batches.back().shards.front());
    return true;
  });
}

// About the sum of gradients, where it was asked for.
Lie about_gradient(std::function<bool(Bytes&)> change) {
  return about<UnitResult>([change = std::move(change)](UnitResult& r) {
    Bytes& gradient = r.batches.front().gradient;
    return gradient.size() >= 8 && change(gradient);
  });
}

// Where there is a row to lie about.
Lie about_rows(std::function<void(SparseUpdate&)> change) {
  return about<ShardCommit>([change = std::move(change)](ShardCommit& commit) {
    if (commit.update.rows.empty()) return false;
    change(commit.update);
    return true;
  });
}

Lie about_scores(std::function<void(std::vector<ScoredNeuron>&)> change) {
  return about<EvalResult>([change = std::move(change)](EvalResult& r) {
    if (r.best.size() < 2) return false;
    const std::vector<ScoredNeuron> honest = r.best;
    change(r.best);
    return r.best != honest;
  });
}

std::map<std::string, Lie> lies_in_units() {
  return {
      {"digest", about_outcome([](ShardOutcome& o) { o.gradient_digest ^= 1; })},
      {"digest-zero", about_outcome([](ShardOutcome& o) { o.gradient_digest = 0; })},
      {"loss", about_outcome([](ShardOutcome& o) { o.loss += 1; })},
      {"loss-low", about<UnitResult>([](UnitResult& r) {
         for (BatchResult& batch : r.batches) {
           for (ShardOutcome& outcome : batch.shards) outcome.loss /= 16;
         }
         return r.batches.back().shards.front().loss != 0;
       })},
      {"loss-negative", about_outcome([](ShardOutcome& o) { o.loss = -o.loss - 1; })},
      {"loss-vast", about_outcome([](ShardOutcome& o) { o.loss = std::int64_t{1} << 60; })},
      {"active", about_outcome([](ShardOutcome& o) { ++o.active; })},
      {"active-vast", about_outcome([](ShardOutcome& o) { o.active = ~std::uint64_t{0}; })},
      {"gradient", about_gradient([](Bytes& g) {
         g[g.size() / 2] ^= 1;
         return true;
       })},
      {"gradient-flipped", about_gradient([](Bytes& g) {
         for (std::size_t i = g.size() / 2; i < g.size(); ++i) g[i] ^= 0xFF;
         return true;
       })},
      // Fewer bits suffice for its entries than it says.
      {"gradient-unfit", about_gradient([](Bytes& g) {
         const auto half = g.begin() + static_cast<std::ptrdiff_t>(g.size() / 2);
         if (std::all_of(half, g.end(), [](std::uint8_t byte) { return byte == 0; })) return false;
         std::fill(half, g.end(), std::uint8_t{0});
         return true;
       })},
      {"gradient-of-another-batch", about<UnitResult>([](UnitResult& r) {
         if (r.batches.size() < 2) return false;
         Bytes& first = r.batches[0].gradient;
         Bytes& second = r.batches[1].gradient;
         if (first.empty() || second.empty() || first == second) return false;
         std::swap(first, second);
         return true;
       })},
  };
}

std::map<std::string, Lie> lies_in_commits() {
  return {
      {"level", about_rows([](SparseUpdate& u) { u.levels[0] = u.levels[0] == 0 ? 1 : 0; })},
      {"levels-negated", about_rows([](SparseUpdate& u) {
         u.levels[0] = u.levels[0] == 0 ? 1 : u.levels[0];
         for (std::int8_t& level : u.levels) level = static_cast<std::int8_t>(-level);
       })},
      {"scale", about_rows([](SparseUpdate& u) { u.scales[0] = u.scales[0] * 0.5F + 1e-6F; })},
      {"scale-vast",
       about_rows([](SparseUpdate& u) { u.scales[0] = std::numeric_limits<float>::max(); })},
      {"bias", about_rows([](SparseUpdate& u) { u.biases[0] ^= 1; })},
      {"bias-infinite", about_rows([](SparseUpdate& u) { u.biases[0] = 0x7C00; })},
      {"state", about_rows([](SparseUpdate& u) { u.states[0] += 1.0F; })},
      {"state-vast", about_rows([](SparseUpdate& u) { u.states[0] = 3e38F; })},
      {"row-missing", about_rows([](SparseUpdate& u) {
         const std::size_t weights = u.levels.size() / u.rows.size();
         u.rows.pop_back();
         u.scales.pop_back();
         u.levels.erase(u.levels.end() - static_cast<std::ptrdiff_t>(weights), u.levels.end());
         u.biases.pop_back();
         u.states.pop_back();
       })},
      {"row-of-another", about_rows([](SparseUpdate& u) {
         // Rows ascend: the last may move up, or the first down.
         if (u.rows.front() > 0) {
           --u.rows.front();
         } else {
           ++u.rows.back();
         }
       })},
  };
}

// About how many parts a commit has.
std::map<std::string, Lie> lies_in_parts() {
  return {
      // The last part never comes.
      {"parts-more", about<ShardCommit>([](ShardCommit& c) { return ++c.parts > 1; })},
      {"parts-fewer", about<ShardCommit>([](ShardCommit& c) {
         if (c.part + 1 == c.parts) return false;
         --c.parts;
         return true;
       })},
      {"parts-vast", about<ShardCommit>([](ShardCommit& c) {
         c.parts = kPartsMax;
         return true;
       })},
  };
}

std::map<std::string, Lie> lies_in_scores() {
  return {
      {"score", about_scores([](std::vector<ScoredNeuron>& best) { best[0].score += 1.0F; })},
      {"score-vast", about_scores([](std::vector<ScoredNeuron>& best) { best[0].score = 3e38F; })},
      {"score-of-another", about_scores([](std::vector<ScoredNeuron>& best) {
         std::swap(best[0].neuron, best[1].neuron);
       })},
  };
}

}  // namespace

const std::map<std::string, Lie>& lies() {
  static const std::map<std::string, Lie> all = [] {
    std::map<std::string, Lie> some = lies_in_units();
    some.merge(lies_in_commits());
    some.merge(lies_in_parts());
    some.merge(lies_in_scores());
    return some;
  }();
  return all;
}

}  // namespace gleaner
