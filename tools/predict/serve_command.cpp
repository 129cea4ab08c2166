#include "tools/predict/serve_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/host_port.hpp"
#include "common/http/http_server.hpp"
#include "common/http/page_asset_reply.hpp"
#include "common/kernels/simd_level.hpp"
#include "common/limits.hpp"
#include "master/http/predict_api.hpp"
#include "master/http/run_page_assets.hpp"
#include "master/predict/predict_desk.hpp"
#include "storage/engine/store_folder.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/predict/run_histories.hpp"
#include "volunteer/config.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kThreadsMax = 1024;
constexpr int kStoresMax = 16;

struct ServeFlags {
  std::vector<std::string> stores;  // the first one answers
  std::string data;
  std::string http = "127.0.0.1:8090";
  std::uint32_t threads = 0;     // 0: one a core
  std::uint32_t candidates = 0;  // 0: exact
  bool is_exact = false;
  bool json = false;
};

HttpReply answer(const PredictApi& api, RunHistories& histories, const HttpRequest& request) {
  if (auto reply = api.answer(request)) return *std::move(reply);
  HttpReply made;
  if (request.path == "/metrics") {
    made.type = "text/plain; version=0.0.4; charset=utf-8";
    made.body = std::make_shared<const std::string>(api.metrics());
    return made;
  }
  if (request.path == "/api/v1/histories") {
    made.type = kHttpJson;
    made.body = histories.json(monotonic_now());
    return made;
  }
  if (request.path == "/healthz") {
    made.body = std::make_shared<const std::string>("ok\n");
    return made;
  }
  if (auto asset =
          asset_reply(request.path == "/" ? "/serve.html" : request.path, run_page_assets())) {
    return *std::move(asset);
  }
  made.status = 404;
  made.body = std::make_shared<const std::string>("There is nothing here; the page is at /.\n");
  return made;
}

Result<void> serve(const ServeFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  const Result<HostPort> address = parse_host_port(flags.http);
  if (!address || !is_loopback(address->host)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--http {}: the model answers this machine alone, so give an address "
                             "such as 127.0.0.1:8090",
                             flags.http)};
  }
  // Before any thread starts, so that none of them takes the signals.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  AnsweringOptions options;
  options.threads =
      flags.threads > 0 ? flags.threads : std::max(1U, std::thread::hardware_concurrency());
  options.candidates = flags.candidates;
  // Twice as much is in memory while a new checkpoint is read.
  options.kept_bytes_max = std::max(options.kept_bytes_max, machine_facts().memory_bytes / 4);
  const std::string& store = flags.stores.front();
  const PredictDesk::Source source{
      [&store] { return open_run_to_read(store); }, [&store] { return files_state(store); },
      [&store](const std::string& what) { fmt::print(stderr, "gleaner: {}: {}\n", store, what); }};
  auto desk = PredictDesk::follow(source, options, flags.data);
  if (!desk) return name_folder(desk.error(), store);
  auto histories = RunHistories::open(flags.stores);
  if (!histories) return histories.error();
  PredictApi api(**desk);
  HttpHandler handler;
  handler.answer = [&](const HttpRequest& request) { return answer(api, **histories, request); };
  handler.next_piece = [](StreamPosition& /*position*/) { return SharedText(); };
  api.handle_posts(handler);
  auto server = HttpServer::prepare(*address, std::move(handler));
  if (!server) return server.error();
  (*server)->start();
  const RoundIndex checkpoint = (*desk)->figures().checkpoint;
  const std::string url = "http://" + to_text((*server)->address());
  const auto said = print_done(
      flags.json, "serve", store, {{"url", url}, {"checkpoint", checkpoint}},
      fmt::format("Checkpoint {} of {} answers at {} (Ctrl-C ends it).\n", checkpoint, store, url));
  if (!said) return said;
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ending, &signal);
  server->reset();  // before the desk, which its handlers use
  return {};
}

void add_flags(CLI::App& verb, ServeFlags& flags) {
  verb.add_option("store", flags.stores,
                  "folder that gleaner-master was given as --store, or a file of gleaner export; "
                  "the page compares how further ones were trained with the first, which answers")
      ->required()
      ->expected(1, kStoresMax);
  verb.add_option("--data", flags.data,
                  "folder of 'gleaner dataset debian' or 'convert --text': reads texts, knows "
                  "names and test examples");
  verb.add_option("--http", flags.http,
                  "ADDRESS:PORT of this machine to answer at; port 0 takes a free one")
      ->capture_default_str();
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(std::uint32_t{1}, kThreadsMax));
  CLI::Option* const tables =
      verb.add_option("--tables", flags.candidates,
                      "score only N neurons that most hash tables propose, and as many of frequent "
                      "labels; a request can still ask for exact answers")
          ->check(CLI::Range(1, 1'000'000));
  verb.add_flag("--exact", flags.is_exact, "score every label (the default)")->excludes(tables);
  verb.add_flag("--json", flags.json, "say the address as one JSON object");
}

constexpr const char* kFooter =
    "Answers with the store's last whole checkpoint, and goes on with each new one, whatever wrote "
    "it.\nPOST /v1/predict takes and gives JSON (Accept: application/x-ndjson: one object "
    "per line); the page is at /,\nthe description at /api/v1/openapi.json, figures at /v1/model "
    "and /metrics.\n\n"
    "Examples:\n"
    "  gleaner serve run1 --data debian\n"
    "  gleaner serve run1 run2 run3\n"
    "  gleaner serve model.safetensors --tables 500 --threads 1 --http 127.0.0.1:0 --json\n"
    "  curl http://127.0.0.1:8090/v1/predict -d '{\"inputs\":[{\"text\":\"fast json "
    "parser\"}]}'\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

void add_serve_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("serve", "answer with a trained model over HTTP");
  auto flags = std::make_shared<ServeFlags>();
  add_flags(verb, *flags);
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(serve(*flags)); });
}

}  // namespace gleaner
