#include "volunteer/train/output/shard_codes.hpp"

#include "common/check.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kNarrowBits = 16;

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
        // Table by table: rows of a block are neighbours there.
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

}  // namespace gleaner
