// Both ends of the volunteer's control pipe under Windows. Its access list admits its own user,
// administrators and the system, and nobody over the network.
#include <winsock2.h>
//
#include <windows.h>
//
#include <fmt/format.h>
#include <sddl.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/windows/overlapped_ptr.hpp>
#include <asio/windows/stream_handle.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "common/os/windows_text.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/control_connection.hpp"

namespace gleaner::volunteer {
namespace {

constexpr char kPipes[] = R"(\\.\pipe\)";
constexpr DWORD kPatienceMs = 5'000;
constexpr DWORD kBufferBytes = 64 << 10;
constexpr std::chrono::milliseconds kAcceptPause{100};

// Turns a path into the name of a pipe, since pipes have no folders.
std::wstring pipe_name(const std::string& path) {
  if (path.starts_with(kPipes)) return os::wide(path);
  std::string name = path;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\\' || c == '/' || c == ':'; }, '-');
  return os::wide(kPipes + name);
}

Error failure(const std::string& what, DWORD error) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, os::error_words(error))};
}

// Waits for a transfer that has begun. Returns a system error, or 0.
DWORD await(HANDLE pipe, OVERLAPPED& transfer, bool is_done, DWORD& bytes) {
  if (!is_done && GetLastError() != ERROR_IO_PENDING) return GetLastError();
  if (WaitForSingleObject(transfer.hEvent, kPatienceMs) != WAIT_OBJECT_0) {
    CancelIoEx(pipe, &transfer);
    (void)GetOverlappedResult(pipe, &transfer, &bytes, TRUE);
    return ERROR_TIMEOUT;
  }
  return GetOverlappedResult(pipe, &transfer, &bytes, TRUE) != 0 ? 0 : GetLastError();
}

// Owns the event that a transfer sets.
struct Done {
  Done() : transfer{} { transfer.hEvent = CreateEventW(nullptr, TRUE, FALSE, nullptr); }

  ~Done() { CloseHandle(transfer.hEvent); }

  Done(const Done&) = delete;
  Done& operator=(const Done&) = delete;

  OVERLAPPED transfer;
};

}  // namespace

std::vector<std::string> control_paths(const std::string& given, const std::string& cache_folder) {
  if (!given.empty()) return {given};
  const char* user = std::getenv("USERNAME");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string of_user =
      fmt::format("{}gleaner-volunteer-{}", kPipes, user == nullptr ? "" : user);
  if (cache_folder.empty()) return {of_user};
  std::error_code error;
  std::string folder = std::filesystem::absolute(cache_folder, error).string();
  std::ranges::replace_if(
      folder, [](char c) { return c == '\\' || c == '/' || c == ':'; }, '-');
  return {of_user + "-" + folder, of_user};
}

std::vector<std::string> paths_to_ask(const std::string& given, const std::string& cache_folder) {
  std::vector<std::string> paths = control_paths(given, cache_folder);
  if (given.empty() && cache_folder.empty()) {
    paths.push_back(std::string(kPipes) + "gleaner-volunteer");
  } else {
    paths.resize(1);  // no other volunteer may answer
  }
  return paths;
}

Result<ControlClient> ControlClient::connect(const std::string& path) {
  const std::wstring name = pipe_name(path);
  for (;;) {
    // The listener may identify this process, but not act in its name.
    const HANDLE pipe = CreateFileW(
        name.c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, OPEN_EXISTING,
        FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, nullptr);
    if (pipe != INVALID_HANDLE_VALUE) return ControlClient(reinterpret_cast<std::intptr_t>(pipe));
    const DWORD error = GetLastError();
    if (error != ERROR_PIPE_BUSY || WaitNamedPipeW(name.c_str(), kPatienceMs) == 0) {
      return failure(path, error);
    }
  }
}

ControlClient::~ControlClient() {
  if (socket_ != -1) CloseHandle(reinterpret_cast<HANDLE>(socket_));
}

Result<std::size_t> ControlClient::send_some(std::string_view text) {
  const HANDLE pipe = reinterpret_cast<HANDLE>(socket_);
  Done done;
  DWORD bytes = 0;
  const bool is_sent =
      WriteFile(pipe, text.data(), static_cast<DWORD>(text.size()), nullptr, &done.transfer) != 0;
  const DWORD error = await(pipe, done.transfer, is_sent, bytes);
  if (error == ERROR_BROKEN_PIPE || error == ERROR_NO_DATA) return std::size_t{0};
  if (error != 0) return failure("the volunteer does not listen", error);
  return std::size_t{bytes};
}

