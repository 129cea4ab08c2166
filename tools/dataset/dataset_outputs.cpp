// The verbs that write data sets: convert, pack, split and synth.
#include <fmt/format.h>

#include <cmath>

#include "common/counter_random.hpp"
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

// Writes those points of the source that `takes` says, `points` of `total`.
Result<void> copy_set(const std::string& source, const TextOptions& text, std::uint64_t total,
                      const std::string& target, const SetOutputOptions& options,
                      std::uint64_t points, Dimensions dimensions, const char* doing, bool force,
                      const std::function<bool()>& takes) {
  auto stream = PointStream::open(source, text);
  if (!stream) return stream.error();
  auto output = SetOutput::create(target, options, points, dimensions);
  if (!output) return output.error();
  auto copied = for_each_point(**stream, doing, total, [&](const Point& point, std::uint64_t) {
    return takes() ? (*output)->add(point) : Result<void>();
  });
  if (!copied) return copied;
  return (*output)->commit((*stream)->irregularities(), existing(force));
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
                         dimensions, "Converting", flags.force, [] { return true; });
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

namespace {

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

}  // namespace

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

namespace {

struct PartSizes {
  std::uint64_t train = 0;
  std::uint64_t test = 0;
  Dimensions dimensions;
};

// The outputs' headers come first, so the parts must be counted first. A form that announces its
// size need not be read for that: the choice depends on the index alone.
Result<PartSizes> count_parts(const SplitFlags& flags) {
  Result<SetSize> all = size_of_set(flags.source, flags.read.text_options());
  if (!all) return all.error();
  PartSizes sizes;
  sizes.dimensions = all->dimensions;
  for (std::uint64_t index = 0; index < all->points; ++index) {
    ++(is_test_point(flags.seed, index, flags.share) ? sizes.test : sizes.train);
  }
  return sizes;
}

Result<void> check_flags(const SplitFlags& flags) {
  if (auto fits = check_test_share(flags.share); !fits) return fits;
  if (flags.train.empty() || flags.test.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "name the files of both parts, --train and --test, or that of a --sample"};
  }
  if (flags.train == flags.test) {
    return Error{ErrorCode::kInvalidArgument,
                 "--train and --test name the same file; name two different ones"};
  }
  return guard_outputs({flags.train, flags.test}, flags.force);
}

Result<std::uint64_t> wanted_points(const SplitFlags& flags, std::uint64_t total) {
  if (flags.points > total) {
    return Error{ErrorCode::kInvalidData, fmt::format("{} has {} examples, fewer than --points {}",
                                                      flags.source, total, flags.points)};
  }
  if (flags.points > 0) return flags.points;
  if (!(flags.share > 0 && flags.share <= 1)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--share {} is not above 0 and up to 1", flags.share)};
  }
  const auto points =
      static_cast<std::uint64_t>(std::llround(flags.share * static_cast<double>(total)));
  if (points > 0) return points;
  return Error{ErrorCode::kInvalidData, fmt::format("--share {} of the {} points of {} is none",
                                                    flags.share, total, flags.source)};
}

Result<void> write_sample(const SplitFlags& flags) {
  if (auto guarded = guard_outputs({flags.sample}, flags.force); !guarded) return guarded;
  SetOutputOptions options{form_of_name(flags.sample), flags.read.first_feature, true};
  if (auto fits = refuse_packing_twice(flags.source, options.form); !fits) return fits;
  Result<SetSize> size = size_of_set(flags.source, flags.read.text_options());
  if (!size) return size.error();
  Result<std::uint64_t> wanted = wanted_points(flags, size->points);
  if (!wanted) return wanted.error();
  SampleChoice choice(flags.seed, size->points, *wanted);
  auto copied =
      copy_set(flags.source, flags.read.text_options(), size->points, flags.sample, options,
               *wanted, size->dimensions, "Sampling", flags.force, [&] { return choice.next(); });
  if (!copied) return copied;
  const Json body = {{"written", Json::array({written_json(flags.sample, *wanted)})},
                     {"form", form_name(options.form)},
                     {"of_points", size->points},
                     {"features", size->dimensions.features},
                     {"labels", size->dimensions.labels}};
  return print_done(flags.json, "dataset split", flags.source, body,
                    fmt::format("{}: {} of {} examples, {}\n", flags.sample, grouped(*wanted),
                                grouped(size->points), form_name(options.form)));
}

}  // namespace

Result<void> check_test_share(double share) {
  if (share > 0 && share < 1) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--share {} is not between 0 and 1; 0.2 puts a fifth of the points "
                           "into the test part",
                           share)};
}

bool is_test_point(std::uint64_t seed, std::uint64_t index, double share) {
  // Both factors are exact in double up to the last bits of `share`; no library function takes
  // part.
  const auto threshold = static_cast<std::uint64_t>(share * 9007199254740992.0);  // 2^53
  return (counter_random(seed, Purpose::kSplit, index) >> 11) < threshold;
}

// With w wanted of the l that are left, the next is one of them with probability w / l (Fan,
// Muller, Rezucha 1962; Knuth's algorithm S).
bool SampleChoice::next() {
  const bool is_chosen = below(counter_random(seed_, Purpose::kSplit, index_++), left_--) < wanted_;
  wanted_ -= is_chosen;
  return is_chosen;
}

Result<void> run_dataset_split(const SplitFlags& flags) {
  if (!flags.sample.empty()) return write_sample(flags);
  Result<void> checked = check_flags(flags);
  if (!checked) return checked;
  Result<PartSizes> sizes = count_parts(flags);
  if (!sizes) return sizes.error();
  if (sizes->train == 0 || sizes->test == 0) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: of its {} examples, {} would be for training and {} for testing; "
                             "choose another --share or --seed",
                             flags.source, sizes->train + sizes->test, sizes->train, sizes->test)};
  }
  Result<std::unique_ptr<PointStream>> stream =
      PointStream::open(flags.source, flags.read.text_options());
  if (!stream) return stream.error();
  auto train = SetOutput::create(flags.train, {}, sizes->train, sizes->dimensions);
  if (!train) return train.error();
  auto test = SetOutput::create(flags.test, {}, sizes->test, sizes->dimensions);
  if (!test) return test.error();
  const auto write = [&](const Point& point, std::uint64_t index) {
    return (is_test_point(flags.seed, index, flags.share) ? *test : *train)->add(point);
  };
  auto written = for_each_point(**stream, "Splitting", sizes->train + sizes->test, write);
  if (written) written = (*test)->commit({}, existing(flags.force));
  if (written) written = (*train)->commit({}, existing(flags.force));
  if (!written) return written;
  const Json body = {{"written", Json::array({written_json(flags.train, sizes->train),
                                              written_json(flags.test, sizes->test)})},
                     {"features", sizes->dimensions.features},
                     {"labels", sizes->dimensions.labels}};
  return print_done(flags.json, "dataset split", flags.source, body,
                    fmt::format("{}: {} examples\n{}: {} examples\n", flags.train,
                                grouped(sizes->train), flags.test, grouped(sizes->test)));
}

namespace {

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
