// `gleaner serve`: answers from a trained model over HTTP.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/host_port.hpp"
#include "common/http/http_server.hpp"
#include "common/machine_facts.hpp"
#include "common/os/process.hpp"
#include "common/train/kernels.hpp"
#include "master/see/predict_api.hpp"
#include "master/see/run_api.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/infer/predict_desk.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/predict/predict_examples.hpp"
#include "tools/predict/run_histories.hpp"
#include "tools/predict/serve_access.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kServeThreadsMax = 1024;
constexpr std::uint32_t kQueueMax = 1024;
constexpr int kStoresMax = 16;

struct ServeFlags {
  std::vector<std::string> stores;  // the first one answers
  std::string data;
  ServeAccessFlags access{"127.0.0.1:8090", "", false};
  std::string learn_to;  // file for documents to learn from; empty: none are taken
  std::uint32_t queue = 256;
  std::uint32_t threads = 0;     // 0: one a core
  std::uint32_t candidates = 0;  // 0: exact
  bool is_exact = false;
  bool json = false;
};

HttpReply must_show_token() {
  return text_reply(401, kHttpText,
                    "This model answers who shows its token, as Authorization: Bearer TOKEN, or on "
                    "the page at the end of its address: http://HOST:PORT/#TOKEN\n");
}

HttpReply answer(const PredictApi& api, RunHistories& histories, const ServeAccess& access,
                 const HttpRequest& request) {
  if (request.path == "/healthz") return text_reply(200, kHttpText, "ok\n");
  // The page's own files tell nothing of the model.
  if (auto asset =
          asset_reply(request.path == "/" ? "/serve.html" : request.path, run_page_assets())) {
    return *std::move(asset);
  }
  if (!access.admits(request.page_key)) return must_show_token();
  if (auto reply = api.answer(request)) return *std::move(reply);
  if (request.path == "/metrics") {
    return text_reply(200, "text/plain; version=0.0.4; charset=utf-8", api.metrics());
  }
  if (request.path == "/api/v1/histories") {
    HttpReply made;
    made.type = kHttpJson;
    made.body = histories.json(monotonic_now());
    return made;
  }
  return text_reply(404, kHttpText, "There is nothing here; the page is at /.\n");
}

HttpHandler handler_of(PredictApi& api, RunHistories& histories, const ServeAccess& access) {
  HttpHandler handler;
  handler.answer = [&](const HttpRequest& request) {
    return answer(api, histories, access, request);
  };
  handler.next_piece = [](StreamPosition& /*position*/) { return SharedText(); };
  api.handle_posts(handler);
  handler.is_for_other_origins = access.reach() == HttpReach::kAnyName;
  handler.post = [&access, predict = std::move(handler.post)](HttpPost post) {
    if (!access.admits(post.page_key)) return post.answer(must_show_token());
    predict(std::move(post));
  };
  return handler;
}

sigset_t signals_waited_for() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

// SIGHUP asks for a look at model and token; where a terminal has just been closed, it is the end.
void wait_for_end(const sigset_t& signals, const std::function<void()>& reload) {
  const bool is_on_terminal = has_terminal() && !os::ignores_hangup();
  for (int signal = 0; sigwait(&signals, &signal) == 0 && signal == SIGHUP;) {
    if (is_on_terminal && !has_terminal()) return;
    reload();
  }
}

AnsweringOptions options_of(const ServeFlags& flags) {
  AnsweringOptions options = asking_options(flags.threads, flags.candidates);
  options.reads_all_first = true;
  // Twice as much is in memory while a new checkpoint is read.
  options.kept_bytes_max = std::max(options.kept_bytes_max, machine_facts().memory_bytes / 4);
  options.limits.requests_waiting_max = flags.queue;
  return options;
}

