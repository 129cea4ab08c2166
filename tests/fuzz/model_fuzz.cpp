// Input: a model in safetensors form. The header's length is set right where it leads out of the
// file, as a fuzzer would hardly guess it; the rows of a model that opens are values or an error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "common/bytes.hpp"
#include "common/limits.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "storage/keep/initial_model.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint32_t kMore = 3;  // labels and features that the model does not have

void set_length(Bytes& bytes) {
  if (bytes.size() < kLengthBytes) return;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  length = std::min<std::uint64_t>(length, bytes.size() - kLengthBytes);
  std::memcpy(bytes.data(), &length, kLengthBytes);
}

void read_rows(const InitialModel& file) {
  ModelConfig model;
  model.features = file.features() + kMore;
  // A file with wide rows may have fewer labels than the run: the training data give the other
  // rows.
  model.labels = file.labels() + (file.hidden() == 0 ? 0 : kMore);
  model.wide_rows = file.hidden() == 0 ? kWideRowsMax : 0;
  model.hidden = file.hidden();
  model.output_shards = 2;
  model.input_shards = 1;
  if (!validate(model)) return;
  GLEANER_CHECK(file.check_fits(model).ok());
  const ShardMap map(model);
  const InitialRows rows = file.rows(model);
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const auto made = rows(ShardId{s}, 0, map.row_count(ShardId{s}));
    if (!made) continue;
    GLEANER_CHECK(made->values.size() == made->rows.size() * map.row_width(ShardId{s}));
  }
}

}  // namespace
}  // namespace gleaner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  Bytes bytes(data, data + size);
  set_length(bytes);
  const int fd = ::memfd_create("model", MFD_CLOEXEC);
  GLEANER_CHECK(fd >= 0);
  GLEANER_CHECK(::write(fd, bytes.data(), size) == static_cast<ssize_t>(size));
  const auto model = InitialModel::open("/proc/self/fd/" + std::to_string(fd));
  if (model) {
    GLEANER_CHECK((*model)->fingerprint() != 0);
    read_rows(**model);
  } else {
    GLEANER_CHECK(!model.error().message.empty());
  }
  ::close(fd);
  return 0;
}
