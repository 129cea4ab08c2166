// The view of one hash table over all shards: how the neurons lie in its buckets.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "common/console/terminal.hpp"
#include "storage/keep/model_rows.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kLargestBuckets = 10;
constexpr std::size_t kBarWidth = 40;

struct Occupancy {
  std::vector<std::uint64_t> buckets;  // neurons in each
  std::uint64_t neurons = 0;
};

Result<Occupancy> read_occupancy(RunStore& run, std::uint32_t table) {
  const ModelConfig& model = run.identity().model;
  Occupancy occupancy;
  occupancy.buckets.resize(std::size_t{1} << model.hash_bits);
  bool is_sound = true;
  for (std::uint32_t s = 0; s < model.output_shards; ++s) {
    auto visited = visit_model_rows(run, ShardId{s}, [&](const ModelRow& row) {
      if (row.codes.empty()) return;
      const std::uint32_t code = row.codes[table];
      if (code >= occupancy.buckets.size()) {
        is_sound = false;
        return;
      }
      ++occupancy.buckets[code];
      ++occupancy.neurons;
    });
    if (!visited) return visited.error();
  }
  if (is_sound) return occupancy;
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("table {} has entries beyond its buckets: gleaner verify names them", table)};
}

}  // namespace

Result<Report> inspect_table(RunStore& run, const InspectRequest& request) {
  const ModelConfig& model = run.identity().model;
  if (run.shard_map().tables() == 0) {
    return Error{ErrorCode::kInvalidArgument, "the run samples without hash tables: it has none"};
  }
  const auto table = parse_number("table", request.which, std::uint64_t{model.tables} - 1);
  if (!table) return table.error();
  const Result<Occupancy> occupancy = read_occupancy(run, *table);
  if (!occupancy) return occupancy.error();
  const auto& buckets = occupancy->buckets;
  const auto n = static_cast<double>(occupancy->neurons);
  const auto size = static_cast<double>(buckets.size());
  double pairs = 0;
  for (const std::uint64_t count : buckets) {
    pairs += static_cast<double>(count) * (static_cast<double>(count) - 1);
  }
  const auto empty = static_cast<double>(std::ranges::count(buckets, 0U));

  Report report;
  report.section("", fmt::format("Table {} of {}, over all shards", *table, model.tables));
  report.fact("neurons", "neurons in it", cell_count(occupancy->neurons));
  report.fact("buckets", "buckets", cell_count(buckets.size()));
  report.fact("empty_share", "empty buckets", cell_share(empty / size));
  report.fact("empty_share_expected", "  if at random", cell_share(std::pow(1 - 1 / size, n)));
  report.fact("collision_rate", "pairs that collide", cell_share(pairs / (n * (n - 1)), 4));
  report.fact("collision_rate_expected", "  if at random", cell_share(1 / size, 4));

  std::map<unsigned, std::uint64_t> histogram;  // by the width of the count in bits
  std::uint64_t most = 1;
  for (const std::uint64_t count : buckets) {
    most = std::max(most, ++histogram[static_cast<unsigned>(std::bit_width(count))]);
  }
  report.section("", "Buckets by how many neurons they hold");
  ReportTable& shown = report.table(
      "occupancy", {{"from", "from"}, {"to", "to"}, {"buckets", "buckets"}, {"share", "", true}});
  for (const auto& [power, count] : histogram) {
    const double share = static_cast<double>(count) / static_cast<double>(most);
    shown.rows.push_back(
        {cell_count(power == 0 ? 0 : std::uint64_t{1} << (power - 1)),
         cell_count((std::uint64_t{1} << power) - 1),
         cell_count(count),
         {static_cast<double>(count) / size, bar(share, kBarWidth, request.style)}});
  }
  std::vector<std::uint32_t> order(buckets.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](auto a, auto b) { return buckets[a] > buckets[b]; });
  order.resize(std::min(order.size(), kLargestBuckets));
  report.section("", "Largest buckets");
  ReportTable& largest =
      report.table("largest", {{"code", "bucket"}, {"neurons", "neurons"}, {"share", "of all"}});
  for (const std::uint32_t code : order) {
    largest.rows.push_back({cell_count(code), cell_count(buckets[code]),
                            cell_share(static_cast<double>(buckets[code]) / n)});
  }
  return report;
}

}  // namespace gleaner
