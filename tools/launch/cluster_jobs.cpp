// Files for what starts programs without containers: HTCondor, Slurm and ssh.
#include <fmt/format.h>

#include <string_view>

#include "common/result.hpp"
#include "common/settings/settings_value.hpp"
#include "tools/launch/launch.hpp"

namespace gleaner {

// HTCondor: a cluster of jobs in the vanilla universe, no more of them in the queue at a time than
// there are to be volunteers. The program and the line travel with the job; nothing comes back.

LaunchFiles condor_files(const Launch& launch) {
  const std::string line_name = launch.line_file.substr(launch.line_file.rfind('/') + 1);
  const std::string command = volunteer_command(launch, line_name) + until_flag(launch);
  std::string text = fmt::format(
      "# {0} volunteers at a time for a Gleaner run, {1} jobs in all. An evicted one starts "
      "again.\n"
      "#   submit: condor_submit volunteers.sub    end: condor_rm -constraint "
      "'JobBatchName == \"gleaner-volunteer\"'\n"
      "universe = vanilla\n"
      "batch_name = gleaner-volunteer\n"
      "executable = {2}\n"
      "arguments = \"{3}\"\n"
      "should_transfer_files = YES\n"
      "transfer_input_files = {4}\n"
      "transfer_output_files = \"\"\n"
      "when_to_transfer_output = ON_EXIT\n"
      "kill_sig = SIGTERM\n"
      "remove_kill_sig = SIGTERM\n"
      "job_max_vacate_time = 30\n"
      "request_cpus = {5}\n"
      "request_memory = {6}M\n"
      "request_disk = 512M\n"
      "max_materialize = {0}\n"
      "output = gleaner-volunteer-$(Process).out\n"
      "error = gleaner-volunteer-$(Process).err\n"
      "log = gleaner-volunteer.log\n",
      launch.volunteers, launch.jobs, launch.program, command.substr(launch.program.size() + 1),
      launch.line_file, launch.cores, mebibytes(launch.memory_bytes));
  if (launch.time_s) {
    // It has left before, and the next one has taken its place.
    text += fmt::format("periodic_remove = JobStatus == 2 && time() - EnteredCurrentStatus > {}\n",
                        *launch.time_s);
  }
  text += fmt::format("queue {}\n", launch.jobs);
  return {{{"volunteers.sub", std::move(text)}}, {{"condor_submit", "volunteers.sub"}}};
}

// Slurm: an array whose limit is the number of volunteers. The volunteer takes the place of the
// batch shell, so that every signal Slurm sends reaches it once: at a preemption and at `scancel`.
// It knows when the job's time ends and leaves before; a master is told a minute before.

namespace {

std::string directives(const Launch& launch, const char* name, std::uint32_t at_a_time) {
  std::string text = fmt::format(
      "#SBATCH --job-name={0}\n"
      "#SBATCH --array=1-{1}%{2}\n"
      "#SBATCH --ntasks=1\n"
      "#SBATCH --cpus-per-task={3}\n"
      "#SBATCH --mem={4}M\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --output={0}-%A_%a.log\n",
      name, launch.jobs, at_a_time, launch.cores, mebibytes(launch.memory_bytes));
  if (launch.time_s) text += fmt::format("#SBATCH --time={}\n", whole_minutes(*launch.time_s));
  if (launch.time_s && launch.is_master) text += "#SBATCH --signal=B:TERM@60\n";
  if (!launch.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", launch.partition);
  return text;
}

LaunchFiles job(const char* file, std::string text) {
  return {{{file, std::move(text)}}, {{"sbatch", file}}};
}

LaunchFiles master_job(const Launch& launch) {
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "# The master of a Gleaner run. It resumes the run when Slurm starts it again, and when a "
      "job\n"
      "# of the array has ended, the next one does; a job that finds the run finished ends at "
      "once.\n"
      "#   submit: sbatch master.sbatch        end: scancel --name=gleaner-master\n"
      "{}",
      directives(launch, "gleaner-master", 1));
  if (!launch.hosts.empty()) text += fmt::format("#SBATCH --nodelist={}\n", launch.hosts.front());
  text += fmt::format("exec {} --config {}\n", launch.program, launch.config_file);
  return job("master.sbatch", std::move(text));
}

}  // namespace

LaunchFiles slurm_files(const Launch& launch) {
  if (launch.is_master) return master_job(launch);
  // The end of the job as Slurm knows it: the job began before its script did.
  const char* const until =
      launch.time_s
          ? " --until \"$(squeue -h -j \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" -o %e)\""
          : "";
  return job("volunteers.sbatch",
             fmt::format("#!/bin/bash\n"
                         "# {} volunteers at a time for a Gleaner run, {} jobs in all. A preempted "
                         "one is queued again.\n"
                         "#   submit: sbatch volunteers.sbatch    end: scancel "
                         "--name=gleaner-volunteer\n"
                         "{}unset GLEANER_MASTER  # it would name another master\nexec {}{}\n",
                         launch.volunteers, launch.jobs,
                         directives(launch, "gleaner-volunteer", launch.volunteers),
                         volunteer_command(launch, launch.line_file), until));
}

