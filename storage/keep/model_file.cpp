#include "storage/keep/model_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

namespace gleaner {
namespace {

constexpr std::uint64_t kHeaderBytesMax = std::uint64_t{16} << 20;
constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kZipMagic = "PK\3\4";

bool are_numbers(const nlohmann::json& list) {
  return list.is_array() &&
         std::ranges::all_of(list, [](const auto& n) { return n.is_number_unsigned(); });
}

// Whether the entry has a shape, and a place within the data.
bool is_tensor(const nlohmann::json& entry, std::uint64_t data_bytes) {
  const auto shape = entry.find("shape");
  const auto place = entry.find("data_offsets");
  if (shape == entry.end() || place == entry.end() || !are_numbers(*shape)) return false;
  if (!are_numbers(*place) || place->size() != 2) return false;
  const auto begin = (*place)[0].get<std::uint64_t>();
  const auto end = (*place)[1].get<std::uint64_t>();
  return begin <= end && end <= data_bytes;
}

}  // namespace

// The file's tensors, and where they are.
struct TensorFile::Header {
  nlohmann::json json;
  const std::uint8_t* data = nullptr;
  std::uint64_t data_bytes = 0;
};

std::uint64_t TensorFile::Tensor::count() const {
  std::uint64_t product = data == nullptr ? 0 : 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

TensorFile::TensorFile() : header_(std::make_unique<Header>()) {}

TensorFile::~TensorFile() {
  os::unmap_file(map_);
}

Error TensorFile::refuse(const std::string& what) const {
  return {ErrorCode::kInvalidData, fmt::format("{}: {}", path_, what)};
}

Result<std::unique_ptr<TensorFile>> TensorFile::open(const std::string& path) {
  std::unique_ptr<TensorFile> made(new TensorFile());
  made->path_ = path;
  const std::optional<os::FileView> map = os::map_file(path);
  if (!map) return made->refuse(std::generic_category().message(errno));
  made->map_ = *map;
  if (map->begin == nullptr || map->bytes < kLengthBytes) {
    return made->refuse("it is no safetensors file");
  }
  if (auto read = made->read_header(); !read) return read.error();
  return made;
}

Result<void> TensorFile::read_header() {
  const auto* const bytes = static_cast<const std::uint8_t*>(map_.begin);
  const std::uint64_t rest = map_.bytes - kLengthBytes;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes, kLengthBytes);
  if (std::memcmp(bytes, kZipMagic.data(), kZipMagic.size()) == 0) {
    return refuse("it is an npz file: export the model as NAME.safetensors to begin with it");
  }
  if (header_bytes > std::min(kHeaderBytesMax, rest)) return refuse("it is no safetensors file");
  header_->data = bytes + kLengthBytes + header_bytes;
  header_->data_bytes = rest - header_bytes;
  header_->json = nlohmann::json::parse(bytes + kLengthBytes, header_->data, nullptr, false);
  if (!header_->json.is_object()) return refuse("its header is no JSON object");
  for (const auto& [name, entry] : header_->json.items()) {
    if (!entry.is_object() || !entry.contains("data_offsets")) continue;
    if (!is_tensor(entry, header_->data_bytes)) {
      return refuse("it is cut short: not all of its tensors are there");
    }
  }
  if (const auto said = header_->json.find("__metadata__"); said != header_->json.end()) {
    for (const auto& [key, value] : said->items()) {
      if (value.is_string()) metadata_[key] = value.get<std::string>();
    }
  }
  return {};
}

bool TensorFile::has(const char* name) const {
  return header_->json.contains(name);
}

Result<std::string_view> TensorFile::text(const char* name) const {
  const auto entry = header_->json.find(name);
  if (entry == header_->json.end()) return std::string_view();
  const bool is_text = entry->is_object() && is_tensor(*entry, header_->data_bytes) &&
                       entry->contains("dtype") && (*entry)["dtype"] == "U8" &&
                       (*entry)["shape"].size() == 1;
  const std::uint64_t begin = is_text ? (*entry)["data_offsets"][0].get<std::uint64_t>() : 0;
  const std::uint64_t end = is_text ? (*entry)["data_offsets"][1].get<std::uint64_t>() : 0;
  if (!is_text || (*entry)["shape"][0] != end - begin) {
    return refuse(fmt::format("{} is no list of bytes", name));
  }
  return std::string_view(reinterpret_cast<const char*>(header_->data) + begin, end - begin);
}

Result<TensorFile::Tensor> TensorFile::tensor(const char* name, const char* type,
                                              std::size_t dimensions,
                                              std::uint64_t extent_max) const {
  const auto entry = header_->json.find(name);
  if (entry == header_->json.end()) return refuse(fmt::format("it has no tensor {}", name));
  const bool is_typed = entry->is_object() && entry->contains("dtype") && (*entry)["dtype"] == type;
  if (!is_typed || !is_tensor(*entry, header_->data_bytes)) {
    return refuse(fmt::format("{} is no tensor of type {}", name, type));
  }
  Tensor tensor;
  std::uint64_t bytes = sizeof(std::uint32_t);
  for (const auto& extent : (*entry)["shape"]) {
    const auto n = extent.get<std::uint64_t>();
    if (n == 0 || n > extent_max || bytes > header_->data_bytes / n) {
      return refuse(fmt::format("{} has an impossible shape", name));
    }
    bytes *= n;
    tensor.shape.push_back(n);
  }
  if (tensor.shape.size() != dimensions) {
    return refuse("the shapes of its tensors do not make a model");
  }
  const auto begin = (*entry)["data_offsets"][0].get<std::uint64_t>();
  if ((*entry)["data_offsets"][1].get<std::uint64_t>() - begin != bytes) {
    return refuse(fmt::format("{} does not have the bytes that its shape takes", name));
  }
  tensor.data = header_->data + begin;
  return tensor;
}

namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written by plain copies");

// Tensors begin at multiples of it, so that readers may map them.
constexpr std::uint64_t kAlignment = 64;

struct TypeNames {
  std::uint64_t bytes;
  const char* safetensors;
  const char* numpy;
};

TypeNames names_of(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return {4, "F32", "<f4"};
    case TensorType::kFloat64:
      return {8, "F64", "<f8"};
    case TensorType::kUint32:
      return {4, "U32", "<u4"};
    case TensorType::kUint8:
      break;
  }
  return {1, "U8", "|u1"};
}

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// Little-endian numbers one after the other, as ZIP has them.
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

