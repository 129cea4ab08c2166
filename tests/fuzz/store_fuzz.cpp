// Input: what is done to a healthy store, edit by edit: bits flipped, records cut, erased, swapped,
// replaced by others' or by bytes of the input; under the old checksum or a right one. Whatever it
// holds then, everything that tools read of it is a value or an error.
#include <algorithm>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/infer/table_search.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "tests/unit/tools/sound_run.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr int kEditsMax = 16;

// The input, taken from its front; zeros when there is no more.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  [[nodiscard]] bool is_empty() const { return left_.empty(); }

  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t first = left_[0];
    left_ = left_.subspan(1);
    return first;
  }

  std::size_t below(std::size_t bound) {
    const std::size_t high = byte();
    return (high << 8 | byte()) % std::max<std::size_t>(bound, 1);
  }

  Bytes bytes(std::size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const std::uint8_t> left_;
};

struct Record {
  Bytes key;
  Bytes value;
};

std::vector<Record> records_of(Store& store, Table table) {
  std::vector<Record> all;
  GLEANER_CHECK(store
                    .scan(table, {}, {},
                          [&](ByteView key, ByteView value) {
                            all.push_back({{key.begin(), key.end()}, {value.begin(), value.end()}});
                            return true;
                          })
                    .ok());
  return all;
}

void put(Store& store, Table table, const Bytes& key, const Bytes& value) {
  WriteBatch batch;
  batch.put(table, key, value);
  GLEANER_CHECK(store.write(std::move(batch), Durability::kSync).ok());
}

void erase(Store& store, Table table, const Bytes& key) {
  WriteBatch batch;
  batch.erase(table, key);
  GLEANER_CHECK(store.write(std::move(batch), Durability::kSync).ok());
}

// Flips a bit, cuts, or replaces bytes by the input's.
void change(Bytes& value, Input& input) {
  const std::uint8_t how = input.byte() % 3;
  const std::size_t at = input.below(value.size());
  if (how == 0 && !value.empty()) value[at] ^= static_cast<std::uint8_t>(1U << (input.byte() % 8));
  if (how == 1) value.resize(at);
  if (how == 2) {
    const Bytes more = input.bytes(input.byte() % 64);
    value.resize(std::max(value.size(), at + more.size()));
    std::copy(more.begin(), more.end(), value.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void edit(Store& store, Input& input) {
  const auto table = static_cast<Table>(input.byte() % kTableCount);
  const std::vector<Record> records = records_of(store, table);
  if (records.empty()) return;
  Record record = records[input.below(records.size())];
  switch (input.byte() % 6) {
    case 0:
      change(record.value, input);
      return put(store, table, record.key, record.value);
    case 1: {
      // As a program gone wrong would write it: with a checksum that holds.
      const auto payload = open_record(table, record.key, record.value);
      if (!payload) return;
      Bytes changed(payload->begin(), payload->end());
      change(changed, input);
      return put(store, table, record.key, seal_record(table, record.key, changed));
    }
    case 2:
      return erase(store, table, record.key);
    case 3: {
      const Record& other = records[input.below(records.size())];
      put(store, table, record.key, other.value);
      return put(store, table, other.key, record.value);
    }
    case 4: {
      // Its content under another key, sealed for it.
      const auto payload = open_record(table, record.key, record.value);
      if (!payload) return;
      const Bytes content(payload->begin(), payload->end());
      change(record.key, input);
      return put(store, table, record.key, seal_record(table, record.key, content));
    }
    default: {
      const auto from = static_cast<Table>(input.byte() % kTableCount);
      const std::vector<Record> others = records_of(store, from);
      if (others.empty()) return;
      return put(store, table, record.key, others[input.below(others.size())].value);
    }
  }
}

void show(const Result<Report>& report) {
  if (!report) {
    GLEANER_CHECK(!report.error().message.empty());
    return;
  }
  GLEANER_CHECK(!report->for_people({}).empty());
  (void)json_document("inspect", "fuzz", report->for_programs());
  (void)report->as_csv();
}

void look_into(RunStore& run) {
  using View = Result<Report> (*)(RunStore&, const InspectRequest&);
  for (const View view : {inspect_summary, inspect_config, inspect_history, inspect_checkpoints,
                          inspect_space, inspect_volunteers, inspect_units, inspect_layer}) {
    show(view(run, {}));
  }
  for (const View view : {inspect_shard, inspect_table, inspect_neuron}) {
    show(view(run, {"1", "", {}}));
  }
  for (std::uint32_t shard = 0; shard < run.shard_map().shard_count(); ++shard) {
    (void)visit_model_rows(run, ShardId{shard}, [](const ModelRow&) {}).ok();
  }
  (void)run.checkpoint_digest().ok();
  if (const auto history = run.history()) {
    for (const Plot& plot : plots_of(*history, run.identity().model)) {
      if (!plot.series.empty()) (void)gnuplot_commands(plot, "fuzz");
    }
  }
}

void predict(std::unique_ptr<RunStore> run) {
  ThreadPool pool(1);
  auto model = StoredModel::open(std::move(run), pool);
  if (!model) return;
  const std::vector<std::uint32_t> labels = {1};
  const std::vector<std::uint32_t> features = {0, 2};
  const std::vector<float> values = {0.6F, 0.8F};
  const std::vector<ExampleView> examples = {{labels, features, values}};
  const QuantizedActivations codes = (*model)->encode(examples);
  (void)(*model)->top(codes, 5).ok();
  if (auto tables = TableSearch::open(**model, 8)) (void)(*tables)->top(codes, 5);
}

const MemoryStore& healthy() {
  static const std::unique_ptr<MemoryStore> store = [] {
    auto made = std::make_unique<MemoryStore>();
    GLEANER_CHECK(test::make_sound_run(made->share(), 3).ok());
    return made;
  }();
  return *store;
}

}  // namespace
}  // namespace gleaner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const std::unique_ptr<MemoryStore> disk = healthy().copy();
  Input input(data, size);
  for (int i = 0; i < kEditsMax && !input.is_empty(); ++i) edit(*disk, input);
  Findings findings;
  check_store(*disk, findings);
  const auto backup = healthy().copy();
  MemoryStore target;
  (void)repair_store(*disk, *backup, target).ok();
  if (auto run = RunStore::open(disk->share())) look_into(**run);
  if (auto run = RunStore::open(disk->share())) predict(std::move(*run));
  return 0;
}
