// The list of the verbs of `gleaner`, in the groups and the order of its --help. Each function adds
// sub-commands to `app`. The sub-command that the command line names runs while `app` parses, and
// sets `exit_status`, which must outlive the parsing.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// `import` does not return when it starts a run: the process becomes gleaner-master.
#define GLEANER_VERBS(VERB)                          \
  VERB("Ask a run", add_status_commands)             \
  VERB("Ask a run", add_top_command)                 \
  VERB("Look into a store", add_inspect_command)     \
  VERB("Look into a store", add_history_command)     \
  VERB("Look into a store", add_plot_command)        \
  VERB("Look into a store", add_diff_command)        \
  VERB("Look into a store", add_receipts_command)    \
  VERB("Look into a store", add_checkpoint_commands) \
  VERB("Check and mend", add_verify_commands)        \
  VERB("Check and mend", add_backup_commands)        \
  VERB("Data sets and plans", add_dataset_commands)  \
  VERB("Data sets and plans", add_plan_command)      \
  VERB("Predict and export", add_evaluate_command)   \
  VERB("Predict and export", add_predict_command)    \
  VERB("Predict and export", add_serve_command)      \
  VERB("Predict and export", add_export_command)     \
  VERB("Predict and export", add_import_command)     \
  VERB("Admit", add_access_commands)                 \
  VERB("Launch", add_launch_command)                 \
  VERB("Launch", add_relay_command)                  \
  VERB("This program", add_completion_command)

#define GLEANER_VERB_DECLARATION(group, add) void add(CLI::App& app, int& exit_status);
GLEANER_VERBS(GLEANER_VERB_DECLARATION)
#undef GLEANER_VERB_DECLARATION

}  // namespace gleaner
