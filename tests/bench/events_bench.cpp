// Measures what an event costs the master's core where many shards are lent to many strangers, all
// of whose work is audited: processor time by kind of event. Volunteers come, train, vanish and
// come again; the arithmetic is left out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// Where too many vanish, no round ends.
constexpr std::uint32_t kPassesMax = 2'000;

struct Bench {
  std::uint32_t shards = 4096;
  std::uint32_t volunteers = 4096;
  std::uint32_t batches = 24;
  std::uint32_t vanish = 4;  // a round of answers
  bool is_adaptive = false;
};

template <typename... Kinds>
std::string name_of(const std::variant<Kinds...>& event) {
  if (const auto* received = std::get_if<MessageReceived>(&event)) {
    return message_name(received->message);
  }
  constexpr const char* kNames[] = {"(opened)",
                                    "",
                                    "(closed)",
                                    "(forward done)",
                                    "(backward done)",
                                    "(points read)",
                                    "(input)",
                                    "(scored)",
                                    "(chunk scored)",
                                    "(evaluated)",
                                    "(staged)",
                                    "(folded)",
                                    "(chunk)",
                                    "(recorded)",
                                    "(full)",
                                    "(failed)",
                                    "(stop)",
                                    "(banned)",
                                    "(tick)",
                                    "(sent)",
                                    "(gradients added)",
                                    "(relay sum)",
                                    "(relay gone)",
                                    "(settled)"};
  static_assert(std::size(kNames) == sizeof...(Kinds));
  return kNames[event.index()];
}

using Costs = std::map<std::string, std::vector<double>>;

void print_row(const std::string& name, std::vector<double> costs) {
  std::sort(costs.begin(), costs.end());
  double sum = 0;
  for (const double cost : costs) sum += cost;
  const auto count = static_cast<double>(costs.size());
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", name, costs.size(), sum / count,
             costs[static_cast<std::size_t>(0.99 * (count - 1))], costs.back());
}

void print(const Costs& costs) {
  fmt::print("| event | times | mean us | p99 us | most us |\n|---|---|---|---|---|\n");
  std::vector<double> all;
  for (const auto& [name, some] : costs) {
    print_row(name, some);
    all.insert(all.end(), some.begin(), some.end());
  }
  print_row("all", all);
}

ModelConfig model_of(const Bench& bench) {
  ModelConfig model = tiny_model();
  model.labels = 2 * bench.shards;
  model.output_shards = bench.shards;
  model.points = std::uint64_t{model.batch_examples} * bench.batches;
  model.epochs = 1;
  model.round_batches = 4;
  return model;
}

CoreConfig config_of(const Bench& bench, const ModelConfig& model) {
  CoreConfig config = tiny_core_config(model);
  config.audit = bench.is_adaptive ? AuditMode::kAdaptive : AuditMode::kAll;
  config.sessions_max = 2 * bench.volunteers;
  return config;
}

// Everybody answers once.
void serve(MasterDriver& master, const std::vector<SessionId>& volunteers) {
  while (master.run_worker()) {
  }
  while (master.run_storage()) {
  }
  for (const SessionId id : volunteers) master.serve(id);
}

// Whether the run finished.
bool measure(const Bench& bench) {
  const ModelConfig model = model_of(bench);
  MasterDriver master(model, config_of(bench, model));
  Costs costs;
  std::vector<double>* current = nullptr;
  std::clock_t begin{};
  master.before = [&](const Event& event) {
    current = &costs[name_of(event)];
    begin = std::clock();
  };
  master.after = [&] {
    current->push_back(static_cast<double>(std::clock() - begin) * 1e6 / CLOCKS_PER_SEC);
  };
  std::vector<SessionId> volunteers;
  for (std::uint32_t i = 0; i < bench.volunteers; ++i) {
    volunteers.push_back(master.join_stranger(fmt::format("volunteer-{}", i)));
  }
  master.join_referee();
  std::size_t next = 0;
  for (std::uint32_t pass = 0; !master.outcome() && pass < kPassesMax; ++pass) {
    serve(master, volunteers);
    while (master.serve(SessionId{bench.volunteers + 1})) {
    }
    master.tick(Micros(100'000));
    for (std::uint32_t i = 0; i < bench.vanish && !master.outcome(); ++i) {
      SessionId& one = volunteers[next++ % volunteers.size()];
      if (!master.is_closed(one)) master.close(one);
      one = master.join_stranger(fmt::format("volunteer-{}", next + bench.volunteers));
    }
  }
  fmt::print("{} shards, {} strangers, {}: {}\n\n", bench.shards, bench.volunteers,
             bench.is_adaptive ? "adaptive" : "all",
             master.outcome() == Outcome::kFinished ? "finished" : "not finished");
  print(costs);
  return master.outcome() == Outcome::kFinished;
}

int run(int argc, char** argv) {
  CLI::App app("What an event costs the master's core, by kind.", "events_bench");
  Bench bench;
  app.add_option("--shards", bench.shards, "how many")->capture_default_str();
  app.add_option("--volunteers", bench.volunteers, "strangers")->capture_default_str();
  app.add_option("--batches", bench.batches, "of the whole run")->capture_default_str();
  app.add_option("--vanish", bench.vanish, "volunteers that vanish between two answers of all")
      ->capture_default_str();
  app.add_flag("--adaptive", bench.is_adaptive, "audit some rounds, drawn by lot");
  CLI11_PARSE(app, argc, argv);
  return measure(bench) ? 0 : 1;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::run(argc, argv);
}
