// Leases, offers, chunks, hand-overs, commits.
#include <algorithm>

#include "common/model/shard_rows.hpp"
#include "common/portable_math.hpp"
#include "schema/compact_lists.hpp"
#include "schema/wire/records.capnp.h"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

// Part `part` of `parts`.
void check_part(std::uint32_t part, std::uint32_t parts) {
  if (parts == 0 || parts > kPartsMax) malformed("parts", "{}, must be 1 to {}", parts, kPartsMax);
  if (part >= parts) malformed("part", "{} of {}", part, parts);
}

std::uint32_t read_chunk(std::uint32_t chunk) {
  if (chunk >= kPartsMax) malformed("chunk", "{}, at most {} chunks", chunk, kPartsMax);
  return chunk;
}

}  // namespace

void write(const LeaseRef& from, wire::Lease::Builder to) {
  to.setShard(raw(from.shard));
  to.setEpoch(raw(from.epoch));
}

LeaseRef read_lease(wire::Lease::Reader from) {
  const std::uint32_t shard = from.getShard();
  if (shard >= kOutputShardsMax + kInputShardsMax) malformed("lease.shard", "{}", shard);
  return LeaseRef{ShardId{shard}, LeaseEpoch{from.getEpoch()}};
}

void write(const std::vector<LeaseRef>& from, capnp::List<wire::Lease>::Builder to) {
  for (std::size_t i = 0; i < from.size(); ++i) write(from[i], to[static_cast<unsigned>(i)]);
}

std::vector<LeaseRef> read_leases(capnp::List<wire::Lease>::Reader from) {
  if (from.size() == 0 || from.size() > kOutputShardsMax) {
    malformed("leases", "{} entries, must be 1 to {}", from.size(), kOutputShardsMax);
  }
  std::vector<LeaseRef> to;
  to.reserve(from.size());
  for (const auto lease : from) {
    to.push_back(read_lease(lease));
    if (to.size() > 1 && to[to.size() - 2].shard >= to.back().shard) {
      malformed("leases", "entry {} is not above the one before", to.size() - 1);
    }
  }
  return to;
}

void write(const LeaseGrant& from, wire::LeaseGrant::Builder to) {
  write(from.lease, to.initLease());
  to.setBaseRound(from.base_round);
  to.setNextBatch(from.next_batch);
  to.setBaseChunks(from.base_chunks);
  to.setChunks(from.chunks);
  to.setLabelCounts(data_of(pack_counts(from.label_counts)));
  to.setIsHeld(from.is_held);
}

LeaseGrant read(wire::LeaseGrant::Reader from) {
  LeaseGrant to;
  to.lease = read_lease(from.getLease());
  to.base_round = from.getBaseRound();
  to.next_batch = from.getNextBatch();
  to.base_chunks = from.getBaseChunks();
  to.chunks = from.getChunks();
  if (to.chunks > kPartsMax) malformed("chunks", "{}, at most {}", to.chunks, kPartsMax);
  if (to.base_chunks > to.chunks) {
    malformed("base_chunks", "{} of {} chunks", to.base_chunks, to.chunks);
  }
  to.label_counts = unpack_counts("label_counts", view(from.getLabelCounts()), kLabelsMax);
  to.is_held = from.getIsHeld();
  if (to.is_held && (to.chunks > 0 || !to.label_counts.empty())) {
    malformed("is_held", "with {} chunks and {} label counts", to.chunks, to.label_counts.size());
  }
  return to;
}

void write(const ShardOffer& from, wire::ShardOffer::Builder to) {
  to.setCheckpoint(from.checkpoint);
  auto shards = to.initShards(static_cast<unsigned>(from.shards.size()));
  for (std::size_t i = 0; i < from.shards.size(); ++i) {
    auto shard = shards[static_cast<unsigned>(i)];
    write(from.shards[i].lease, shard.initLease());
    shard.setRows(from.shards[i].digest.rows);
    shard.setSum(from.shards[i].digest.sum);
  }
}