// ssh: a script that starts, asks and ends volunteers on hosts that are used in turn. The line goes
// through the connection's input into a file that only its owner may read.

LaunchFiles ssh_files(const Launch& launch) {
  std::string places;
  for (std::uint32_t i = 0; i < launch.volunteers; ++i) {
    places += fmt::format("  {} {}\n", launch.hosts[i % launch.hosts.size()], i + 1);
  }
  const std::string limit =
      launch.time_s ? fmt::format("timeout --signal=TERM {} ", *launch.time_s) : "";
  // The remote side: `folder` and the line on its input. `setsid` lets it outlive the connection.
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "# {0} volunteers for a Gleaner run, by ssh: volunteers.sh start|status|stop\n"
      "# Each keeps its key, its line and its log in ~/.gleaner/volunteer-N of its host.\n"
      "set -u\n"
      "line={1}\n"
      "places=(  # host and number\n"
      "{2})\n"
      "# The rest of the words runs in the volunteer's folder; what is on standard input reaches "
      "it.\n"
      "on() {{\n"
      "  ssh -o BatchMode=yes -o ConnectTimeout=10 \"$1\" \\\n"
      "    \"umask 077; mkdir -p .gleaner/volunteer-$2 && cd .gleaner/volunteer-$2 && $3\"\n"
      "}}\n"
      "start='cat > line && {{ setsid {3}{4} --line-file line{5} --cache . --control control"
      " --threads {6} --memory {7} --once{8} > log 2>&1 < /dev/null & }}'\n"
      "status='{4} status --control control'\n"
      "stop='{4} finish --control control'\n"
      "case \"${{1-}}\" in\n"
      "  start|status|stop) words=${{!1}} ;;\n"
      "  *) echo \"usage: $0 start|status|stop\" >&2; exit 2 ;;\n"
      "esac\n"
      "failed=0\n"
      "for ((i = 0; i < ${{#places[@]}}; i += 2)); do\n"
      "  input=/dev/null\n"
      "  [[ $1 != start ]] || input=$line\n"
      "  if on \"${{places[i]}}\" \"${{places[i + 1]}}\" \"$words\" < \"$input\"; then\n"
      "    echo \"${{places[i]}}: volunteer ${{places[i + 1]}}: $1: done\"\n"
      "  else\n"
      "    echo \"${{places[i]}}: volunteer ${{places[i + 1]}}: $1: failed\" >&2\n"
      "    failed=1\n"
      "  fi\n"
      "done\n"
      "exit $failed\n",
      launch.volunteers, launch.line_file, places, limit, launch.program,
      launch.is_insecure ? " --insecure" : "", launch.cores, bytes_text(shard_bytes(launch)),
      until_flag(launch));
  return {{{"volunteers.sh", std::move(text)}}, {{"bash", "volunteers.sh", "start"}}};
}

