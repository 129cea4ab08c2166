"""A logind for the tests, on the bus that DBUS_SYSTEM_BUS_ADDRESS names: one graphical session, and the answers
that a volunteer needs. A line on standard input makes an event happen:

    idle SECONDS    the session was last used then, before now    active     it is in use
    lock, unlock    the screen                                 film, end  an inhibitor of the idle state
    sleep, wake     PrepareForSleep

It prints "ready", "locked" when somebody delays sleep, "released" when nobody delays it any more.
Needs Debian's python3-dbus and python3-gi, and the interpreter that they belong to.
"""

import os
import sys
import threading
import time

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

LOGIN = "org.freedesktop.login1"
PROPERTIES = "org.freedesktop.DBus.Properties"
SESSION_PATH = "/org/freedesktop/login1/session/_32"


class Session(dbus.service.Object):
    def __init__(self, bus):
        super().__init__(bus, SESSION_PATH)
        self.values = {"Type": "x11", "Class": "user", "State": "active", "LockedHint": False,
                       "IdleHint": False, "IdleSinceHint": dbus.UInt64(0)}

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, _, name):
        return self.values[name]

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass

    def change(self, **values):
        self.values.update(values)
        self.PropertiesChanged(LOGIN + ".Session", values, [])


class Manager(dbus.service.Object):
    def __init__(self, bus):
        super().__init__(bus, "/org/freedesktop/login1")
        self.blocked = "sleep"

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, _, name):
        assert name == "BlockInhibited"
        return self.blocked

    @dbus.service.method(LOGIN + ".Manager", out_signature="a(susso)")
    def ListSessions(self):
        return [("2", dbus.UInt32(1000), "ann", "seat0", dbus.ObjectPath(SESSION_PATH))]

    @dbus.service.method(LOGIN + ".Manager", in_signature="ssss", out_signature="h")
    def Inhibit(self, what, _who, _why, mode):
        assert (what, mode) == ("sleep", "delay")
        reader, writer = os.pipe()
        threading.Thread(target=self.watch, args=(reader,), daemon=True).start()
        descriptor = dbus.types.UnixFd(writer)
        os.close(writer)
        say("locked")
        return descriptor

    def watch(self, reader):
        os.read(reader, 1)  # ends when the last writer does
        os.close(reader)
        say("released")

    @dbus.service.signal(LOGIN + ".Manager", signature="b")
    def PrepareForSleep(self, begins):
        pass

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass

    def block(self, what):
        self.blocked = what
        self.PropertiesChanged(LOGIN + ".Manager", {"BlockInhibited": what}, [])


def say(text):
    print(text, flush=True)


def obey(line, session, manager):
    words = line.split()
    if words[0] == "idle":
        since = int((time.time() - float(words[1])) * 1e6)
        session.change(IdleHint=True, IdleSinceHint=dbus.UInt64(since))
    elif words[0] == "active":
        session.change(IdleHint=False)
    elif words[0] in ("lock", "unlock"):
        session.change(LockedHint=words[0] == "lock")
    elif words[0] in ("film", "end"):
        manager.block("sleep:idle" if words[0] == "film" else "sleep")
    elif words[0] in ("sleep", "wake"):
        manager.PrepareForSleep(words[0] == "sleep")


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    dbus.mainloop.glib.threads_init()
    bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
    session, manager = Session(bus), Manager(bus)
    name = dbus.service.BusName(LOGIN, bus)
    assert name
    loop = GLib.MainLoop()

    def read():
        for line in sys.stdin:
            if line.strip():
                GLib.idle_add(lambda text=line: obey(text, session, manager) and False)
        GLib.idle_add(loop.quit)

    threading.Thread(target=read, daemon=True).start()
    say("ready")
    loop.run()


if __name__ == "__main__":
    main()
