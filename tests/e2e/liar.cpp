// A volunteer that speaks the protocol correctly and computes honestly, but tells a lie about what
// it has computed: `gleaner-liar ADDRESS CACHE LIE FIRST`. It lies in every answer that the lie can
// be told in, from number FIRST on. `gleaner-liar --list` prints the lies.
// With the lie "late" all that it computes and asks for comes eight seconds late.
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/access/addresses.hpp"
#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "schema/wire/codec.hpp"
#include "tests/support/lies.hpp"
#include "volunteer/hello.hpp"
#include "volunteer/threaded_client.hpp"

namespace gleaner {
namespace {

// A link whose outgoing messages are falsified on the way.
class LyingLink : public Link {
 public:
  // Without a lie what it has computed comes late.
  LyingLink(asio::io_context& io, std::shared_ptr<Link> honest, const Lie* lie, int first)
      : io_(io), honest_(std::move(honest)), lie_(lie), left_(first) {}

  void start(Handler handler) override { honest_->start(std::move(handler)); }

  std::size_t send(Bytes payload, Lane lane) override {
    Result<Message> message = decode(payload);
    Message changed = *message;
    if (lie_ != nullptr && (*lie_)(changed) && left_-- <= 0) payload = encode(changed);
    const bool is_work =
        !std::holds_alternative<Hello>(changed) && !std::holds_alternative<Heartbeat>(changed);
    if (lie_ != nullptr || !is_work) return honest_->send(std::move(payload), lane);
    const auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::seconds(8));
    timer->async_wait([timer, honest = honest_, sent = std::move(payload), lane](asio::error_code) {
      honest->send(sent, lane);
    });
    return honest_->bytes_waiting();
  }

  [[nodiscard]] std::size_t bytes_waiting() const override { return honest_->bytes_waiting(); }

  void set_listening(bool is_on) override { honest_->set_listening(is_on); }

  void close() override { honest_->close(); }

  void abandon() override { honest_->abandon(); }

 private:
  asio::io_context& io_;
  std::shared_ptr<Link> honest_;
  const Lie* lie_;
  int left_;
};

int run(const std::string& line, const std::string& cache, const Lie* lie, int first) {
  const Result<MasterAddress> address = parse_master_address(line);
  const Result<KeyPair> key = volunteer::load_identity(cache);
  if (!address || !address->secure || !key) return 2;
  TlsContext tls(*key);
  asio::io_context io(1);
  TaskGroup tasks(io.get_executor(), [](const std::string& task, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", task.c_str(), what.c_str());
  });
  TcpLinkOptions link_options;
  link_options.tls = &tls;
  link_options.master = address->secure->key;
  std::optional<volunteer::Exit> exit;
  volunteer::ThreadedClient::Options options;
  options.memory_bytes = std::uint64_t{1} << 30;
  options.core.hello =
      volunteer::make_hello("eve", to_text(address->secure->invite), 1, options.memory_bytes);
  options.core.master = to_text(address->where);
  options.core.once = true;
  options.core.retry_first = Millis(50);
  options.core.seed = key->id().low;
  options.dial = [&](const volunteer::Client::Dialled& on_dialled) {
    dial_tcp(tasks, address->where, Millis(5000), link_options,
             [&, on_dialled](Result<std::shared_ptr<Link>> dialled) {
               if (!dialled) return on_dialled(std::move(dialled));
               on_dialled(std::shared_ptr<Link>(
                   std::make_shared<LyingLink>(io, std::move(*dialled), lie, first)));
             });
  };
  options.on_exit = [&](const volunteer::Exit& reason) { exit = reason; };
  volunteer::ThreadedClient client(io, std::move(options));
  client.start();
  while (!exit) io.run_one();
  std::printf("%s\n", exit->error.message.c_str());
  tasks.cancel();
  io.run_for(std::chrono::seconds(1));
  return exit->success ? 0 : 1;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const auto& [name, lie] : gleaner::lies()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const auto& lies = gleaner::lies();
  const bool is_late = argc == 5 && std::string(argv[3]) == "late";
  if (argc != 5 || (!is_late && !lies.contains(argv[3]))) {
    std::fprintf(stderr, "usage: gleaner-liar ADDRESS CACHE LIE FIRST | --list\n");
    return 2;
  }
  return gleaner::run(argv[1], argv[2], is_late ? nullptr : &lies.at(argv[3]), std::atoi(argv[4]));
}
