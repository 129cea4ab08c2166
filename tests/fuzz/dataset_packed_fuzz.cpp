// Input: a packed file. Its magic number, version and all checksums are set right first, as a
// fuzzer would hardly guess them; what opens must then be sound to the last row.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "common/bytes.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/data/packed_format.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

void set_block_checksums(Bytes& bytes, const packed::Header& header) {
  const std::uint64_t blocks = packed::block_count(header.points);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t first = block * packed::kBlockPoints;
    const std::uint64_t last = std::min(first + packed::kBlockPoints, header.points);
    const std::uint8_t* index = bytes.data() + header.index_offset;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::memcpy(&begin, index + 8 * first, 8);
    std::memcpy(&end, index + 8 * last, 8);
    if (begin > end || end > bytes.size()) return;
    ChecksumStream sum;
    sum.add(bytes.data() + begin, end - begin);
    sum.add(index + 8 * first, 8 * (last - first + 1));
    const std::uint64_t value = sum.value();
    std::memcpy(bytes.data() + header.blocks_offset + 8 * block, &value, 8);
  }
}

void set_checksums(Bytes& bytes) {
  packed::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.magic = packed::kMagic;
  header.version = packed::kVersion;
  const auto fits = [&](std::uint64_t offset, std::uint64_t count, std::uint64_t each) {
    return offset <= bytes.size() && count <= (bytes.size() - offset) / each;
  };
  if (header.points < bytes.size() && fits(header.index_offset, header.points + 1, 8) &&
      fits(header.blocks_offset, packed::block_count(header.points), 8)) {
    set_block_checksums(bytes, header);
    header.blocks_checksum =
        checksum(bytes.data() + header.blocks_offset, 8 * packed::block_count(header.points));
  }
  if (fits(header.key_offset, header.key_bytes, 1)) {
    header.key_checksum = checksum(bytes.data() + header.key_offset, header.key_bytes);
  }
  header.header_checksum = packed::checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
}

void check_rows(const PackedDataset& dataset) {
  for (std::uint64_t i = 0; i < dataset.points(); ++i) {
    const ExampleView view = dataset.example(i);
    GLEANER_CHECK(view.features.size() == view.values.size());
    for (const std::uint32_t label : view.labels) GLEANER_CHECK(label < dataset.labels());
    for (const std::uint32_t feature : view.features) GLEANER_CHECK(feature < dataset.features());
    for (const float value : view.values) GLEANER_CHECK(std::isfinite(value));
  }
}

}  // namespace
}  // namespace gleaner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  Bytes bytes(data, data + size);
  if (size >= sizeof(packed::Header)) set_checksums(bytes);
  const int fd = ::memfd_create("packed", MFD_CLOEXEC);
  GLEANER_CHECK(fd >= 0);
  GLEANER_CHECK(::write(fd, bytes.data(), size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  for (const std::uint64_t check_bytes_max : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
    const Result<std::unique_ptr<PackedDataset>> dataset =
        PackedDataset::open(path, {check_bytes_max});
    if (dataset.ok() && (*dataset)->verify_all().ok()) check_rows(**dataset);
  }
  ::close(fd);
  return 0;
}
