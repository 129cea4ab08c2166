// `gleaner predict`: what a trained model says about points, by name.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `predict` to `app`. It runs while `app` parses a command line that names it
// and puts the exit status into `exit_status`, which must outlive the parsing: 0 done, 1 failure of
// the system, 2 usage, 3 bad data, 4 no usable store.
void add_predict_command(CLI::App& app, int& exit_status);

}  // namespace gleaner
