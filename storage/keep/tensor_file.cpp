#include "storage/keep/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
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

// Whether the entry has a shape, and a range within the data.
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

// The entries of the file's tensors.
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

}  // namespace gleaner
