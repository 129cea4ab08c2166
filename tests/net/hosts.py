"""Hosts on one machine: network namespaces joined by a bridge, with shaped cables.

Every host has one interface, eth0, at 10.77.0.K. Both directions of its cable are shaped by a token bucket
(`tc tbf`); delay_link carries a cable with a delay. As on real machines the interfaces take up to 64 KiB of segments
as one packet. The interfaces' counters see one header per packet, the queues before them one per segment, as on a
wire; so a cable without a rate has a queue as well. Needs root, and the package iproute2.
"""

import json
import os
import pathlib
import shutil
import subprocess

NETWORK = "10.77.0"
HEADER_BYTES = 66  # Ethernet, IP, TCP with its time stamps
CONGESTION = "cubic"  # Debian's: BBR, where a machine prefers it, pauses 0.2 s every 10 s
QUEUE_MS = 100  # of traffic at the cable's rate, what a switch's port would hold


def why_not():
    """A sentence on what keeps this machine from making hosts, or None."""
    if os.geteuid() != 0:
        return "making network namespaces takes root"
    for program in ("ip", "tc"):
        if not shutil.which(program):
            return f"{program} is not installed (package iproute2)"
    if not pathlib.Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    name = f"gl{os.getpid()}x"
    try:
        run("ip", "netns", "add", name)
    except RuntimeError as error:
        return f"no network namespace can be made: {error}"
    try:
        run("ip", "-n", name, "link", "add", "br0", "up", "type", "bridge")
        run("ip", "-n", name, "route", "add", f"{NETWORK}.0/24", "dev", "br0", "congctl", CONGESTION)
        run("tc", "-n", name, "qdisc", "add", "dev", "br0", "root", "tbf", "rate", "1mbit", "burst",
            "16kb", "latency", "100ms")
    except RuntimeError as error:
        return f"the kernel lacks what shaping takes: {error}"
    finally:
        run("ip", "netns", "del", name)
    return None


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Hosts:
    """Namespaces that end with the `with` statement. `delay_link` is that program's path."""

    def __init__(self, delay_link):
        self._delay_link = delay_link
        self._prefix = f"gl{os.getpid()}"
        self._hub = self._prefix + "hub"
        self._names = []
        self._cables = []

    def __enter__(self):
        run("ip", "netns", "add", self._hub)
        run("ip", "-n", self._hub, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self._hub, "link", "set", "br0", "up")
        return self

    def __exit__(self, *_):
        for cable in self._cables:
            cable.terminate()
            cable.wait()
        for name in [*self._names, self._hub]:
            run("ip", "netns", "del", name)

    def add(self, mbit=0, delay_ms=0.0):
        """A host whose cable carries `mbit` Mbit/s in either direction (0: what it can), each way `delay_ms`
        late. Returns its number, from 1."""
        number = len(self._names) + 1
        name, port = f"{self._prefix}h{number}", f"p{number}"
        run("ip", "netns", "add", name)
        self._names.append(name)
        if delay_ms:
            cable = subprocess.Popen(
                [str(self._delay_link), "--from", f"{name}:eth0", "--to", f"{self._hub}:{port}",
                 "--delay-ms", str(delay_ms)], stdout=subprocess.PIPE, text=True)
            self._cables.append(cable)
            if cable.stdout.readline() != "ready\n":
                raise RuntimeError("delay_link did not start")
        else:
            run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port,
                "netns", self._hub)
        run("ip", "-n", self._hub, "link", "set", port, "master", "br0", "up")
        run("ip", "-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "route", "replace", f"{NETWORK}.0/24", "dev", "eth0", "src",
            f"{NETWORK}.{number}", "congctl", CONGESTION)
        queue = ["pfifo"]
        if mbit:
            queue = ["tbf", "rate", f"{mbit}mbit", "burst", f"{max(16, int(mbit / 4))}kb",
                     "latency", f"{QUEUE_MS}ms"]
        for space, device in self._ends(number):
            run("tc", "-n", space, "qdisc", "add", "dev", device, "root", *queue)
        return number

    def address(self, number):
        return f"{NETWORK}.{number}"

    def cable_seconds(self):
        """Processor time that the cables with a delay have taken so far."""
        ticks = 0
        for cable in self._cables:
            # The second field is the program's name in parentheses; user and system time are the 14th and 15th.
            fields = pathlib.Path(f"/proc/{cable.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def on(self, number):
        """What to put before a command to run it on the host."""
        return ["ip", "netns", "exec", self._names[number - 1]]

    def bytes_on_the_wire(self, number):
        """(received, sent) by the host since it was made, every header included."""
        sent, received = (self._queue_bytes(*end) for end in self._ends(number))
        return received, sent

    def bytes_of_messages(self, number):
        """The same without the headers of Ethernet, IP and TCP."""
        text = run("ip", "netns", "exec", self._names[number - 1], "cat",
                   *(f"/sys/class/net/eth0/statistics/{way}_{what}" for way in ("rx", "tx")
                     for what in ("bytes", "packets")))
        received, packets_received, sent, packets_sent = map(int, text.split())
        return received - HEADER_BYTES * packets_received, sent - HEADER_BYTES * packets_sent

    def _ends(self, number):
        """Of the cable: the host's, the bridge's."""
        return (self._names[number - 1], "eth0"), (self._hub, f"p{number}")

    @staticmethod
    def _queue_bytes(space, device):
        (queue,) = json.loads(run("tc", "-n", space, "-s", "-j", "qdisc", "show", "dev", device, "root"))
        return queue["bytes"]
