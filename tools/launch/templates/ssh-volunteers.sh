#!/bin/bash
# {{volunteers}} volunteers for a Gleaner run, by ssh: volunteers.sh start|status|stop
# Each keeps its key, its line and its log in ~/.gleaner/volunteer-N of its host.
set -u
line={{line_file}}
places=(  # host and number
  {{places}}
)
# The rest of the words runs in the volunteer's folder; what is on standard input reaches it.
on() {
  ssh -o BatchMode=yes -o ConnectTimeout=10 "$1" \
    "umask 077; mkdir -p .gleaner/volunteer-$2 && cd .gleaner/volunteer-$2 && $3"
}
start='cat > line && { setsid {{timeout}}{{program}} --line-file line{{insecure}} --cache . --control control --threads {{cores}} --memory {{shard_memory}} --once{{until}} > log 2>&1 < /dev/null & }'
status='{{program}} status --control control'
stop='{{program}} finish --control control'
case "${1-}" in
  start|status|stop) words=${!1} ;;
  *) echo "usage: $0 start|status|stop" >&2; exit 2 ;;
esac
failed=0
for ((i = 0; i < ${#places[@]}; i += 2)); do
  input=/dev/null
  [[ $1 != start ]] || input=$line
  if on "${places[i]}" "${places[i + 1]}" "$words" < "$input"; then
    echo "${places[i]}: volunteer ${places[i + 1]}: $1: done"
  else
    echo "${places[i]}: volunteer ${places[i + 1]}: $1: failed" >&2
    failed=1
  fi
done
exit $failed
