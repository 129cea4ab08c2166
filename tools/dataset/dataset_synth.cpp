#include <fmt/format.h>

#include "common/data/point_writer.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"

namespace gleaner {

namespace {

Result<void> write_points(const std::string& path, const SyntheticPoints& source,
                          Dimensions dimensions, std::uint64_t first, std::uint64_t count,
                          bool force) {
  Result<std::unique_ptr<TextOutput>> output = TextOutput::create(path);
  if (!output) return output.error();
  ProgressLine progress("Writing " + path + ":");
  std::string text = xc_header(count, dimensions);
  Point point;
  for (std::uint64_t i = 0; i < count; ++i) {
    source.make(first + i, point);
    append_xc(text, point);
    if (i % 256 != 255 && i + 1 < count) continue;
    Result<void> written = (*output)->write(text);
    if (!written) return written;
    text.clear();
    progress.show(i + 1, count, "examples");
  }
  return (*output)->commit(existing(force));
}

}  // namespace

Result<void> run_dataset_synth(const SynthFlags& flags) {
  Result<void> valid = validate(flags.options);
  if (!valid) return valid;
  if (flags.points == 0 || (!flags.test.empty() && flags.test_points == 0)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a data set has at least one example; raise --points "
                 "or --test-points"};
  }
  if (flags.train == flags.test) {
    return Error{ErrorCode::kInvalidArgument,
                 "--train and --test name the same file; name two different ones"};
  }
  Result<void> guarded = guard_outputs({flags.train, flags.test}, flags.force);
  if (!guarded) return guarded;
  const SyntheticPoints source(flags.options);
  const Dimensions dimensions = flags.options.dimensions;
  const Instant started = monotonic_now();
  std::uint64_t written_points = 0;
  if (!flags.test.empty()) {
    // The test points are those behind the training points.
    Result<void> written =
        write_points(flags.test, source, dimensions, flags.points, flags.test_points, flags.force);
    if (!written) return written;
    written_points += flags.test_points;
  }
  Result<void> written =
      write_points(flags.train, source, dimensions, 0, flags.points, flags.force);
  if (!written) return written;
  written_points += flags.points;
  const double seconds = static_cast<double>((monotonic_now() - started).count()) / 1e6;
  Json files = Json::array({written_json(flags.train, flags.points)});
  if (!flags.test.empty()) files.push_back(written_json(flags.test, flags.test_points));
  const Json body = {{"written", files},
                     {"features", dimensions.features},
                     {"labels", dimensions.labels},
                     {"seconds", seconds}};
  return print_done(
      flags.json, "dataset synth", flags.train, body,
      fmt::format("{}: {} examples, {} features, {} labels ({:.1f} s, {} examples/s)\n",
                  flags.train, with_commas(flags.points), with_commas(dimensions.features),
                  with_commas(dimensions.labels), seconds,
                  with_commas(static_cast<std::uint64_t>(static_cast<double>(written_points) /
                                                         (seconds + 1e-6)))));
}

}  // namespace gleaner
