// The verbs of `gleaner`, by kind. Each function adds sub-commands to `app`. The sub-command that
// the command line names runs while `app` parses, and sets `exit_status`, which must outlive the
// parsing.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// -- ask a run, look into a store
void add_status_commands(CLI::App& app, int& exit_status);
void add_inspect_command(CLI::App& app, int& exit_status);
void add_history_command(CLI::App& app, int& exit_status);
void add_plot_command(CLI::App& app, int& exit_status);
void add_diff_command(CLI::App& app, int& exit_status);
void add_receipts_command(CLI::App& app, int& exit_status);

// -- keep a run whole
void add_checkpoint_commands(CLI::App& app, int& exit_status);
void add_verify_commands(CLI::App& app, int& exit_status);
void add_backup_commands(CLI::App& app, int& exit_status);

// -- data sets and plans
void add_dataset_commands(CLI::App& app, int& exit_status);
void add_plan_command(CLI::App& app, int& exit_status);

// -- models. `import` does not return when it starts a run: the process becomes gleaner-master.
void add_evaluate_command(CLI::App& app, int& exit_status);
void add_predict_command(CLI::App& app, int& exit_status);
void add_serve_command(CLI::App& app, int& exit_status);
void add_export_command(CLI::App& app, int& exit_status);
void add_import_command(CLI::App& app, int& exit_status);

// -- who takes part
void add_access_commands(CLI::App& app, int& exit_status);
void add_launch_command(CLI::App& app, int& exit_status);
void add_relay_command(CLI::App& app, int& exit_status);

// -- the program itself
void add_completion_command(CLI::App& app, int& exit_status);

}  // namespace gleaner
