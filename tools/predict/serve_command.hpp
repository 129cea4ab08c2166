// `gleaner serve`: a trained model that answers over HTTP, with a page.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `serve` to `app`; see add_history_command.
void add_serve_command(CLI::App& app, int& exit_status);

}  // namespace gleaner