Result<std::size_t> ControlClient::receive_some(std::span<char> part) {
  const HANDLE pipe = reinterpret_cast<HANDLE>(socket_);
  Done done;
  DWORD bytes = 0;
  const bool is_read =
      ReadFile(pipe, part.data(), static_cast<DWORD>(part.size()), nullptr, &done.transfer) != 0;
  const DWORD error = await(pipe, done.transfer, is_read, bytes);
  if (error == ERROR_BROKEN_PIPE) return std::size_t{0};
  if (error != 0) return failure("the volunteer does not answer", error);
  return std::size_t{bytes};
}

struct ControlServer::Impl {
  using Connection = ControlConnection<asio::windows::stream_handle>;

  Impl(asio::io_context& io, std::string path, Answer answer)
      : io_(io), path_(std::move(path)), answer_(std::move(answer)), next_(io), pause_(io) {
    // The list: the pipe's owner, who is the user that made it; administrators; the system.
    (void)ConvertStringSecurityDescriptorToSecurityDescriptorW(
        L"D:P(A;;GA;;;OW)(A;;GA;;;BA)(A;;GA;;;SY)", SDDL_REVISION_1, &rights_, nullptr);
  }

  ~Impl() {
    *alive_ = false;
    for (const auto& connection : connections_) connection->close();
    asio::error_code ignored;
    next_.close(ignored);
    LocalFree(rights_);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Makes a pipe instance for the next client. Returns a system error, or 0.
  DWORD make_place(bool is_first) {
    SECURITY_ATTRIBUTES owner_only{sizeof(SECURITY_ATTRIBUTES), rights_, FALSE};
    const DWORD first = is_first ? FILE_FLAG_FIRST_PIPE_INSTANCE : 0;
    const HANDLE pipe = CreateNamedPipeW(
        pipe_name(path_).c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
        PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
        static_cast<DWORD>(kControlConnectionsMax), kBufferBytes, kBufferBytes, 0, &owner_only);
    if (pipe == INVALID_HANDLE_VALUE) return GetLastError();
    asio::error_code error;
    next_.assign(pipe, error);
    return 0;
  }

  void accept() {
    asio::windows::overlapped_ptr wait(io_,
                                       [this, alive = alive_](asio::error_code error, std::size_t) {
                                         if (*alive) take(error);
                                       });
    const bool is_done = ConnectNamedPipe(next_.native_handle(), wait.get()) != 0;
    const DWORD error = GetLastError();
    if (is_done || error == ERROR_PIPE_CONNECTED) {
      wait.complete(asio::error_code(), 0);
    } else if (error == ERROR_IO_PENDING) {
      (void)wait.release();
    } else {
      wait.complete(asio::error_code(static_cast<int>(error), asio::error::get_system_category()),
                    0);
    }
  }

  void take(asio::error_code error) {
    if (error == asio::error::operation_aborted) return;
    asio::windows::stream_handle taken = std::exchange(next_, asio::windows::stream_handle(io_));
    if (!error) {
      const auto connection = std::make_shared<Connection>(std::move(taken), answer_, connections_);
      connections_.insert(connection);
      connection->start();
    }
    open_again();
  }

  // All instances may be in use: tries again soon.
  void open_again() {
    if (make_place(false) == 0) return accept();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](asio::error_code error) {
      if (!error) open_again();
    });
  }

  asio::io_context& io_;
  const std::string path_;
  const Answer answer_;
  PSECURITY_DESCRIPTOR rights_ = nullptr;
  asio::windows::stream_handle next_;
  asio::steady_timer pause_;
  Connection::All connections_;
  // Callbacks of waits may come after this object has ended.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

ControlServer::ControlServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControlServer::~ControlServer() = default;

const std::string& ControlServer::path() const {
  return impl_->path_;
}

Result<std::unique_ptr<ControlServer>> ControlServer::listen(asio::io_context& io, std::string path,
                                                             Answer answer) {
  auto server = std::make_unique<Impl>(io, std::move(path), std::move(answer));
  const DWORD error = server->make_place(true);
  if (error == ERROR_ACCESS_DENIED) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: cannot listen there: another volunteer does; give this one its "
                             "own --control",
                             server->path_)};
  }
  if (error != 0) return failure(server->path_ + ": cannot listen there", error);
  server->accept();
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(server)));
}

}  // namespace gleaner::volunteer
