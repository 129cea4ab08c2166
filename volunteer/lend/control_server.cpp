#include "volunteer/lend/control_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <utility>

#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/control_connection.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};

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

struct ControlServer::Impl {
  using Connection = ControlConnection<asio::local::stream_protocol::socket>;

  Impl(asio::io_context& io, std::string path, Answer answer);
  ~Impl();
  void accept();
  // Waits before the next accept: without free descriptors accept fails at once, again and again.
  void accept_later();

  const std::string path_;
  const Answer answer_;
  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  Connection::All connections_;
};

ControlServer::Impl::Impl(asio::io_context& io, std::string path, Answer answer)
    : path_(std::move(path)), answer_(std::move(answer)), acceptor_(io), pause_(io) {}

ControlServer::Impl::~Impl() {
  for (const auto& connection : connections_) connection->close();
  if (acceptor_.is_open()) unlink(path_.c_str());
}

ControlServer::ControlServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControlServer::~ControlServer() = default;

const std::string& ControlServer::path() const {
  return impl_->path_;
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
  auto server = std::make_unique<Impl>(io, std::move(path), std::move(answer));
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
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(server)));
}

void ControlServer::Impl::accept() {
  acceptor_.async_accept(
      [this](asio::error_code error, asio::local::stream_protocol::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (error) return accept_later();
        if (connections_.size() < kControlConnectionsMax) {
          const auto connection =
              std::make_shared<Connection>(std::move(socket), answer_, connections_);
          connections_.insert(connection);
          if (is_trusted(connection->stream().native_handle())) {
            connection->start();
          } else {
            connection->refuse(R"({"error":"only the volunteer's own user and root may ask"})");
          }
        }
        accept();
      });
}

void ControlServer::Impl::accept_later() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](asio::error_code error) {
    if (!error) accept();
  });
}

}  // namespace gleaner::volunteer
