// gleaner launch: the files that start volunteers or a master on what runs programs.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace gleaner {

void add_launch_command(CLI::App& app, int& exit_status);

}  // namespace gleaner
