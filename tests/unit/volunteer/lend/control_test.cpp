// The control socket, its verbs and the day's figures.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/support/no_descriptors_left.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/control_server.hpp"
#include "volunteer/lend/verbs.hpp"
#include "volunteer/lend/work_record.hpp"

namespace gleaner::volunteer {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "gleaner-control-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }

  ~Folder() { fs::remove_all(path); }

  std::string path;
};

// Asks on a thread of its own while the server's loop runs here.
template <typename Ask>
auto while_serving(asio::io_context& io, const Ask& ask) {
  decltype(ask()) result = Error{ErrorCode::kIo, "not asked"};
  std::atomic<bool> is_done = false;
  std::thread asking([&] {
    result = ask();
    is_done = true;
  });
  while (!is_done) io.run_one_for(std::chrono::milliseconds(10));
  asking.join();
  return result;
}

mode_t mode_of(const std::string& path) {
  struct stat facts {};

  REQUIRE(stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777;
}

}  // namespace

TEST_CASE("control: a line is answered by a line, and only the owner may ask", "[control]") {
  const Folder folder;
  const std::string path = folder.path + "/run/control";
  asio::io_context io;
  const auto echo = [](const std::string& request) { return "<" + request + ">"; };
  auto server = ControlServer::listen(io, path, echo);
  REQUIRE(server);
  REQUIRE(mode_of(path) == 0600);
  REQUIRE(mode_of(folder.path + "/run") == 0700);
  const auto twice = while_serving(io, [&]() -> Result<std::string> {
    auto client = ControlClient::connect(path);
    if (!client) return client.error();
    const auto one = client->ask("one");
    if (!one) return one.error();
    return *one + client->ask("two").value();
  });
  REQUIRE(twice.value() == "<one><two>");

  // A second volunteer does not take the place of a living one.
  asio::io_context other_io;
  const auto second = while_serving(io, [&]() -> Result<std::string> {
    auto other = ControlServer::listen(other_io, path, echo);
    return other ? Result<std::string>("it listens") : Result<std::string>(other.error());
  });
  REQUIRE_THAT(second.error().message, Catch::Contains("another volunteer"));
  server->reset();
  REQUIRE_FALSE(fs::exists(path));
  REQUIRE_FALSE(ask_volunteer(path, "anybody?"));
}