// systemd: units on this machine. The line is a credential, so only the service sees it, and only
// in memory; the service has a user and folders of its own, and the sandbox of the packaged one.

namespace {

std::string limits(const Launch& launch) {
  const std::string text =
      fmt::format("CPUQuota={}%\nMemoryMax={}M\n", 100 * std::uint64_t{launch.cores},
                  mebibytes(launch.memory_bytes));
  if (!launch.time_s) return text + "Restart=on-failure\n";
  return text + fmt::format("RuntimeMaxSec={}\n", *launch.time_s);
}

std::string unit(const std::string& description, const std::string& service) {
  return fmt::format(
      "[Unit]\n"
      "Description={}\n"
      "Wants=network-online.target\n"
      "After=network-online.target\n\n"
      "[Service]\n"
      "{}\n"
      "[Install]\n"
      "WantedBy=multi-user.target\n",
      description, service);
}

// The sandbox of the packaged unit, except where it would hide the program.
std::string sandbox_for(const std::string& program) {
  constexpr std::string_view kHomeHidden = "ProtectHome=yes\n";
  std::string sandbox = kVolunteerSandbox;
  const std::size_t at = sandbox.find(kHomeHidden);
  GLEANER_CHECK(at != std::string::npos);
  sandbox.replace(at, kHomeHidden.size(), "ProtectHome=read-only\n");
  // DynamicUser always brings temporary folders of the unit's own.
  const bool is_temporary = program.starts_with("/tmp/") || program.starts_with("/var/tmp/");
  return is_temporary ? sandbox + "BindReadOnlyPaths=" + program + "\n" : sandbox;
}

LaunchFiles master_unit(const Launch& launch) {
  const char* const name = "gleaner-master.service";
  // Not in a sandbox: where its data and its store are is for its configuration to say.
  const std::string service = fmt::format(
      "ExecStart={} --config {}\n"
      "RestartSec=5\n"
      "TimeoutStopSec=60\n"
      "NoNewPrivileges=yes\n"
      "{}",
      launch.program, launch.config_file, limits(launch));
  return {
      {{name, "# The master of a Gleaner run. It resumes the run when it is started again.\n" +
                  unit("Gleaner master", service)}},
      {{"systemctl", "link", std::string("./") + name}, {"systemctl", "enable", "--now", name}}};
}

}  // namespace

LaunchFiles systemd_files(const Launch& launch) {
  if (launch.is_master) return master_unit(launch);
  const char* const name = "gleaner-volunteer@.service";
  const std::string service = fmt::format(
      "ExecStart={} --line-file %d/line{} --name %H-%i --cache %S/gleaner-volunteer-%i "
      "--leave-grace-s 10{}\n"
      "LoadCredential=line:{}\n"
      "StateDirectory=gleaner-volunteer-%i\n"
      "RuntimeDirectory=gleaner-volunteer-%i\n"
      "RestartSec=10\n"
      "TimeoutStopSec=20\n"
      "CPUWeight=idle\n"
      "IOSchedulingClass=idle\n"
      "DynamicUser=yes\n"
      "UMask=0077\n"
      "{}{}",
      launch.program, launch.is_insecure ? " --insecure" : "", until_flag(launch), launch.line_file,
      limits(launch), sandbox_for(launch.program));
  LaunchFiles result;
  result.files.push_back(
      {name, "# Volunteers for a Gleaner run: an instance of this unit each, 1 and up.\n" +
                 unit("Gleaner volunteer %i", service)});
  std::vector<std::string> enable = {"systemctl", "enable", "--now"};
  for (std::uint32_t i = 1; i <= launch.volunteers; ++i) {
    enable.push_back(fmt::format("gleaner-volunteer@{}.service", i));
  }
  result.commands = {{"systemctl", "link", std::string("./") + name}, std::move(enable)};
  return result;
}

}  // namespace gleaner
