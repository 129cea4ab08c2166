// The state of a run between two checkpoints: what it is, and the commits that are staged for the
// next one.
#include "storage/run_store.hpp"

#include <algorithm>

#include "common/model/run_plan.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunStore::~RunStore() = default;

const RunIdentity& RunStore::identity() const {
  return impl_->identity;
}

const ShardMap& RunStore::shard_map() const {
  return impl_->map;
}

RoundIndex RunStore::checkpoint() const {
  return impl_->checkpoint;
}

const std::vector<BatchIndex>& RunStore::rate_cuts() const {
  return impl_->rate_cuts;
}

const std::vector<std::uint32_t>& RunStore::label_counts() const {
  return impl_->label_counts;
}

std::vector<std::uint32_t> RunStore::label_counts(ShardId shard) const {
  std::vector<std::uint32_t> counts;
  if (!impl_->map.is_output(shard)) return counts;
  const NeuronRange neurons = impl_->map.neurons(shard);
  counts.reserve(neurons.size());
  for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
    counts.push_back(impl_->label_counts[impl_->map.label_of_neuron(neuron)]);
  }
  return counts;
}

Result<void> RunStore::stage(RoundIndex round, ShardId shard, std::uint32_t part,
                             std::uint32_t parts, const SparseUpdate& update) {
  if (round < impl_->checkpoint) return {};
  return impl_->staged.add(round, shard, part, parts, update);
}

Result<bool> RunStore::has_rows(ShardId shard, std::span<const std::uint32_t> rows) {
  const Result<SelectedRows> selected = impl_->rows.read_selected(shard, rows);
  if (!selected) return selected.error();
  return std::ranges::count(selected->is_stored, 0) == 0;
}

Result<void> RunStore::drop_staged(RoundIndex round, ShardId shard) {
  return impl_->staged.erase_shard(std::max(round, impl_->checkpoint), shard);
}

Result<bool> RunStore::is_staged(RoundIndex round, ShardId shard) {
  if (round < impl_->checkpoint) return true;
  return impl_->staged.is_whole(round, shard);
}

Result<void> RunStore::settle(const SettledRound& settled) {
  if (settled.round < impl_->checkpoint) return {};
  return impl_->staged.settle(settled);
}

Result<std::vector<SettledRound>> RunStore::keep_settled(
    const std::function<bool(RoundIndex checkpoint)>& ends,
    const std::function<void(const Error&)>& on_damage) {
  impl_->open_fold.reset();
  // A decided fold that cannot be resumed: other commits may be staged for its round, and they
  // count only when the fold is decided again.
  WriteBatch batch;
  batch.erase(Table::kRun, as_bytes(kFoldKey));
  auto written = impl_->store->write(std::move(batch), Durability::kLazy);
  if (!written) return written.error();
  const RoundIndex end = RunPlan(impl_->identity.model).round_count();
  return impl_->staged.keep_settled(impl_->checkpoint, end, ends, on_damage);
}

Result<void> RunStore::discard_staged() {
  return impl_->staged.erase_all();
}

Result<void> RunStore::cut_rates() {
  if (auto discarded = discard_staged(); !discarded) return discarded;
  impl_->open_fold.reset();
  const BatchIndex next = RunPlan(impl_->identity.model).round_begin(impl_->checkpoint);
  std::vector<BatchIndex> cuts = impl_->rate_cuts;
  cuts.push_back(next);
  WriteBatch batch;
  put_text(batch, Table::kRun, as_bytes(kProgressKey),
           encode_record(ProgressRecord{impl_->checkpoint, next, cuts}));
  batch.erase(Table::kRun, as_bytes(kFoldKey));
  auto written = impl_->store->write(std::move(batch), Durability::kSync);
  if (written) impl_->rate_cuts = std::move(cuts);
  return written;
}

Result<std::string> RunStore::snapshot() {
  return impl_->store->snapshot();
}

Result<std::vector<TableSpace>> RunStore::space() {
  return impl_->store->space();
}

}  // namespace gleaner