TEST_CASE("control: the socket of a dead volunteer is replaced", "[control]") {
  const Folder folder;
  const std::string path = folder.path + "/control";
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  REQUIRE(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  close(dead);
  asio::io_context io;
  auto server =
      ControlServer::listen(io, path, [](const std::string&) { return std::string("x"); });
  REQUIRE(server);
  REQUIRE(while_serving(io, [&] { return ask_volunteer(path, "?"); }).value() == "x");
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizers' own checks of pointers need descriptors
TEST_CASE("control: a process without descriptors left waits until it has some", "[control]") {
  const Folder folder;
  const std::string path = folder.path + "/control";
  asio::io_context io;
  const auto server = ControlServer::listen(io, path, [](const std::string& line) { return line; });
  REQUIRE(server);
  asio::local::stream_protocol::socket peer(io);
  peer.open();
  std::optional<testing::NoDescriptorsLeft> none(std::in_place);
  peer.connect(asio::local::stream_protocol::endpoint(path));
  const std::size_t first = io.run_one_for(std::chrono::seconds(60));
  const std::size_t others = io.run_for(std::chrono::milliseconds(250));
  none.reset();
  REQUIRE(first > 0);
  REQUIRE(others < 20);
  asio::write(peer, asio::buffer("late\n", 5));
  std::array<char, 5> answer{};
  bool is_answered = false;
  asio::async_read(peer, asio::buffer(answer),
                   [&](asio::error_code error, std::size_t) { is_answered = !error; });
  while (!is_answered) REQUIRE(io.run_one_for(std::chrono::seconds(20)) > 0);
}
#endif

TEST_CASE("control: a request without end is hung up on", "[control]") {
  const Folder folder;
  const std::string path = folder.path + "/control";
  asio::io_context io;
  auto server =
      ControlServer::listen(io, path, [](const std::string&) { return std::string("x"); });
  REQUIRE(server);
  const std::string endless(100'000, 'a');
  REQUIRE_FALSE(while_serving(io, [&] { return ask_volunteer(path, endless); }));
  REQUIRE(while_serving(io, [&] { return ask_volunteer(path, "?"); }).value() == "x");
}

TEST_CASE("control: what is no verb is left to the flags", "[control]") {
  REQUIRE_FALSE(run_verb({}, Reach(), Tell()).has_value());
  REQUIRE_FALSE(run_verb({"host:7070"}, Reach(), Tell()).has_value());
  REQUIRE(run_verb({"statsu"}, Reach(), Tell()) == ExitCode::kUsage);
  REQUIRE_FALSE(run_verb({"statsu:7070"}, Reach(), Tell()).has_value());
  REQUIRE(run_verb({"status", "--loud"}, Reach(), Tell()) == ExitCode::kUsage);
  REQUIRE(run_verb({"snooze"}, Reach(), Tell()) == ExitCode::kUsage);
  REQUIRE(run_verb({"snooze", "--help"}, Reach(), Tell()) == ExitCode::kOk);
  REQUIRE(run_verb({"status", "--control", "/nonexistent/socket"}, Reach(), Tell()) ==
          ExitCode::kFailure);
  REQUIRE(status_table("not json") == "not json\n");
}

TEST_CASE("day ledger: figures outlive a restart, not a day", "[control]") {
  const Folder folder;
  {
    DayLedger ledger(folder.path, "2026-11-25");
    ledger.note({100, 20, 3}, "2026-11-25");
    ledger.note({150, 20, 4}, "2026-11-25");
    REQUIRE(ledger.today() == DayFigures{150, 20, 4});
    REQUIRE(ledger.save());
  }
  DayLedger again(folder.path, "2026-11-25");
  again.note({1, 1, 1}, "2026-11-25");
  REQUIRE(again.today() == DayFigures{151, 21, 5});
  again.note({3, 1, 1}, "2026-11-26");
  REQUIRE(again.today() == DayFigures{2, 0, 0});
  REQUIRE(again.save());
  REQUIRE(DayLedger(folder.path, "2026-11-27").today() == DayFigures{});
  std::ofstream(folder.path + "/today") << "garbage";
  REQUIRE(DayLedger(folder.path, "2026-11-26").today() == DayFigures{});
  REQUIRE(DayLedger("", "2026-11-26").save());
  REQUIRE(day_name(0).size() == 10);
}

TEST_CASE("join: the line is kept for its owner alone, and the service starts", "[control]") {
  const Folder folder;
  const std::string file = folder.path + "/etc/volunteer.line";
  const std::string line =
      "gleaner://h:7070/u5zrea2vuu2gekrayclbd44ede.ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y";
  std::vector<std::vector<std::string>> commands;
  JoinPlace place;
  place.is_root = place.has_systemd = place.has_unit = true;
  place.reach = [](const MasterAddress&) { return Result<void>(); };
  place.run = [&](const std::vector<std::string>& command) {
    commands.push_back(command);
    return true;
  };
  REQUIRE(join(" " + line + " ", file, place));
  REQUIRE(mode_of(file) == 0600);
  std::string kept;
  REQUIRE(std::getline(std::ifstream(file), kept));
  REQUIRE(kept == line);
  const std::string unit = "gleaner-volunteer.service";
  REQUIRE(commands ==
          std::vector<std::vector<std::string>>{{"systemctl", "enable", "--quiet", unit},
                                                {"systemctl", "restart", unit}});

  // Text that is no line of a master replaces nothing.
  REQUIRE(join("gleaner://h:7070", file, place).error().code == ErrorCode::kInvalidArgument);
  REQUIRE(join("h:7070", file, place).error().code == ErrorCode::kInvalidArgument);
  REQUIRE(std::getline(std::ifstream(file), kept));
  REQUIRE(kept == line);

  // Nothing is started where there is no service or no systemd, and a failure is one.
  commands.clear();
  place.has_systemd = false;
  REQUIRE(join(line, file, place));
  place.has_unit = false;
  REQUIRE(join(line, file, place));
  REQUIRE(commands.empty());
  place.has_systemd = place.has_unit = true;
  place.run = [](const auto&) { return false; };
  REQUIRE_FALSE(join(line, file, place));
  place.is_root = false;
  REQUIRE_FALSE(join(line, folder.path + "/other", place));
  REQUIRE_FALSE(fs::exists(folder.path + "/other"));
}

TEST_CASE("join: it says whether the master can be reached, and waits where it cannot",
          "[control]") {
  const Folder folder;
  const std::string file = folder.path + "/volunteer.line";
  const std::string secret = "u5zrea2vuu2gekrayclbd44ede.ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y";
  JoinPlace place;
  place.is_root = place.has_systemd = place.has_unit = true;
  place.run = [](const auto&) { return true; };
  Result<void> reached;
  place.reach = [&](const MasterAddress&) { return reached; };
  const auto said = [&](const std::string& host) {
    return join("gleaner-volunteer gleaner://" + host + "/" + secret, file, place).value();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(said("h:7070"), Contains("The master at h:7070 answers.") &&
                                 Contains("service runs, and starts with the machine"));
  reached = Error{ErrorCode::kIo, "h:7070: Connection refused"};
  CHECK_THAT(said("h:7070"), Contains("cannot reach h:7070 yet: Connection refused.\n") &&
                                 Contains("let TCP port 7070 through?") &&
                                 Contains("service tries again until it can"));
  CHECK_THAT(said("127.0.0.1:7070"), Contains("127.0.0.1 is this machine itself"));
  reached = Error{ErrorCode::kIdentity, "another key answers"};
  CHECK_THAT(said("h:7070"), Contains("yet: another key answers.") && !Contains("firewall"));
}

TEST_CASE("leave: it undoes join", "[control]") {
  const Folder folder;
  const std::string file = folder.path + "/volunteer.line";
  std::ofstream(file) << "gleaner://h:7070/KEY.INVITE\n";
  JoinPlace place;
  place.is_root = place.has_systemd = place.has_unit = true;
  std::vector<std::string> said;
  bool succeeds = false;
  place.run = [&](const std::vector<std::string>& command) {
    said = command;
    return succeeds;
  };
  REQUIRE_FALSE(leave(file, place));
  REQUIRE(fs::exists(file));
  succeeds = true;
  REQUIRE_THAT(leave(file, place).value(), Catch::Contains("is stopped, and starts no more"));
  REQUIRE(said == std::vector<std::string>{"systemctl", "disable", "--now", "--quiet",
                                           "gleaner-volunteer.service"});
  REQUIRE_FALSE(fs::exists(file));
  REQUIRE_THAT(leave(file, place).error().message, Catch::Contains("there is no line in"));
  place.is_root = false;
  REQUIRE_FALSE(leave(file, place));
}

TEST_CASE("thanks: the last hundred are kept where there is a folder", "[control]") {
  const Folder folder;
  REQUIRE(keep_thanks("", "h:1", "finished").ok());
  REQUIRE(kept_thanks(folder.path).empty());
  for (int i = 0; i < 101; ++i) {
    REQUIRE(keep_thanks(folder.path, "h:1", "finished: " + std::to_string(i)).ok());
  }
  const std::vector<std::string> kept = kept_thanks(folder.path);
  REQUIRE(kept.size() == 100);
  REQUIRE(kept.front() == "finished: 1 (h:1)");
  REQUIRE(kept.back() == "finished: 100 (h:1)");
}

TEST_CASE("thanks: signed ones are kept once a run, and a change is told", "[control]") {
  using Catch::Contains;
  const Folder folder;
  const KeyPair master = KeyPair::make(), own = KeyPair::make();
  Thanks thanks{own.id(), 60, 1'000, Checked::kSome, false, 1'764'000'000, "birds"};
  REQUIRE(keep_thanks(folder.path, sign(thanks, master)));
  CHECK_THAT(
      kept_thanks(folder.path).front(),
      Contains(" thank you, 60 s, 1,000 examples, some of them checked, for the run birds") &&
          !Contains("finished"));
  thanks = {own.id(), 11'520, 41'000, Checked::kAll, true, 1'764'000'000, "birds"};
  REQUIRE(keep_thanks(folder.path, sign(thanks, master)));
  REQUIRE(keep_thanks(folder.path, "h:1", "finished: thank you"));
  std::vector<std::string> kept = kept_thanks(folder.path);
  REQUIRE(kept.size() == 2);
  CHECK_THAT(kept[0], Contains("finished: thank you, 3 h 12 min, 41,000 examples checked") &&
                          Contains("; signed by master " + to_text(master.id())) &&
                          Catch::EndsWith("for volunteer " + to_text(own.id())));
  CHECK(kept[1] == "finished: thank you (h:1)");

  const std::string file = folder.path + "/finished";
  std::string line;
  std::getline(std::ifstream(file), line);
  line.replace(line.find("41000"), 5, "91000");
  std::ofstream(file) << line << "\n" << line.substr(0, 50) << "\n";
  kept = kept_thanks(folder.path);
  CHECK_THAT(kept[0], Contains("91,000 examples") && Catch::EndsWith("was changed since") &&
                          !Contains("signed by"));
  CHECK_THAT(kept[1], Catch::EndsWith("was changed since"));
}

TEST_CASE("verbs: a command that is pasted behind the program's name is read", "[control]") {
  using Words = std::vector<std::string>;
  CHECK(without_pasted_name({"sudo", "gleaner-volunteer", "join", "x"}) == Words{"join", "x"});
  CHECK(without_pasted_name({"gleaner-volunteer", "gleaner://h:1/k.i"}) ==
        Words{"gleaner://h:1/k.i"});
  CHECK(without_pasted_name({"status"}) == Words{"status"});
  CHECK(without_pasted_name({"sudo"}).empty());
}

}  // namespace gleaner::volunteer