constexpr std::uint64_t kZip64 = 45;  // the version that reads 64-bit sizes
constexpr std::uint64_t kSee64 = 0xffffffff;
constexpr std::uint64_t kFirstDate = 33;  // 1 January 1980: the same bytes at any time

// The fields that local and central headers share, from the version on.
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
  // A second extra field, of zeros, puts the data where it is to begin.
  if (padding != 0) fields.u16(0xffff).u16(padding - 4).text(std::string(padding - 4, '\0'));
  return fields.bytes();
}

std::string numpy_header(const TensorSpec& tensor) {
  std::string shape;
  for (const std::uint64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 names_of(tensor.type).numpy, shape);
  constexpr std::size_t kPreamble = 10;
  while ((kPreamble + dict.size() + 1) % kAlignment != 0) dict += ' ';
  dict += '\n';
  ZipFields fields;
  return fields.text("\x93NUMPY").u16(1).u16(dict.size()).text(dict).bytes();
}

Error system_error(const std::string& path, const char* doing) {
  const int code = errno;
  return {code == ENOSPC ? ErrorCode::kDiskFull : ErrorCode::kIo,
          fmt::format("{} cannot be {}: {}", path, doing, std::generic_category().message(code))};
}

}  // namespace

std::uint64_t TensorSpec::bytes() const {
  std::uint64_t total = names_of(type).bytes;
  for (const std::uint64_t extent : shape) total *= extent;
  return total;
}

void ModelFile::plan_safetensors(const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (const TensorSpec& tensor : tensors_) {
    header[tensor.name] = {{"dtype", names_of(tensor.type).safetensors},
                           {"shape", tensor.shape},
                           {"data_offsets", {end, end + tensor.bytes()}}};
    offsets_.push_back(end);
    end += tensor.bytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(aligned(kLengthBytes + text.size()) - kLengthBytes, ' ');
  heads_.push_back(ZipFields().u64(text.size()).text(text).bytes());
  head_offsets_.push_back(0);
  for (std::uint64_t& offset : offsets_) offset += heads_[0].size();
  size_ = heads_[0].size() + end;
}

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
  // The directory: a header of the entry, its name and its extra field for each; then the ends.
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

Result<std::unique_ptr<ModelFile>> ModelFile::create(
    const std::string& path, ModelFileForm form, std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  std::unique_ptr<ModelFile> made(new ModelFile);
  made->path_ = path;
  made->part_path_ = path + ".part";
  made->form_ = form;
  made->tensors_ = std::move(tensors);
  if (form == ModelFileForm::kNpz) {
    made->plan_npz();
  } else {
    made->plan_safetensors(metadata);
  }
  const std::string& part = made->part_path_;
  made->file_ = ::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (made->file_ < 0) return system_error(part, "made");
  // Room is taken now: a full disk under a mapping would end the process.
  if (const int code = posix_fallocate(made->file_, 0, static_cast<off_t>(made->size_));
      code != 0) {
    errno = code;
    return system_error(part, "given its size");
  }
  void* const map =
      ::mmap(nullptr, made->size_, PROT_READ | PROT_WRITE, MAP_SHARED, made->file_, 0);
  if (map == MAP_FAILED) return system_error(part, "mapped");
  made->map_ = static_cast<std::uint8_t*>(map);
  for (std::size_t i = 0; i < made->heads_.size(); ++i) {
    const std::string& head = made->heads_[i];
    std::memcpy(made->map_ + made->head_offsets_[i], head.data(), head.size());
  }
  return made;
}

ModelFile::~ModelFile() {
  if (map_ != nullptr) ::munmap(map_, size_);
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(part_path_.c_str());
}

std::span<std::uint8_t> ModelFile::data(std::size_t tensor) {
  return {map_ + offsets_[tensor], tensors_[tensor].bytes()};
}

Result<void> ModelFile::finish() {
  if (form_ == ModelFileForm::kNpz) finish_npz();
  if (::msync(map_, size_, MS_SYNC) != 0 || ::fsync(file_) != 0) {
    return system_error(part_path_, "written");
  }
  if (std::rename(part_path_.c_str(), path_.c_str()) != 0) {
    return system_error(path_, "put in its place");
  }
  ::close(std::exchange(file_, -1));
  return {};
}

}  // namespace gleaner
