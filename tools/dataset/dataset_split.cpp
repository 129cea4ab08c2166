// `gleaner dataset split`: parts of a data set, or a sample of it.
#include <fmt/format.h>

#include "common/counter_random.hpp"
#include "common/data/point_writer.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {
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
  auto copied = copy_set(flags.source, flags.read.text_options(), size->points, flags.sample,
                         options, *wanted, size->dimensions, "Sampling", existing(flags.force),
                         [&] { return choice.next(); });
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

}  // namespace gleaner
