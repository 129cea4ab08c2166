// The verbs that write a whole data set: convert, pack and synth.
#include <fmt/format.h>

#include "common/data/open_or_pack.hpp"
#include "common/data/point_writer.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {
namespace {

SetForm form_wanted(const ConvertFlags& flags) {
  if (flags.to.empty()) return form_of_name(flags.output);
  if (flags.to == "packed") return SetForm::kPacked;
  return flags.to == "libsvm" ? SetForm::kLibsvm : SetForm::kXc;
}

Result<std::unique_ptr<PackedDataset>> pack_to_output(const PackFlags& flags,
                                                      const PackOptions& options) {
  if (is_packed_file(flags.source)) {
    return Error{ErrorCode::kInvalidArgument,
                 flags.source + " is packed already; copy it, or name the text file"};
  }
  Result<void> guarded = guard_outputs({flags.output}, flags.force);
  if (!guarded) return guarded.error();
  Result<void> packed = pack_text(flags.source, flags.output, "", options, existing(flags.force));
  if (!packed) return packed.error();
  return PackedDataset::open(flags.output);
}

Result<void> write_points(const std::string& path, const SyntheticPoints& source,
                          Dimensions dimensions, std::uint64_t first, std::uint64_t count,
                          bool force) {
  auto output = SetOutput::create(path, {}, count, dimensions);
  if (!output) return output.error();
  ProgressLine progress("Writing " + path + ":");
  Point point;
  for (std::uint64_t i = 0; i < count; ++i) {
    source.make(first + i, point);
    if (auto added = (*output)->add(point); !added) return added;
    if (i % 256 == 255) progress.show(i + 1, count, "examples");
  }
  return (*output)->commit({}, existing(force));
}

}  // namespace

Result<void> run_dataset_convert(const ConvertFlags& flags) {
  if (!flags.text.fields.text.empty() || !flags.text.vocabulary.empty()) {
    return run_dataset_text(flags);
  }
  if (auto guarded = guard_outputs({flags.output}, flags.force); !guarded) return guarded;
  const SetOutputOptions options{form_wanted(flags), flags.read.first_feature, !flags.no_normalize};
  if (auto fits = refuse_packing_twice(flags.source, options.form); !fits) return fits;
  TextOptions text = flags.read.text_options();
  if (auto limited = take_limits(flags.like, text); !limited) return limited;
  Result<SetSize> size = size_of_set(flags.source, text);
  if (!size) return size.error();
  const Dimensions dimensions = text.limits.value_or(size->dimensions);
  auto copied = copy_set(flags.source, text, size->points, flags.output, options, size->points,
                         dimensions, "Converting", existing(flags.force), [] { return true; });
  if (!copied) return copied;
  const Json body = {{"written", Json::array({written_json(flags.output, size->points)})},
                     {"form", form_name(options.form)},
                     {"features", dimensions.features},
                     {"labels", dimensions.labels}};
  return print_done(
      flags.json, "dataset convert", flags.source, body,
      fmt::format("{}: {}, {} examples, {} features, {} labels{}\n", flags.output,
                  form_name(options.form), grouped(size->points), grouped(dimensions.features),
                  grouped(dimensions.labels),
                  options.form == SetForm::kLibsvm ? ", which it does not announce" : ""));
}

Result<void> run_dataset_pack(const PackFlags& flags) {
  PackOptions options;
  options.text = flags.read.text_options();
  options.normalize = !flags.no_normalize;
  options.cache_dir = flags.cache_dir;
  if (auto limited = take_limits(flags.like, options.text); !limited) return limited;
  ProgressLine progress("Packing");
  options.on_progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(done, total, "bytes");
  };
  Result<std::unique_ptr<PackedDataset>> dataset =
      flags.output.empty() ? open_or_pack(flags.source, options) : pack_to_output(flags, options);
  if (!dataset) return dataset.error();
  const PackedDataset& packed = **dataset;
  const Json body = {{"written", Json::array({written_json(packed.path(), packed.points())})},
                     {"features", packed.features()},
                     {"labels", packed.labels()},
                     {"fingerprint", fmt::format("{:016x}", packed.fingerprint())}};
  return print_done(flags.json, "dataset pack", flags.source, body,
                    fmt::format("{}: {} examples, {} features, {} labels, fingerprint {:016x}\n",
                                packed.path(), grouped(packed.points()), grouped(packed.features()),
                                grouped(packed.labels()), packed.fingerprint()));
}

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
  const double seconds = seconds_in(monotonic_now() - started);
  Json files = Json::array({written_json(flags.train, flags.points)});
  if (!flags.test.empty()) files.push_back(written_json(flags.test, flags.test_points));
  const Json body = {{"written", files},
                     {"features", dimensions.features},
                     {"labels", dimensions.labels},
                     {"seconds", seconds}};
  return print_done(
      flags.json, "dataset synth", flags.train, body,
      fmt::format("{}: {} examples, {} features, {} labels ({:.1f} s, {} examples/s)\n",
                  flags.train, grouped(flags.points), grouped(dimensions.features),
                  grouped(dimensions.labels), seconds,
                  grouped(static_cast<std::uint64_t>(static_cast<double>(written_points) /
                                                     (seconds + 1e-6)))));
}

}  // namespace gleaner
