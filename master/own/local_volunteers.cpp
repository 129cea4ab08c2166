#include "master/own/local_volunteers.hpp"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <utility>

#include "common/net/memory_link.hpp"
#include "volunteer/hello.hpp"

namespace gleaner {

LocalVolunteers::LocalVolunteers(asio::io_context& io, CoreRunner& runner,
                                 const LocalVolunteersOptions& options)
    : present_(options.count) {
  // Their accounts are those of this machine over all starts, hence fixed identities.
  const Hello measured = volunteer::make_hello("", "", options.threads, options.memory_bytes);
  for (std::uint32_t i = 1; i <= options.count; ++i) {
    const std::string name = options.is_referee ? "referee" : fmt::format("local-{}", i);
    const KeyId identity = options.is_referee ? kRefereeIdentity : KeyId{0, i};
    volunteer::ThreadedClient::Options client;
    client.core.hello = measured;
    client.core.hello.name = name;
    client.core.master = "the master in this process";
    client.core.retry_first = options.retry_first;
    client.core.seed = i;
    client.threads = options.threads;
    client.memory_bytes = options.memory_bytes;
    const Standing standing{identity, Role::kVolunteer, true, true, {}};
    client.dial = [&io, &runner, name, standing](volunteer::Client::Dialled on_dialled) {
      asio::post(io, [&io, &runner, name, standing, on_dialled = std::move(on_dialled)] {
        auto [master_end, volunteer_end] = make_memory_links(io.get_executor(), io.get_executor());
        on_dialled(volunteer_end);
        runner.admit(master_end, name, standing);
      });
    };
    client.on_exit = [this, name, on_failure = options.on_failure,
                      on_left = options.on_left](const volunteer::Exit& exit) {
      if (!exit.success && on_failure) on_failure(name, exit.error);
      if (--present_ == 0 && on_left) on_left();
    };
    clients_.push_back(std::make_unique<volunteer::ThreadedClient>(io, std::move(client)));
  }
}

void LocalVolunteers::start() {
  for (auto& client : clients_) client->start();
}

void LocalVolunteers::stop(const std::string& reason) {
  for (auto& client : clients_) client->stop(reason);
}

}  // namespace gleaner
