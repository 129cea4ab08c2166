#include "tools/predict/run_histories.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/model/run_plan.hpp"
#include "master/see/run_api.hpp"
#include "master/see/view_json.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
namespace {

constexpr Millis kAgeMax{10'000};
constexpr std::size_t kPieces = 600;

Result<std::string> read(const std::vector<std::string>& stores) {
  std::vector<RunHistory> runs;
  for (const std::string& store : stores) {
    auto run = open_run_to_read(store);
    if (!run) return name_folder(run.error(), store);
    auto history = (*run)->history();
    if (!history) return name_folder(history.error(), store);
    RunHistory& one = runs.emplace_back();
    one.name = store;
    one.batches_per_epoch = RunPlan((*run)->identity().model).batches_per_epoch();
    one.series.replace(*history);
  }
  return histories_json(runs, kPieces);
}

}  // namespace

Result<std::unique_ptr<RunHistories>> RunHistories::open(std::vector<std::string> stores) {
  std::unique_ptr<RunHistories> histories(new RunHistories(std::move(stores)));
  auto first = read(histories->stores_);
  if (!first) return first.error();
  histories->json_ = std::make_shared<const std::string>(*std::move(first));
  histories->read_at_ = monotonic_now();
  return histories;
}

std::shared_ptr<const std::string> RunHistories::json(Instant now) {
  if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    // A store that cannot be read now, such as a store that is being replaced, keeps the last
    // history.
    if (auto read = next_.get()) json_ = std::make_shared<const std::string>(*std::move(read));
    read_at_ = now;
  }
  if (!next_.valid() && now - read_at_ > kAgeMax) {
    next_ = std::async(std::launch::async, [this] { return read(stores_); });
  }
  return json_;
}

}  // namespace gleaner
