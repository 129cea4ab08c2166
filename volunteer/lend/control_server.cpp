#include "volunteer/lend/control_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <utility>

#include "volunteer/lend/control_client.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kRequestBytesMax = 4096;
constexpr std::size_t kConnectionsMax = 32;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kSilence{30};

// Whether the process at the other end is this user's or root's.
bool is_trusted(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

Error cannot_listen(const std::string& path, const std::string& why) {
  return {ErrorCode::kIo, fmt::format("{}: cannot listen there: {}", path, why)};
}

}  // namespace

// One who asks, until it hangs up or falls silent.
class ControlServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ControlServer& server, asio::local::stream_protocol::socket socket)
      : server_(server), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  void start() {
    if (is_trusted(socket_.native_handle())) {
      read();
    } else {
      write(R"({"error":"only the volunteer's own user and root may ask"})", true);
    }
  }

  void close() {
    asio::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

 private:
  void read() {
    timer_.expires_after(kSilence);
    timer_.async_wait([self = weak_from_this()](asio::error_code error) {
      if (const auto connection = self.lock(); connection && !error) connection->end();
    });
    asio::async_read_until(socket_, asio::dynamic_buffer(received_, kRequestBytesMax), '\n',
                           [self = weak_from_this()](asio::error_code error, std::size_t bytes) {
                             const auto connection = self.lock();
                             if (!connection) return;
                             if (error) return connection->end();
                             connection->handle(bytes);
                           });
  }

  void handle(std::size_t bytes) {
    const std::string request = received_.substr(0, bytes - 1);
    received_.erase(0, bytes);
    write(server_.answer_(request), false);
  }

  void write(std::string answer, bool is_last) {
    answer_ = std::move(answer) + "\n";
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = weak_from_this(), is_last](asio::error_code error, std::size_t) {
                        const auto connection = self.lock();
                        if (!connection) return;
                        if (error || is_last) return connection->end();
                        connection->read();
                      });
  }

  void end() {
    close();
    server_.connections_.erase(shared_from_this());
  }

  ControlServer& server_;
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer timer_;
  std::string received_;
  std::string answer_;
};

ControlServer::ControlServer(asio::io_context& io, std::string path, Answer answer)
    : path_(std::move(path)), answer_(std::move(answer)), acceptor_(io), pause_(io) {}

ControlServer::~ControlServer() {
  for (const auto& connection : connections_) connection->close();
  if (acceptor_.is_open()) unlink(path_.c_str());
}

Result<std::unique_ptr<ControlServer>> ControlServer::listen(asio::io_context& io, std::string path,
                                                             Answer answer) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code trouble;
  if (!folder.empty() && !std::filesystem::exists(folder, trouble)) {
    std::filesystem::create_directories(folder, trouble);
    if (!trouble) chmod(folder.c_str(), 0700);
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return cannot_listen(path, "the path is longer than the system takes");
  }
  if (std::filesystem::is_socket(path, trouble)) {
    if (ask_volunteer(path, "{}")) {
      return cannot_listen(path, "another volunteer does; give this one its own --control");
    }
    unlink(path.c_str());
  }
  std::unique_ptr<ControlServer> server(new ControlServer(io, std::move(path), std::move(answer)));
  asio::error_code error;
  auto& acceptor = server->acceptor_;
  acceptor.open(asio::local::stream_protocol(), error);
  const mode_t mask = umask(0177);
  if (!error) acceptor.bind(server->path_, error);
  umask(mask);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const Error failure = cannot_listen(server->path_, error.message());
    acceptor.close(error);
    return failure;
  }
  server->accept();
  return server;
}

void ControlServer::accept() {
  acceptor_.async_accept(
      [this](asio::error_code error, asio::local::stream_protocol::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (error) return accept_later();
        if (connections_.size() < kConnectionsMax) {
          auto connection = std::make_shared<Connection>(*this, std::move(socket));
          connections_.insert(connection);
          connection->start();
        }
        accept();
      });
}

void ControlServer::accept_later() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](asio::error_code error) {
    if (!error) accept();
  });
}

}  // namespace gleaner::volunteer
