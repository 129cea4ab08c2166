// Projections of hidden codes and rows, for hashing. Included by kernel_bodies.hpp, as it is: once
// a level, with that level's `Vec`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/kernels/kernel_vectors.hpp"
#include "common/kernels/kernels.hpp"

namespace gleaner {
namespace {

// The levels of a Walsh-Hadamard transform that combine vectors, from `distance` on.
void hadamard_between(Vec* values, std::size_t count, std::size_t distance) {
  for (; distance < count; distance *= 2) {
    for (std::size_t first = 0; first < count; first += 2 * distance) {
      for (std::size_t v = first; v < first + distance; ++v) {
        const Vec sum = Vec::add(values[v], values[v + distance]);
        values[v + distance] = Vec::sub(values[v], values[v + distance]);
        values[v] = sum;
      }
    }
  }
}

// The levels from `Distance` on, of `Count` vectors that stay in registers.
template <std::size_t Count, std::size_t Distance>
[[gnu::always_inline]] inline void hadamard_within(Vec* x) {
  if constexpr (Distance < Count) {
#pragma GCC unroll 4
    for (std::size_t pair = 0; pair < Count / 2; ++pair) {
      const std::size_t low = pair / Distance * 2 * Distance + pair % Distance;
      const Vec sum = Vec::add(x[low], x[low + Distance]);
      x[low + Distance] = Vec::sub(x[low], x[low + Distance]);
      x[low] = sum;
    }
    hadamard_within<Count, 2 * Distance>(x);
  }
}

// The lower levels, of as many vectors as fit the registers: within vectors, then between them.
template <std::size_t Count>
void hadamard_start(const SignProjections& projections, std::size_t first, const float* row,
                    std::size_t column, Vec* values) {
  Vec x[Count];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Count; ++v) {
    const std::size_t i = column + v * kWidth;
    x[v] =
        i < projections.width
            ? Vec::hadamard(Vec::mul(Vec::load(projections.flips + first + i), Vec::load(row + i)))
            : Vec::zero();
  }
  hadamard_within<Count, 1>(x);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Count; ++v) values[v] = x[v];
}

constexpr std::size_t kProjectionVectorsMax = 4096 / kWidth;

// `Count` vectors of the row at a time fit the registers; it divides a block.
template <std::size_t Count>
void project_row(const SignProjections& projections, const float* row, std::uint16_t* bits) {
  const std::size_t vectors = projections.block / kWidth;
  Vec values[kProjectionVectorsMax];
  for (std::size_t first = 0; first < projections.count; first += projections.block) {
    for (std::size_t v = 0; v < vectors; v += Count) {
      hadamard_start<Count>(projections, first, row, v * kWidth, values + v);
    }
    hadamard_between(values, vectors, Count);
    for (std::size_t v = 0; v < vectors; ++v) {
      bits[first / kWidth + v] = Vec::positive_bits(values[v]);
    }
  }
}

void project_rows_kernel(const SignProjections& projections, const float* const* rows,
                         std::size_t count, std::uint16_t* bits) {
  const std::size_t words = projections.count / kWidth;
  for (std::size_t r = 0; r < count; ++r) {
    if (r + kPrefetchRows < count) {
      const float* ahead = rows[r + kPrefetchRows];
      for (std::size_t i = 0; i < projections.width; i += kWidth) __builtin_prefetch(ahead + i);
    }
    if (projections.block % (8 * kWidth) == 0) {
      project_row<8>(projections, rows[r], bits + r * words);
    } else {
      project_row<2>(projections, rows[r], bits + r * words);
    }
  }
}

}  // namespace
}  // namespace gleaner
