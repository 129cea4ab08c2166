#include "common/train/hash_table.hpp"

#include <algorithm>
#include <limits>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kNarrowBits = 16;

constexpr std::uint64_t kNarrowRows = std::numeric_limits<std::uint16_t>::max();
static_assert(kOutputShardsMax <= kNarrowRows, "a shard's place fits a section's entry");

// Where a table's buckets begin among a shard's rows.
std::uint32_t turn_of(std::uint32_t table, std::uint32_t rows) {
  return static_cast<std::uint32_t>((mix64(table) >> 32) * rows >> 32);
}

}  // namespace

ShardCodes::ShardCodes(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows)
    : tables_(tables), rows_(rows) {
  const std::size_t count = std::size_t{tables} * rows;
  if (hash_bits <= kNarrowBits) {
    codes_.emplace<AlignedVector<std::uint16_t>>(count);
  } else {
    codes_.emplace<AlignedVector<std::uint32_t>>(count);
  }
}

void ShardCodes::read(std::uint32_t row, std::span<std::uint32_t> codes) const {
  GLEANER_CHECK(row < rows_ && codes.size() == tables_);
  std::visit(
      [&](const auto& words) {
        for (std::size_t t = 0; t < tables_; ++t) codes[t] = words[t * rows_ + row];
      },
      codes_);
}

void ShardCodes::write(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes) {
  GLEANER_CHECK(codes.size() == rows.size() * tables_);
  for (const std::uint32_t row : rows) GLEANER_CHECK(row < rows_);
  std::visit(
      [&]<typename Words>(Words& words) {
        // Table by table: there, the rows of a block are neighbours.
        for (std::size_t t = 0; t < tables_; ++t) {
          for (std::size_t i = 0; i < rows.size(); ++i) {
            words[t * rows_ + rows[i]] =
                static_cast<typename Words::value_type>(codes[i * tables_ + t]);
          }
        }
      },
      codes_);
}

std::uint64_t ShardCodes::memory_bytes() const {
  return std::visit([](const auto& words) { return words.capacity() * sizeof(words[0]); }, codes_);
}

std::uint64_t ShardCodes::bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows) {
  return tables * rows * (hash_bits <= kNarrowBits ? sizeof(std::uint16_t) : sizeof(std::uint32_t));
}

template <typename Word>
PackedTables<Word>::PackedTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows)
    : tables_(tables),
      rows_(rows),
      buckets_(std::size_t{1} << hash_bits),
      offsets_(tables * (buckets_ + 1)),
      entries_(tables == 0 ? 0 : std::size_t{tables} * rows + 1) {}

template <typename Word>
void PackedTables<Word>::rebuild(std::uint32_t table, std::span<const ShardCodes* const> shards,
                                 std::span<const std::uint32_t> begins) {
  std::uint32_t* const offsets = &offsets_[table * (buckets_ + 1)];
  Word* const entries = entries_.data() + std::size_t{table} * rows_;
  // Counts in offsets[code + 1], so that their running sum is each bucket's beginning.
  std::fill(offsets, offsets + buckets_ + 1, 0U);
  for (const ShardCodes* shard : shards) {
    shard->visit(table, [&](const auto* codes) {
      for (std::uint32_t row = 0; row < shard->rows(); ++row) {
        ++offsets[codes[row] + std::size_t{1}];
      }
    });
  }
  for (std::size_t code = 0; code < buckets_; ++code) offsets[code + 1] += offsets[code];
  // Placing a bucket's rows moves its offset to the bucket's end, where the next bucket begins.
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::uint32_t rows = shards[i]->rows();
    const std::uint32_t turn = turn_of(table, rows);
    shards[i]->visit(table, [&](const auto* codes) {
      const auto place = [&](std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t row = first; row < last; ++row) {
          entries[offsets[codes[row]]++] = static_cast<Word>(begins[i] + row);
        }
      };
      place(turn, rows);
      place(0, turn);
    });
  }
  for (std::size_t code = buckets_; code > 0; --code) offsets[code] = offsets[code - 1];
  offsets[0] = 0;
}

template <typename Word>
std::uint64_t PackedTables<Word>::memory_bytes() const {
  return offsets_.capacity() * sizeof(std::uint32_t) + entries_.capacity() * sizeof(Word);
}

template class PackedTables<std::uint16_t>;
template class PackedTables<std::uint32_t>;

HashTables::HashTables(std::uint32_t tables, std::uint32_t hash_bits)
    : tables_(tables), hash_bits_(hash_bits), packed_(PackedTables<std::uint16_t>(0, 0, 0)) {}

void HashTables::hold(std::span<const ShardCodes* const> shards) {
  shards_.assign(shards.begin(), shards.end());
  begins_.assign(1, 0);
  shards_by_section_.clear();
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    GLEANER_CHECK(shards_[i]->tables() == tables_);
    rows += shards_[i]->rows();
    const std::uint32_t sections = (shards_[i]->rows() + kSection - 1) / kSection;
    shards_by_section_.insert(shards_by_section_.end(), sections, static_cast<std::uint16_t>(i));
    begins_.push_back(begins_.back() + sections * kSection);
  }
  if (tables_ == 0) return;
  if (end() <= kNarrowRows) {
    packed_ = PackedTables<std::uint16_t>(tables_, hash_bits_, rows);
  } else {
    packed_ = PackedTables<std::uint32_t>(tables_, hash_bits_, rows);
  }
}

void HashTables::rebuild(std::uint32_t table) {
  GLEANER_CHECK(table < tables_);
  std::visit([&](auto& packed) { packed.rebuild(table, shards_, begins_); }, packed_);
}

void HashTables::rebuild() {
  for (std::uint32_t table = 0; table < tables_; ++table) rebuild(table);
}

std::vector<std::uint32_t> HashTables::bucket(std::uint32_t table, std::uint32_t code) const {
  return visit([&](const auto& packed) {
    const auto rows = packed.bucket(table, code);
    return std::vector<std::uint32_t>(rows.begin(), rows.end());
  });
}

std::uint64_t HashTables::memory_bytes() const {
  return visit([](const auto& packed) { return packed.memory_bytes(); }) +
         shards_by_section_.capacity() * sizeof(std::uint16_t);
}

std::uint64_t HashTables::bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows) {
  const std::uint64_t word = rows <= kNarrowRows ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  return tables * (rows * word + (std::uint64_t{1} << hash_bits) * sizeof(std::uint32_t));
}

}  // namespace gleaner
