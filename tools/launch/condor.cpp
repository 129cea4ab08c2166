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

}  // namespace gleaner