ShardOffer read(wire::ShardOffer::Reader from) {
  ShardOffer to;
  to.checkpoint = from.getCheckpoint();
  const auto shards = from.getShards();
  if (shards.size() > kOutputShardsMax + kInputShardsMax) {
    malformed("shards", "{} entries, at most {}", shards.size(),
              kOutputShardsMax + kInputShardsMax);
  }
  to.shards.reserve(shards.size());
  for (const auto shard : shards) {
    to.shards.push_back({read_lease(shard.getLease()), {shard.getRows(), shard.getSum()}});
    if (to.shards.size() > 1 &&
        to.shards[to.shards.size() - 2].lease.shard >= to.shards.back().lease.shard) {
      malformed("shards", "entry {} is not above the one before", to.shards.size() - 1);
    }
  }
  return to;
}

void write(const ChunkRequest& from, wire::ChunkRequest::Builder to) {
  write(from.lease, to.initLease());
  to.setChunk(from.chunk);
}

ChunkRequest read(wire::ChunkRequest::Reader from) {
  return ChunkRequest{read_lease(from.getLease()), read_chunk(from.getChunk())};
}

void write(const ShardChunk& from, wire::ShardChunk::Builder to) {
  write(from.lease, to.initLease());
  to.setChunk(from.chunk);
  write(from.rows, to.initRows());
}

ShardChunk read(wire::ShardChunk::Reader from) {
  return ShardChunk{read_lease(from.getLease()), read_chunk(from.getChunk()), read(from.getRows())};
}

void write(const ShardReady& from, wire::ShardReady::Builder to) {
  write(from.lease, to.initLease());
}

ShardReady read(wire::ShardReady::Reader from) {
  return ShardReady{read_lease(from.getLease())};
}

void write(const ReleaseRequest& from, wire::ReleaseRequest::Builder to) {
  write(from.lease, to.initLease());
}

ReleaseRequest read(wire::ReleaseRequest::Reader from) {
  return ReleaseRequest{read_lease(from.getLease())};
}

void write(const HandOver& from, wire::HandOver::Builder to) {
  write(from.lease, to.initLease());
  to.setBaseRound(from.base_round);
  to.setNextBatch(from.next_batch);
  to.setPart(from.part);
  to.setParts(from.parts);
  write(from.rows, to.initRows());
}

HandOver read(wire::HandOver::Reader from) {
  HandOver to;
  to.lease = read_lease(from.getLease());
  to.base_round = from.getBaseRound();
  to.next_batch = from.getNextBatch();
  to.part = from.getPart();
  to.parts = from.getParts();
  check_part(to.part, to.parts);
  to.rows = read(from.getRows());
  return to;
}

void write(const Revoke& from, wire::Revoke::Builder to) {
  write(from.lease, to.initLease());
}

Revoke read(wire::Revoke::Reader from) {
  return Revoke{read_lease(from.getLease())};
}

void write(const ShardCommit& from, wire::ShardCommit::Builder to) {
  write(from.lease, to.initLease());
  to.setRound(from.round);
  to.setPart(from.part);
  to.setParts(from.parts);
  write_update<wire::Update>(from.update, to.initUpdate());
}

ShardCommit read(wire::ShardCommit::Reader from) {
  ShardCommit to;
  to.lease = read_lease(from.getLease());
  to.round = from.getRound();
  to.part = from.getPart();
  to.parts = from.getParts();
  check_part(to.part, to.parts);
  to.update = read_update<wire::Update>(from.getUpdate());
  return to;
}

void write(const CommitCredit& from, wire::CommitCredit::Builder to) {
  to.setParts(from.parts);
}

CommitCredit read(wire::CommitCredit::Reader from) {
  const CommitCredit to{from.getParts()};
  if (to.parts == 0) malformed("parts", "is 0");
  return to;
}

// Rows and sparse updates: the bulk of what is downloaded, committed and stored.

namespace {

std::vector<std::uint32_t> read_row_ids(capnp::Data::Reader data) {
  auto rows = read_values<std::uint32_t>("rows", data);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] <= rows[i - 1]) {
      malformed("rows", "row {} after row {}, must ascend", rows[i], rows[i - 1]);
    }
  }
  return rows;
}

