#include "common/data/point_writer.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <charconv>
#include <vector>

namespace gleaner {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

// One of the two encoders, and its output buffer.
struct TextOutput::Compressor {
  Compressor() = default;
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  ~Compressor() {
    if (is_gzip) deflateEnd(&gzip);
    ZSTD_freeCStream(zstd);
  }

  // False without memory.
  bool begin_gzip() {
    is_gzip = deflateInit2(&gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + 15, 8,
                           Z_DEFAULT_STRATEGY) == Z_OK;
    return is_gzip;
  }

  bool begin_zstd() {
    zstd = ZSTD_createCStream();
    return zstd != nullptr &&
           ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)) == 0;
  }

  Result<void> run_gzip(std::string_view text, bool is_last, AtomicFile& file) {
    // zlib's interface lacks const; it does not write to its input.
    gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    gzip.avail_in = static_cast<uInt>(text.size());
    int status = Z_OK;
    do {
      gzip.next_out = reinterpret_cast<Bytef*>(output.data());
      gzip.avail_out = static_cast<uInt>(output.size());
      status = deflate(&gzip, is_last ? Z_FINISH : Z_NO_FLUSH);
      GLEANER_CHECK(status != Z_STREAM_ERROR);
      Result<void> written = file.write(output.data(), output.size() - gzip.avail_out);
      if (!written) return written;
    } while (gzip.avail_out == 0 || (is_last && status != Z_STREAM_END));
    return {};
  }

  Result<void> run_zstd(std::string_view text, bool is_last, AtomicFile& file) {
    ZSTD_inBuffer input{text.data(), text.size(), 0};
    for (;;) {
      ZSTD_outBuffer target{output.data(), output.size(), 0};
      const std::size_t left =
          ZSTD_compressStream2(zstd, &target, &input, is_last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) {
        return Error{ErrorCode::kResources, fmt::format("{}: cannot be compressed: {}", file.path(),
                                                        ZSTD_getErrorName(left))};
      }
      if (auto written = file.write(output.data(), target.pos); !written) return written;
      if (is_last ? left == 0 : input.pos == input.size) return {};
    }
  }

  bool is_gzip = false;
  z_stream gzip{};
  ZSTD_CStream* zstd = nullptr;
  std::vector<char> output = std::vector<char>(kPieceBytes);
};

TextOutput::TextOutput(std::unique_ptr<AtomicFile> file, std::unique_ptr<Compressor> compressor)
    : file_(std::move(file)), compressor_(std::move(compressor)) {}

TextOutput::~TextOutput() = default;

Result<std::unique_ptr<TextOutput>> TextOutput::create(const std::string& path) {
  Result<std::unique_ptr<AtomicFile>> file = AtomicFile::create(path);
  if (!file) return file.error();
  std::unique_ptr<Compressor> compressor;
  bool is_ready = true;
  if (path.ends_with(".gz")) {
    compressor = std::make_unique<Compressor>();
    is_ready = compressor->begin_gzip();
  } else if (path.ends_with(".zst")) {
    compressor = std::make_unique<Compressor>();
    is_ready = compressor->begin_zstd();
  }
  if (!is_ready) return Error{ErrorCode::kResources, path + ": no memory to compress it"};
  return std::unique_ptr<TextOutput>(new TextOutput(std::move(*file), std::move(compressor)));
}

Result<void> TextOutput::write(std::string_view text) {
  if (!compressor_) return file_->write(text.data(), text.size());
  pending_ += text;
  return pending_.size() < kPieceBytes ? Result<void>{} : compress(false);
}

Result<void> TextOutput::compress(bool is_last) {
  Result<void> done = compressor_->is_gzip ? compressor_->run_gzip(pending_, is_last, *file_)
                                           : compressor_->run_zstd(pending_, is_last, *file_);
  pending_.clear();
  return done;
}

Result<void> TextOutput::commit(AtomicFile::Existing existing) {
  if (compressor_) {
    if (auto flushed = compress(true); !flushed) return flushed;
  }
  return file_->commit(existing);
}

std::string xc_header(std::uint64_t points, Dimensions dimensions) {
  return fmt::format("{} {} {}\n", points, dimensions.features, dimensions.labels);
}

void append_libsvm(std::string& text, const Point& point, std::uint32_t first_feature) {
  std::array<char, 32> digits;
  const auto append = [&](auto number) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text.append(digits.data(), end);
  };
  for (std::size_t i = 0; i < point.labels.size(); ++i) {
    if (i > 0) text += ',';
    append(point.labels[i]);
  }
  // An example without labels begins with a blank; one without labels and features is a single
  // blank.
  if (point.labels.empty() && point.features.empty()) text += ' ';
  for (std::size_t i = 0; i < point.features.size(); ++i) {
    text += ' ';
    append(point.features[i] + first_feature);
    text += ':';
    append(point.values[i]);
  }
  text += '\n';
}

}  // namespace gleaner
