#include "storage/keep/model_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace gleaner {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written by plain copies");

Error system_error(const std::string& path, const char* doing) {
  const int code = errno;
  return {code == ENOSPC ? ErrorCode::kDiskFull : ErrorCode::kIo,
          fmt::format("{} cannot be {}: {}", path, doing, std::generic_category().message(code))};
}

}  // namespace

TensorTypeNames type_names(TensorType type) {
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

std::uint64_t TensorSpec::bytes() const {
  std::uint64_t total = type_names(type).bytes;
  for (const std::uint64_t extent : shape) total *= extent;
  return total;
}

void ModelFile::plan_safetensors(const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (const TensorSpec& tensor : tensors_) {
    header[tensor.name] = {{"dtype", type_names(tensor.type).safetensors},
                           {"shape", tensor.shape},
                           {"data_offsets", {end, end + tensor.bytes()}}};
    offsets_.push_back(end);
    end += tensor.bytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(aligned(sizeof(std::uint64_t) + text.size()) - sizeof(std::uint64_t), ' ');
  const std::uint64_t bytes = text.size();
  heads_.push_back(std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text);
  head_offsets_.push_back(0);
  for (std::uint64_t& offset : offsets_) offset += heads_[0].size();
  size_ = heads_[0].size() + end;
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
  // Allocates the file now: if a mapped file met a full disk, the process would be killed.
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
