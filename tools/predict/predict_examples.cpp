#include "tools/predict/predict_examples.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "common/counter_random.hpp"
#include "common/order_statistics.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

// Whatever is wrong with a file of points, it is not the store: the codes that both share mean the
// store to whoever turns them into an exit status.
Error as_input_error(Error error) {
  if (error.code != ErrorCode::kInvalidArgument && error.code != ErrorCode::kIo) {
    error.code = ErrorCode::kInvalidData;
  }
  return error;
}

// Plain text, as it comes.
class StandardInput final : public ByteSource {
 public:
  explicit StandardInput(std::function<Result<void>()> before_wait)
      : before_wait_(std::move(before_wait)) {}

  Result<std::size_t> read(std::span<char> target) override {
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (::poll(&waiting, 1, 0) == 0) {
      if (auto done = before_wait_(); !done) return done.error();
    }
    for (;;) {
      const ssize_t count = ::read(STDIN_FILENO, target.data(), target.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return Error{ErrorCode::kIo, fmt::format("{} cannot be read: {}", name_,
                                                 std::generic_category().message(errno))};
      }
      position_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
  }

  [[nodiscard]] const std::string& name() const override { return name_; }

  [[nodiscard]] std::uint64_t position() const override { return position_; }

  [[nodiscard]] std::uint64_t total() const override { return 0; }

 private:
  std::function<Result<void>()> before_wait_;
  std::string name_ = kStandardInputName;
  std::uint64_t position_ = 0;
};

// Text is checked line by line as it is read; a packed file knows its largest ids.
Result<void> check_packed(const PackedDataset& packed, const Dimensions& limits,
                          const std::string& limits_name) {
  const Dimensions used = packed.summary().used;
  if (used.features <= limits.features && used.labels <= limits.labels) return {};
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} uses {} features and {} labels, but {} has {} and {}: it is of "
                           "another data set",
                           packed.path(), used.features, used.labels, limits_name, limits.features,
                           limits.labels)};
}

}  // namespace

Result<std::unique_ptr<PredictExamples>> PredictExamples::open(
    const std::string& path, const TextOptions& options,
    std::function<Result<void>()> before_wait) {
  GLEANER_CHECK(options.limits.has_value());
  std::unique_ptr<PredictExamples> points(new PredictExamples);
  if (path == kStandardInput) {
    auto stream =
        TextReader::open(std::make_unique<StandardInput>(std::move(before_wait)), options);
    if (!stream) return stream.error();
    points->stream_ = std::move(*stream);
    return points;
  }
  auto file = PointStream::open(path, options);
  if (!file) return as_input_error(file.error());
  points->file_ = std::move(*file);
  if (const PackedDataset* packed = points->file_->packed()) {
    auto fits = check_packed(*packed, *options.limits, options.limits_name);
    if (!fits) return fits.error();
  }
  return points;
}

Result<std::unique_ptr<PredictExamples>> PredictExamples::open_texts(
    const std::string& path, WordModel words, std::function<Result<void>()> before_wait) {
  std::unique_ptr<ByteSource> source;
  if (path == kStandardInput) {
    source = std::make_unique<StandardInput>(std::move(before_wait));
  } else {
    auto file = open_file_source(path);
    if (!file) return as_input_error(file.error());
    source = std::move(*file);
  }
  std::unique_ptr<PredictExamples> points(new PredictExamples);
  points->texts_ = std::make_unique<Texts>(Texts{LineReader(std::move(source)), std::move(words)});
  return points;
}

Result<bool> PredictExamples::next(IndexedExample& point) {
  if (texts_) {
    std::string_view line;
    // Not as_input_error: it may be before_wait's.
    Result<bool> has_line = texts_->lines.next(line);
    if (!has_line || !*has_line) return has_line;
    point = {next_++, {}, std::string(line)};
    point.point = texts_->words.point_of(point.name);
    return true;
  }
  if (stream_) {
    // Not as_input_error: it may be before_wait's.
    Result<bool> has_point = stream_->next(point.point);
    point.index = next_++;
    return has_point;
  }
  Result<bool> has_point = file_->next(point.point);
  if (!has_point) return as_input_error(has_point.error());
  point.index = next_++;
  return has_point;
}

std::optional<std::uint64_t> PredictExamples::announced_points() const {
  if (texts_) return std::nullopt;
  return stream_ ? stream_->announced_points() : file_->announced_points();
}

std::optional<Dimensions> PredictExamples::announced() const {
  if (texts_) return std::nullopt;
  if (stream_) return stream_->announced();
  if (!file_->announced_points()) return std::nullopt;  // libsvm text
  return file_->dimensions();
}

bool PredictExamples::is_normalised() const {
  return file_ && file_->packed() != nullptr && file_->packed()->summary().is_normalized;
}

AnsweringOptions asking_options(unsigned threads, std::uint32_t candidates) {
  AnsweringOptions options;
  options.threads = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  options.candidates = candidates;
  options.reads_all_first = false;
  return options;
}

TextOptions limits_of(const ModelConfig& model, const ReadFlags& read, const std::string& store) {
  TextOptions options = read.text_options();
  options.limits = {model.features, model.labels};
  options.limits_name = "the model in " + store;
  return options;
}

Result<void> check_scaling(const PredictExamples& examples, const AnsweringModel& model,
                           const std::string& input) {
  if (!examples.is_normalised() || model.is_normalised()) return {};
  return Error{ErrorCode::kInvalidData,
               fmt::format("the rows of {} are normalised, but this run trained on rows as they "
                           "are; use the text file, or one packed with --no-normalize",
                           input)};
}

Result<std::vector<IndexedExample>> choose_examples(PredictExamples& points, std::uint64_t count,
                                                    std::uint64_t seed) {
  // The points of the smallest random keys.
  using Keyed = std::pair<std::uint64_t, IndexedExample>;
  std::vector<Keyed> chosen;
  const auto comes_before = [](const Keyed& a, const Keyed& b) {
    return std::pair(a.first, a.second.index) < std::pair(b.first, b.second.index);
  };
  IndexedExample point;
  for (;;) {
    Result<bool> has_point = points.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    if (point.point.labels.empty()) continue;
    keep_best(chosen, count, {counter_random(seed, Purpose::kSplit, point.index), point},
              comes_before);
  }
  std::vector<IndexedExample> result;
  result.reserve(chosen.size());
  for (Keyed& keyed : chosen) result.push_back(std::move(keyed.second));
  std::sort(result.begin(), result.end(),
            [](const IndexedExample& a, const IndexedExample& b) { return a.index < b.index; });
  return result;
}

}  // namespace gleaner
