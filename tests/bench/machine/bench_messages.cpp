// Measures a message's cost besides its packing: two ends as master and volunteer have them, a
// thread for the network and one for the work each, joined by the programs' own link over loopback.
// A message goes from the work's thread through codec, socket and kernel to the other's work.
#include <algorithm>
#include <array>
#include <asio/connect.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/counter_random.hpp"
#include "common/net/tcp_link.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/wire/codec.hpp"
#include "tests/bench/machine/bench_layer.hpp"
#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kFewExamples = 16;
constexpr std::uint32_t kManyExamples = 512;
constexpr std::uint32_t kShardsHeld = 8;
constexpr std::uint32_t kExchangesMin = 40;
constexpr double kExchangeSeconds = 2e-4;  // about, to fill a budget
constexpr std::chrono::seconds kPatience{60};

TrainUnit unit_of(const QuantizedActivations& codes) {
  TrainUnit unit;
  UnitBatch batch;
  batch.hidden = std::make_shared<const Bytes>(pack(codes));
  batch.positives = no_positives(codes.examples);
  for (std::uint32_t s = 0; s < kShardsHeld; ++s) {
    unit.leases.push_back({ShardId{s}, LeaseEpoch{s + std::uint64_t{1}}});
  }
  unit.batches.push_back(std::move(batch));
  return unit;
}

UnitResult result_of(const QuantizedActivations& codes) {
  UnitResult result;
  BatchResult batch;
  for (std::uint32_t s = 0; s < kShardsHeld; ++s) batch.shards.push_back({ShardId{s}, s, s, s});
  std::vector<std::int32_t> gradient;
  Rng rng(6, Purpose::kTest);
  for (std::size_t i = 0; i < codes.codes.size(); ++i) {
    gradient.push_back(static_cast<std::int32_t>(rng.next_below(4096)) - 2048);
  }
  batch.gradient = pack_gradient(codes, gradient);
  result.batches.push_back(std::move(batch));
  return result;
}

// One end. Whatever comes is decoded, passed to the work's thread and answered from there.
class End {
 public:
  explicit End(Message says) : says_(std::move(says)) {}

  ~End() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    work_.join();
  }

  End(const End&) = delete;
  End& operator=(const End&) = delete;

  asio::io_context& io() { return io_; }

  void start(asio::ip::tcp::socket socket) {
    link_ = make_tcp_link(std::move(socket), {}, tasks_);
    Link::Handler handler;
    handler.on_frame = [this](const Bytes& payload, std::size_t wire_bytes) {
      bytes_ += wire_bytes;
      const Result<Message> message = decode(payload);
      if (!message) return end(false);
      asio::post(work_, [this] { asio::post(io_, [this] { answer(); }); });
    };
    handler.on_closed = [this](const std::string&) { end(false); };
    link_->start(std::move(handler));
    thread_ = std::thread([this] { io_.run(); });
  }

  // Says something `times` times and waits for the last answer. False when an answer was none.
  bool talk(std::uint32_t times) {
    std::promise<bool> ended;
    std::future<bool> result = ended.get_future();
    asio::post(io_, [this, times, &ended] {
      left_ = times;
      ended_ = &ended;
      answer();
    });
    const bool is_in_time = result.wait_for(kPatience) == std::future_status::ready;
    if (is_in_time) return result.get();
    io_.stop();
    thread_.join();  // nothing uses the promise any more
    return false;
  }

  // That came so far. Between two talks.
  [[nodiscard]] double bytes() const { return static_cast<double>(bytes_); }

 private:
  void answer() {
    if (left_ && *left_ == 0) return end(true);
    if (left_) --*left_;
    link_->send(encode(says_), Lane::kOrdered);
  }

  void end(bool is_good) {
    if (ended_ != nullptr) std::exchange(ended_, nullptr)->set_value(is_good);
  }

  const Message says_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  TaskGroup tasks_{io_.get_executor(), [](const std::string&, const std::string&) {}};
  asio::thread_pool work_{1};
  std::shared_ptr<Link> link_;
  std::optional<std::uint32_t> left_;  // of a talk; none: it answers without end
  std::promise<bool>* ended_ = nullptr;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::thread thread_;
};

// The costs of an exchange: a message each way.
struct Exchange {
  double seconds = 0;  // of processor, of both ends
  double bytes = 0;
};

Result<Exchange> time_exchange(const BenchShape& shape, std::uint32_t examples) {
  const QuantizedActivations codes = clustered_codes(shape.hidden, 0, examples);
  End answering(result_of(codes));
  End asking(unit_of(codes));
  asio::error_code error;
  asio::ip::tcp::acceptor acceptor(answering.io());
  const asio::ip::tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0);
  acceptor.open(any_port.protocol(), error);
  if (!error) acceptor.bind(any_port, error);
  if (!error) acceptor.listen(1, error);
  asio::ip::tcp::socket from(asking.io());
  asio::ip::tcp::socket to(answering.io());
  if (!error) from.connect(acceptor.local_endpoint(error), error);
  if (!error) acceptor.accept(to, error);
  if (error) return Error{ErrorCode::kIo, "no connection over loopback: " + error.message()};
  answering.start(std::move(to));
  asking.start(std::move(from));
  const auto times =
      std::max(kExchangesMin, static_cast<std::uint32_t>(shape.budget / kExchangeSeconds));
  Exchange exchange;
  bool is_good = asking.talk(kExchangesMin);
  const double sent_before = asking.bytes() + answering.bytes();
  exchange.seconds = -processor_seconds();
  is_good = is_good && asking.talk(times);
  exchange.seconds = (exchange.seconds + processor_seconds()) / times;
  exchange.bytes = (asking.bytes() + answering.bytes() - sent_before) / times;
  if (!is_good) return Error{ErrorCode::kIo, "messages over loopback did not arrive"};
  return exchange;
}

}  // namespace

Result<std::vector<BenchLine>> bench_messages(const BenchShape& shape) {
  const Result<Exchange> few = time_exchange(shape, kFewExamples);
  if (!few) return few.error();
  const Result<Exchange> many = time_exchange(shape, kManyExamples);
  if (!many) return many.error();
  // Every byte passes two ends, and an exchange has two messages, each of which passes both.
  const double byte =
      std::max(0.0, (many->seconds - few->seconds) / (2 * (many->bytes - few->bytes)));
  const double message = std::max(0.0, few->seconds - 2 * byte * few->bytes) / 4;
  return std::vector<BenchLine>{{"pass a message", "message and side", message, 0, ""},
                                {"pass a message's byte", "byte and side", byte, 0, ""}};
}

}  // namespace gleaner
