// A model as npz: a ZIP of NumPy arrays, not compressed, whose data begin where readers may map
// them.
#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "storage/keep/model_file.hpp"

namespace gleaner {
namespace {

// Writes little-endian numbers one after another, as ZIP needs them.
class ZipFields {
 public:
  ZipFields& u16(std::uint64_t value) { return add(value, 2); }

  ZipFields& u32(std::uint64_t value) { return add(value, 4); }

  ZipFields& u64(std::uint64_t value) { return add(value, 8); }

  ZipFields& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  ZipFields& add(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

constexpr std::uint64_t kZip64 = 45;  // version needed to read 64-bit sizes
constexpr std::uint64_t kSee64 = 0xffffffff;
constexpr std::uint64_t kFirstDate = 33;  // 1 January 1980: a fixed date keeps the bytes the same

// The fields that local and central headers share, beginning with the version.
void add_entry_fields(ZipFields& fields, std::uint64_t checksum, std::size_t name_bytes,
                      std::size_t extra_bytes) {
  fields.u16(kZip64).u16(0).u16(0).u16(0).u16(kFirstDate).u32(checksum).u32(kSee64).u32(kSee64);
  fields.u16(name_bytes).u16(extra_bytes);
}

std::string local_header(const std::string& name, std::uint64_t checksum, std::uint64_t bytes,
                         std::uint64_t padding) {
  ZipFields fields;
  fields.u32(0x04034b50);
  add_entry_fields(fields, checksum, name.size(), 20 + padding);
  fields.text(name).u16(1).u16(16).u64(bytes).u64(bytes);
  // A second extra field of zeros moves the data to its aligned place.
  if (padding != 0) fields.u16(0xffff).u16(padding - 4).text(std::string(padding - 4, '\0'));
  return fields.bytes();
}

std::string numpy_header(const TensorSpec& tensor) {
  std::string shape;
  for (const std::uint64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type_names(tensor.type).numpy, shape);
  constexpr std::size_t kPreamble = 10;
  while ((kPreamble + dict.size() + 1) % ModelFile::kAlignment != 0) dict += ' ';
  dict += '\n';
  ZipFields fields;
  return fields.text("\x93NUMPY").u16(1).u16(dict.size()).text(dict).bytes();
}

}  // namespace

void ModelFile::plan_npz() {
  std::uint64_t end = 0;
  for (const TensorSpec& tensor : tensors_) {
    const std::string name = tensor.name + ".npy";
    const std::string numpy = numpy_header(tensor);
    const std::uint64_t content = numpy.size() + tensor.bytes();
    const std::uint64_t plain = end + local_header(name, 0, content, 0).size() + numpy.size();
    std::uint64_t padding = aligned(plain) - plain;
    if (padding != 0 && padding < 4) padding += kAlignment;
    head_offsets_.push_back(end);
    heads_.push_back(local_header(name, 0, content, padding) + numpy);
    offsets_.push_back(end + heads_.back().size());
    end = offsets_.back() + tensor.bytes();
  }
  // The directory: for each entry a header, its name and its extra field; then the end records.
  for (const TensorSpec& tensor : tensors_) end += 46 + tensor.name.size() + 4 + 28;
  size_ = end + 56 + 20 + 22;
}

void ModelFile::finish_npz() {
  ZipFields directory;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::string name = tensors_[i].name + ".npy";
    const std::size_t numpy_bytes = numpy_header(tensors_[i]).size();
    const std::uint64_t content = numpy_bytes + tensors_[i].bytes();
    const std::uint64_t padding =
        heads_[i].size() - numpy_bytes - local_header(name, 0, content, 0).size();
    const std::uint8_t* source = map_ + offsets_[i] - numpy_bytes;
    const uLong checksum = crc32_z(0, source, content);
    const std::string head = local_header(name, checksum, content, padding);
    std::memcpy(map_ + head_offsets_[i], head.data(), head.size());
    directory.u32(0x02014b50).u16(kZip64);
    add_entry_fields(directory, checksum, name.size(), 28);
    directory.u16(0).u16(0).u16(0).u32(0).u32(kSee64).text(name);
    directory.u16(1).u16(24).u64(content).u64(content).u64(head_offsets_[i]);
    begin = offsets_[i] + tensors_[i].bytes();
  }
  const std::uint64_t bytes = directory.bytes().size();
  const std::uint64_t count = tensors_.size();
  directory.u32(0x06064b50).u64(44).u16(kZip64).u16(kZip64).u32(0).u32(0);
  directory.u64(count).u64(count).u64(bytes).u64(begin);
  directory.u32(0x07064b50).u32(0).u64(begin + bytes).u32(1);
  directory.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count).u32(kSee64).u32(kSee64).u16(0);
  std::memcpy(map_ + begin, directory.bytes().data(), directory.bytes().size());
}

}  // namespace gleaner
