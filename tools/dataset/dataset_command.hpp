// `gleaner dataset`: looking at, packing, splitting and making data sets.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `dataset` and its verbs to `app`. The verb that the command line names runs
// while `app` parses it and puts the process's exit status into `exit_status`, which must outlive
// the parsing: 0 done, 1 failure of the system, 2 usage, 3 bad data.
void add_dataset_commands(CLI::App& app, int& exit_status);

struct ReadFlags;

// Adds the flags that every verb has that reads a text file of points.
void add_read_flags(CLI::App& verb, ReadFlags& flags);

}  // namespace gleaner