// `entries` of all rows together: the same number in each row, at most `width_max`.
void check_width(const char* field, std::size_t entries, std::size_t rows, std::size_t width_max) {
  if (rows == 0 ? entries != 0 : entries % rows != 0 || entries / rows > width_max) {
    malformed(field, "{} entries for {} rows, at most {} a row", entries, rows, width_max);
  }
}

std::vector<float> read_states(capnp::Data::Reader data, std::size_t rows) {
  auto states = read_floats("states", data);
  if (states.size() != rows) malformed("states", "{} entries for {} rows", states.size(), rows);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] < 0) malformed("states", "entry {} is {}", i, states[i]);
  }
  return states;
}

constexpr std::size_t kRowWidthMax = std::size_t{kHiddenMax} + 1;

}  // namespace

void write(const ShardRows& from, wire::Rows::Builder to) {
  to.setRows(data_of(bytes_of(from.rows)));
  to.setValues(data_of(bytes_of(from.values)));
  to.setStates(data_of(bytes_of(from.states)));
  to.setCodes(data_of(pack_codes(from.codes, from.rows.size())));
  to.setStaleCodes(data_of(from.stale_codes));
}

ShardRows read(wire::Rows::Reader from) {
  ShardRows to;
  to.rows = read_row_ids(from.getRows());
  to.values = read_floats("values", from.getValues());
  check_width("values", to.values.size(), to.rows.size(), kRowWidthMax);
  to.states = read_states(from.getStates(), to.rows.size());
  to.codes = unpack_codes("codes", view(from.getCodes()), to.rows.size());
  to.stale_codes = read_values<std::uint8_t>("stale_codes", from.getStaleCodes());
  if (!to.stale_codes.empty() && to.stale_codes.size() != to.rows.size()) {
    malformed("stale_codes", "{} entries for {} rows", to.stale_codes.size(), to.rows.size());
  }
  const auto is_flag = [](std::uint8_t flag) { return flag <= 1; };
  if (!std::all_of(to.stale_codes.begin(), to.stale_codes.end(), is_flag)) {
    malformed("stale_codes", "an entry is neither 0 nor 1");
  }
  return to;
}

template <typename Update>
void write_update(const SparseUpdate& from, typename Update::Builder to) {
  to.setRows(data_of(bytes_of(from.rows)));
  to.setScales(data_of(bytes_of(from.scales)));
  // A store compresses as it likes, and its records are for ever.
  constexpr bool is_wire = std::is_same_v<Update, wire::Update>;
  to.setLevels(data_of(is_wire ? pack_levels_small(from.levels, from.rows.size())
                               : pack_levels(from.levels, from.rows.size())));
  to.setBiases(data_of(bytes_of(from.biases)));
  to.setStates(data_of(bytes_of(from.states)));
}

template <typename Update>
SparseUpdate read_update(typename Update::Reader from) {
  SparseUpdate to;
  to.rows = read_row_ids(from.getRows());
  const std::size_t rows = to.rows.size();
  to.scales = read_floats("scales", from.getScales());
  if (to.scales.size() != rows)
    malformed("scales", "{} entries for {} rows", to.scales.size(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (!is_delta_scale(to.scales[i])) malformed("scales", "entry {} is {}", i, to.scales[i]);
  }
  to.levels = unpack_levels("levels", view(from.getLevels()), rows);
  to.biases = read_values<std::uint16_t>("biases", from.getBiases());
  check_width("biases", to.biases.size(), rows, 1);
  for (std::size_t i = 0; i < to.biases.size(); ++i) {
    if (!is_finite_half(to.biases[i])) malformed("biases", "entry {} is not finite", i);
  }
  to.states = read_states(from.getStates(), to.rows.size());
  return to;
}

template void write_update<wire::Update>(const SparseUpdate& from, wire::Update::Builder to);
template void write_update<record::Update>(const SparseUpdate& from, record::Update::Builder to);
template SparseUpdate read_update<wire::Update>(wire::Update::Reader from);
template SparseUpdate read_update<record::Update>(record::Update::Reader from);

}  // namespace gleaner