Result<void> serve(const ServeFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  const Result<HostPort> address = serve_address(flags.access);
  if (!address) return address.error();
  auto access = ServeAccess::open(flags.access);
  if (!access) return access.error();
  os::raise_descriptor_limit();
  // Before any thread starts, so that none of them takes the signals.
  const sigset_t signals = signals_waited_for();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::string& store = flags.stores.front();
  const auto log = [&store](const std::string& what) {
    print_error(fmt::format("gleaner: {}: {}", store, what));
  };
  const PredictDesk::Source source{[&store] { return open_run_to_read(store); },
                                   [&store] { return files_state(store); }, log};
  auto desk = PredictDesk::follow(source, options_of(flags), flags.data);
  if (!desk) return name_folder(desk.error(), store);
  auto histories = RunHistories::open(flags.stores);
  if (!histories) return histories.error();
  PredictApi api(**desk, flags.learn_to);
  auto server =
      HttpServer::prepare(*address, handler_of(api, **histories, **access), (*access)->reach());
  if (!server) return server.error();
  (*server)->start();
  const RoundIndex checkpoint = (*desk)->figures().checkpoint;
  const std::string url = "http://" + to_text((*server)->address());
  const auto said = print_done(
      flags.json, "serve", store, {{"url", url}, {"checkpoint", checkpoint}},
      fmt::format("Checkpoint {} of {} answers at {} (Ctrl-C ends it).\n", checkpoint, store, url));
  if (!said && !is_reader_lost(said)) return said;
  std::fflush(stdout);
  wait_for_end(signals, [&] {
    if (auto read = (*access)->reload(); !read) log(read.error().message);
    (*desk)->look_again();
  });
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
                  "folder of 'gleaner dataset convert --text': reads texts, knows "
                  "names and test examples");
  verb.add_option("--http", flags.access.http,
                  "ADDRESS:PORT of this machine to answer at; port 0 takes a free one")
      ->capture_default_str();
  CLI::Option* const token =
      verb.add_option("--token-file", flags.access.token_file,
                      "answer only requests that show the token in this file, which is made if it "
                      "is missing");
  verb.add_flag("--public", flags.access.is_public, "answer everybody, at any address")
      ->excludes(token);
  verb.add_option("--learn-to", flags.learn_to,
                  "file that gets documents to learn from (POST /v1/projects/ID/learn) as JSON "
                  "lines, for the next 'gleaner dataset convert'");
  verb.add_option("--queue", flags.queue, "requests that may wait; further ones get status 503")
      ->check(CLI::Range(std::uint32_t{1}, kQueueMax))
      ->capture_default_str();
  verb.add_option("--threads", flags.threads, "compute threads (one a core unless given)")
      ->check(CLI::Range(std::uint32_t{1}, kServeThreadsMax));
  CLI::Option* const tables =
      verb.add_option("--tables", flags.candidates,
                      "score only N neurons that most hash tables propose, and as many of frequent "
                      "labels; a request can still ask for exact answers")
          ->check(CLI::Range(1, 1'000'000));
  verb.add_flag("--exact", flags.is_exact, "score every label (the default)")->excludes(tables);
  verb.add_flag("--json", flags.json, "say the address as one JSON object");
}

constexpr const char* kServeFooter =
    "Answers with the store's last whole checkpoint, and goes on with each new one, whatever wrote "
    "it.\nOn SIGHUP it looks for a new model at once, and reads the token again.\nPOST /v1/predict "
    "takes and gives JSON "
    "(Accept: application/x-ndjson: one object "
    "per line); the page is at /,\nthe description at /api/v1/openapi.json, figures at /v1/model "
    "and /metrics.\n\n"
    "Examples:\n"
    "  gleaner serve run1 --data debian\n"
    "  gleaner serve run1 run2 run3\n"
    "  gleaner serve run1 --http 0.0.0.0:8090 --token-file token\n"
    "  gleaner serve model.safetensors --tables 500 --threads 1 --http 127.0.0.1:0 --json\n"
    "  curl http://127.0.0.1:8090/v1/predict -d '{\"inputs\":[{\"text\":\"fast json "
    "parser\"}]}'\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

}  // namespace

void add_serve_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("serve", "answer with a trained model over HTTP");
  auto flags = std::make_shared<ServeFlags>();
  add_flags(verb, *flags);
  verb.footer(kServeFooter);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(serve(*flags)); });
}

}  // namespace gleaner
