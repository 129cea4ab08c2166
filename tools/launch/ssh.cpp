// ssh: a script that starts, asks and ends volunteers on hosts that are used in turn. The line goes
// through the connection's input into a file that only its owner may read.
#include <fmt/format.h>

#include "common/settings/settings_value.hpp"
#include "tools/launch/launch.hpp"

namespace gleaner {

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

}  // namespace gleaner
