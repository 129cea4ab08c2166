#include "master/core/fingerprint.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "common/access/sha256.hpp"

namespace gleaner {
namespace {

// Hashes numbers and lists, each list after its length, so that different answers give different
// streams.
class Stream {
 public:
  template <typename T>
  void add(T value) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    sha_.update({reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
  }

  template <typename T>
  void add_all(const std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
    add(std::uint64_t{values.size()});
    const std::span all(values);
    sha_.update({reinterpret_cast<const std::uint8_t*>(all.data()), all.size_bytes()});
  }

  Fingerprint finish() {
    const auto digest = sha_.finish_bytes();
    Fingerprint first{};
    std::copy_n(digest.begin(), first.size(), first.begin());
    return first;
  }

 private:
  Sha256 sha_;
};

}  // namespace

Fingerprint fingerprint(const UnitResult& result) {
  Stream stream;
  for (const BatchResult& batch : result.batches) {
    stream.add(std::uint64_t{batch.batch});
    stream.add(std::uint64_t{batch.shards.size()});
    for (const ShardOutcome& outcome : batch.shards) {
      stream.add(raw(outcome.shard));
      stream.add(outcome.gradient_digest);
      stream.add(outcome.loss);
      stream.add(outcome.active);
    }
    stream.add_all(batch.gradient);
  }
  return stream.finish();
}

Fingerprint fingerprint(const EvalResult& result) {
  Stream stream;
  stream.add(result.top_k);
  for (const ScoredNeuron& best : result.best) {
    stream.add(best.neuron);
    stream.add(best.score);
  }
  return stream.finish();
}

Fingerprint fingerprint(const ShardCommit& part, const Fingerprint& before) {
  Stream stream;
  for (const std::uint8_t byte : before) stream.add(byte);
  stream.add(raw(part.lease.shard));
  stream.add(std::uint64_t{part.round});
  stream.add(part.part);
  stream.add(part.parts);
  stream.add_all(part.update.rows);
  stream.add_all(part.update.scales);
  stream.add_all(part.update.levels);
  stream.add_all(part.update.biases);
  stream.add_all(part.update.states);
  return stream.finish();
}

}  // namespace gleaner
