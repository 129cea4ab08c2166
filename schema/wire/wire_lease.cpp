// Leases, offers, chunks, hand-overs, commits.
#include "schema/compact_lists.hpp"
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

}  // namespace gleaner
