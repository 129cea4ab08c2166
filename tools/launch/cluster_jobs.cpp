// HTCondor: a cluster of jobs in the vanilla universe, no more of them in the queue at a time than
// there are to be volunteers. The program and the line travel with the job; nothing comes back.
#include <fmt/format.h>

#include "tools/launch/launch.hpp"

namespace gleaner {

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
      "# of the array has ended, the next one does; one that finds the run finished ends at once.\n"
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

}  // namespace gleaner
