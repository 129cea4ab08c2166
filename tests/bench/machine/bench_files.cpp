#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;  // as RocksDB writes
constexpr std::uint64_t kFileParts = 24;

// As many of the wanted bytes as disk and memory have plenty of.
std::uint64_t part_pieces(const BenchShape& shape) {
  std::error_code error;
  const std::uint64_t disk = std::filesystem::space(shape.folder, error).available;
  const auto memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t bytes = std::min({shape.file_bytes, error ? 0 : disk / 4, memory / 4});
  return std::max<std::uint64_t>(1, bytes / kFileParts / kPieceBytes);
}

}  // namespace

Result<std::vector<BenchLine>> bench_files(const BenchShape& shape) {
  std::string path = shape.folder + "/gleaner-bench-XXXXXX";
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) {
    return Error{ErrorCode::kIo, fmt::format("no file can be made in {}", shape.folder)};
  }
  unlink(path.c_str());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fdopen(descriptor, "w"), &std::fclose);
  std::setbuf(file.get(), nullptr);
  const std::vector<char> piece(kPieceBytes, 'g');
  const std::uint64_t pieces = part_pieces(shape);
  std::vector<double> part_seconds;
  for (std::uint64_t part = 0; part < kFileParts; ++part) {
    const double start = processor_seconds();
    for (std::uint64_t i = 0; i < pieces; ++i) {
      if (std::fwrite(piece.data(), piece.size(), 1, file.get()) != 1) {
        return Error{ErrorCode::kIo,
                     fmt::format("{}: a file got no longer than {} of {} MiB", shape.folder,
                                 part * pieces + i, kFileParts * pieces)};
      }
    }
    part_seconds.push_back(processor_seconds() - start);
  }
  const auto part_bytes = static_cast<double>(pieces * kPieceBytes);
  return std::vector<BenchLine>{
      {"write a small file", "byte", part_seconds.front() / part_bytes, 0, ""},
      {"write a large file", "byte", part_seconds.back() / part_bytes, 0, ""}};
}

}  // namespace gleaner
