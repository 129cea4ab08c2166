// Slurm: an array whose limit is the number of volunteers. The volunteer takes the place of the
// batch shell, so that every signal Slurm sends reaches it once: at a preemption and at `scancel`.
// It knows when the job's time ends and leaves before; a master is told a minute before.
#include <fmt/format.h>

#include "tools/launch/launch.hpp"

namespace gleaner {
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
