"""The program for Windows, under wine: its results, and its life beside a master and a volunteer of Linux. Wine
shows neither a misaligned store on a real processor nor how Windows shares processors: a test reads the object
code instead, and tools/packaging/README.md lists the rest."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest
import zipfile

from debian_system import copy_checkout

from harness import (ENDLESS, IS_LONG, ROOT, RUN_SECONDS, UNMANNERED, Cluster, EndToEndTest, finished, simd_levels,
                     small_setup)

BUILD = "tools/packaging/windows/build"
TARGET = "x86_64-w64-mingw32"
COMPILER = f"{TARGET}-g++-posix"
WINE = pathlib.Path("/usr/lib/wine/wine64")
SKIP = ("takes minutes: only with GLEANER_LONG" if not IS_LONG else
        f"{COMPILER} missing (tools/dev/install-dependencies --windows)" if not shutil.which(COMPILER) else
        None if WINE.is_file() else "wine missing (tools/dev/install-dependencies --windows)")

BYTES_MAX = 12_000_000
FILES = ("gleaner-volunteer.exe", "gleaner-volunteer-setup.exe", "gleaner-volunteer-windows.zip")

# Part of every Windows 10 and later.
SYSTEM_LIBRARIES = {"advapi32", "bcrypt", "crypt32", "kernel32", "msvcrt", "mswsock", "ole32", "powrprof", "shell32",
                    "user32", "ws2_32", "wtsapi32"}

# Wine's own messages when it has failed, whatever program it runs. A program that ends with one of these is
# started again.
WINE_FAULTS = ("wine client error", "wine: Unhandled page fault on read access to 0000000000000000 at address 00000000",
               "could not load kernel32.dll", "RPC call failed", "wineserver: ", "failed to start wineserver")
STARTS_MAX = 4
WINESERVER = "/usr/lib/wine/wineserver64"

# Runs the command behind it without the rights of an administrator, whom wine takes every user for.
UNELEVATED = r'''
#include <windows.h>
#include <string>
int main() {
  BYTE administrators[SECURITY_MAX_SID_SIZE];
  DWORD bytes = sizeof administrators, code = 1;
  CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, administrators, &bytes);
  SID_AND_ATTRIBUTES without{administrators, 0};
  HANDLE token = nullptr, limited = nullptr;
  OpenProcessToken(GetCurrentProcess(), TOKEN_ALL_ACCESS, &token);
  CreateRestrictedToken(token, 0, 1, &without, 0, nullptr, 0, nullptr, &limited);
  std::wstring command = wcsstr(GetCommandLineW(), L"unelevated.exe");
  command.erase(0, command.find(L' ') + 1);
  STARTUPINFOW how{sizeof how};
  PROCESS_INFORMATION child{};
  if (!CreateProcessAsUserW(limited, nullptr, command.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &how,
                            &child)) return 1;
  WaitForSingleObject(child.hProcess, INFINITE);
  GetExitCodeProcess(child.hProcess, &code);
  return static_cast<int>(code);
}
'''

# A load or store that needs an aligned address, of more bytes than Windows aligns a stack to. A value passed by
# a hidden reference lies on the stack too, so every address counts.
MOVE = r"\tv?mov(?:ap[sd]|dqa(?:32|64)?|nt\w+) .*"
ALIGNED_MOVE = re.compile(MOVE + r"(?:\(.*%[yz]mm|%[yz]mm.*\()")


def aligned_moves(file, objdump):
    """The lines of a file's disassembly that move whole wide registers by instructions that fault unless the
    address is aligned."""
    text = subprocess.run([objdump, "--disassemble", "--no-show-raw-insn", file], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    return [line for line in text.splitlines() if ALIGNED_MOVE.search(line)]


@unittest.skipUnless(shutil.which(COMPILER), f"{COMPILER} missing")
class AlignedMoves(EndToEndTest):
    def test_they_are_found_where_the_assembler_is_not_told(self):
        source = "vmovaps %ymm0, 32(%rsp)\nvmovdqa (%rcx), %ymm1\nvmovaps %ymm0, %ymm1\nvmovups (%rsp), %ymm0\n"
        for flags, count in (([], 2), (["-Wa,-muse-unaligned-vector-move"], 0)):
            file = self.cluster.path("moves.o")
            subprocess.run([COMPILER, *flags, "-x", "assembler", "-c", "-", "-o", file], input=source, text=True,
                           check=True)
            self.assertEqual(len(aligned_moves(file, f"{TARGET}-objdump")), count, flags)


@unittest.skipIf(SKIP, SKIP)
class Windows(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = ROOT / "build/windows"
        subprocess.run([ROOT / BUILD, cls.folder], check=True)
        cls.program = cls.folder / "gleaner-volunteer.exe"
        cls.home = Cluster()
        cls.addClassCleanup(cls.home.close)
        cls.environment = {"WINEPREFIX": str(cls.home.path("wine")), "WINEDEBUG": "-all", "DISPLAY": "",
                           "USERNAME": f"test{os.getpid()}"}
        cls.addClassCleanup(lambda: subprocess.run([WINESERVER, "--kill"], check=False,
                                                   env=dict(os.environ, **cls.environment)))
        cls.user = (str(WINE), str(cls.home.path("unelevated.exe")))
        subprocess.run([COMPILER, "-static", "-x", "c++", "-", "-o", cls.user[1]], input=UNELEVATED, text=True, check=True)
        subprocess.run([WINE, "wineboot", "--init"], check=True, env=dict(os.environ, **cls.environment),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, *arguments, simd=None, by=(str(WINE),)):
        return self.cluster.start(self.program, *arguments, simd=simd, before=by,
                                  environment=dict(self.environment))

    def run_to_end(self, *arguments, **how):
        """A program that wine did not fail."""
        for _ in range(STARTS_MAX):
            program = self.start(*arguments, **how)
            code = program.wait_exit()
            if not any(fault in program.said() for fault in WINE_FAULTS):
                break
        return code, program

    def join(self, line, *arguments, simd=None, manners=tuple(UNMANNERED)):
        """A volunteer that trains."""
        for _ in range(STARTS_MAX):
            program = self.start(line, "--threads", 1, "--log-format", "json", "--retry-ms-min", 20,
                                 "--retry-ms-max", 200, *manners, *arguments, simd=simd)
            try:
                program.wait_for(lambda: "training" in program.said(), "training")
                return program
            except AssertionError:
                if not any(fault in program.said() for fault in WINE_FAULTS):
                    raise
                program.close()
        raise AssertionError("wine failed at every start:\n" + program.said())

    def ask(self, *words, **how):
        code, program = self.run_to_end(*words, **how)
        self.assertEqual(code, 0, program.said())
        return program.said()

    # ---- The file ---------------------------------------------------------------------------------

    def test_it_needs_windows_alone_and_is_small(self):
        headers = subprocess.run([f"{TARGET}-objdump", "--private-headers", self.program], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        needed = {name.lower().removesuffix(".dll") for name in re.findall(r"DLL Name: (\S+)", headers)}
        self.assertLessEqual(needed, SYSTEM_LIBRARIES)
        self.assertLessEqual(self.program.stat().st_size, BYTES_MAX)
        for name in ("HIGH_ENTROPY_VA", "DYNAMIC_BASE", "NX_COMPAT"):
            self.assertIn(name, headers)

    def test_no_wide_register_is_moved_as_if_its_address_were_aligned(self):
        self.assertEqual(aligned_moves(self.program, f"{TARGET}-objdump"), [])

    def test_another_folder_gives_the_same_bits(self):
        """The libraries are built once: copies of them, which name no folder, are taken for both."""
        copy = copy_checkout(self.cluster.path("a/longer/name/of/a/folder"))
        libraries = pathlib.Path("build/windows-work/libraries")
        shutil.copytree(ROOT / libraries, copy / libraries, symlinks=True)
        for archive in (copy / libraries / "lib").glob("*.a"):
            self.assertNotIn(str(ROOT / "build").encode(), archive.read_bytes(), archive.name)
        out = self.cluster.path("out")
        subprocess.run([copy / BUILD, out], check=True)
        for name in FILES:
            self.assertEqual((out / name).read_bytes(), (self.folder / name).read_bytes(), name)

    def test_the_archive_has_the_program_and_its_licence(self):
        with zipfile.ZipFile(self.folder / "gleaner-volunteer-windows.zip") as archive:
            self.assertEqual(archive.namelist(), ["gleaner-volunteer.exe", "LICENSE.txt"])
            self.assertEqual(archive.read("gleaner-volunteer.exe"), self.program.read_bytes())

    # ---- What it computes -------------------------------------------------------------------------

    def test_its_digests_are_those_of_linux(self):
        _, here = self.cluster.run("gleaner-volunteer", "--self-test")
        code, there = self.run_to_end("--self-test")
        self.assertEqual(code, 0, there.said())
        self.assertEqual([line.rstrip("\r") for line in there.out], here.out)

    def train(self, setup, simd, *, kills):
        """One run by a volunteer under wine, killed that often, and one of Linux; beside a run without both."""
        calm = setup.run_local(self.cluster, self.cluster.path(f"calm-{simd}"))["digest"]
        master = setup.start_master(self.cluster, self.cluster.path(f"store-{simd}"), "--listen", "127.0.0.1:0",
                                    "--threads", 1)
        line = master.wait_event("listening")["join"]
        cache = self.cluster.path(f"cache-{simd}")
        volunteer = self.join(line, "--once", "--cache", cache, simd=simd)
        for _ in range(kills):
            volunteer.kill()
            volunteer = self.join(line, "--once", "--cache", cache, simd=simd)
        # Last, so that it does not end the run while wine starts.
        self.cluster.volunteer(line)
        self.assertEqual(finished(master, 4 * RUN_SECONDS)["digest"], calm)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_it_trains_the_same_model_beside_linux(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 4)
        for simd in {"scalar", "avx2"} & set(simd_levels()):
            with self.subTest(simd):
                self.train(setup, simd, kills=0)

    def test_a_kill_in_the_middle_changes_nothing(self):
        self.train(small_setup(self.cluster).with_flag("--epochs", 4), None, kills=2)

    # ---- Its life ---------------------------------------------------------------------------------

    def test_its_owner_is_obeyed(self):
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        volunteer = self.join(master.wait_event("listening")["join"])
        self.assertTrue(json.loads(self.ask("status", "--json"))["verdict"]["works"])
        self.assertIn("paused by its owner", self.ask("pause"))
        self.assertNotIn("paused", self.ask("resume"))
        self.assertIn("paused by its owner", self.ask("snooze", "2h"))
        self.ask("resume")
        self.assertIn("paused by its owner", self.ask("log"))
        self.ask("finish")
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_a_key_pauses_it(self):
        key = self.cluster.path("key.exe")
        source = ("#include <windows.h>\nint main() { INPUT key = {}; key.type = INPUT_KEYBOARD; key.ki.wVk = VK_SHIFT;\n"
                  "return SendInput(1, &key, sizeof key) == 1 ? 0 : 1; }\n")
        subprocess.run([COMPILER, "-static", "-x", "c++", "-", "-o", key], input=source, text=True, check=True)
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        volunteer = self.join(master.wait_event("listening")["join"], manners=["--when", "idle", "--idle-after-s", 5])
        subprocess.run([WINE, key], env=dict(os.environ, **self.environment), check=True)
        volunteer.wait_said("the machine is in use (Windows: this session)")
        pause = len(volunteer.events())
        volunteer.wait_for(lambda: any(event.get("activity") == "training" for event in volunteer.events()[pause:]),
                           "training again")

    def registry(self, key):
        """What Windows keeps there for the user, or that there is nothing."""
        key = rf"HKEY_CURRENT_USER\Software\Microsoft\Windows\CurrentVersion\{key}"
        return subprocess.run([WINE, "reg", "query", key], env=dict(os.environ, **self.environment), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def at_logon(self):
        """Commands that Windows runs when the user logs in."""
        return self.registry("Run")

    def wait_status(self, is_wanted, **how):
        """Asks until the volunteer that runs by itself says so; "" where none answers."""
        deadline = time.monotonic() + RUN_SECONDS
        while time.monotonic() < deadline:
            code, program = self.run_to_end("status", **how)
            if is_wanted(program.said() if code == 0 else ""):
                return
        self.fail("it went on to say: " + program.said())

    def join_for_good(self, line, by=()):
        """What `join` says. The volunteer that begins there keeps what wine has open: hence a file."""
        told = self.cluster.path("told")
        for _ in range(STARTS_MAX):
            with open(told, "w", encoding="utf-8") as file:
                ended = subprocess.run([*(by or self.user), self.program, "join", line], stdout=file, stderr=file,
                                       check=False, timeout=RUN_SECONDS, env=dict(os.environ, **self.environment))
            said = told.read_text(encoding="utf-8")
            if not any(fault in said for fault in WINE_FAULTS):
                break
        self.assertEqual(ended.returncode, 0, said)
        return said

    def test_it_joins_for_good_and_leaves(self):
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        said = self.join_for_good(line)
        self.assertIn("answers", said)
        self.assertIn("starts when you log in", said)
        self.assertIn("gleaner-volunteer.exe", self.at_logon())
        self.wait_status(lambda said: bool(said))
        self.join_for_good(line)  # again, while that one runs
        self.wait_status(lambda said: bool(said))
        said = self.ask("leave", by=self.user)
        self.assertIn("hands over what it holds", said)
        self.assertIn("volunteer.line is deleted", said)
        self.assertNotIn("gleaner-volunteer.exe", self.at_logon())
        self.wait_status(lambda said: not said)

    # ---- The service ------------------------------------------------------------------------------

    def manager(self, *words):
        """What Windows' manager of services says of this one."""
        return subprocess.run([WINE, "sc", words[0], "gleaner-volunteer", *words[1:]], check=False, text=True,
                              env=dict(os.environ, **self.environment), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def service_key(self):
        return subprocess.run([WINE, "reg", "query",
                               r"HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\gleaner-volunteer"],
                              env=dict(os.environ, **self.environment), check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout

    def machine_traces(self):
        disk = pathlib.Path(self.environment["WINEPREFIX"]) / "drive_c"
        return [str(path.relative_to(disk)) for path in (disk / "ProgramData/gleaner", disk / "Program Files/Gleaner")
                if path.exists()]

    def test_an_administrator_joins_by_a_service(self):
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        self.wait_for_wine()  # a new wine folder may start its services twice
        self.keep_wine()
        self.join_for_good(line)  # what its user had is undone
        said = self.join_for_good(line, by=(WINE,))
        self.assertIn("answers", said)
        self.assertIn("starts with the machine", said)
        master.wait_event("volunteer_left")
        self.assertNotIn("gleaner-volunteer.exe", self.at_logon())
        self.assertEqual(self.machine_traces(), ["ProgramData/gleaner", "Program Files/Gleaner"])
        key = self.service_key()
        self.assertRegex(key, r"ObjectName.*LocalService")
        self.assertRegex(key, r"Start\s.*0x2")
        self.assertIn(r"C:\Program Files\Gleaner\gleaner-volunteer.exe", key)
        self.wait_status(lambda said: "train" in said)
        self.assertIn("paused by its owner", self.ask("pause"))
        # A user who is no administrator changes nothing.
        for words in (("join", line), ("leave",)):
            code, program = self.run_to_end(*words, by=self.user)
            self.assertEqual(code, 1, program.said())
            self.assertIn("an administrator changes that", program.said())
        self.join_for_good("kept", by=(WINE,))  # again, while it runs, by the line that is kept
        self.wait_status(lambda said: "train" in said)
        left = len(master.events("volunteer_left"))
        self.manager("stop")
        master.wait_for(lambda: len(master.events("volunteer_left")) > left, "it has left")
        self.assertTrue(master.events("volunteer_left")[left]["polite"])
        self.wait_status(lambda said: not said)
        self.assertIn("STOPPED", self.manager("query"))
        self.manager("start")
        self.wait_status(lambda said: "train" in said)
        said = self.ask("leave")
        self.assertIn("has handed over what it held", said)
        self.assertEqual(self.machine_traces(), [])
        self.assertNotIn("ImagePath", self.service_key())
        self.wait_status(lambda said: not said)
        for folder in pathlib.Path(self.environment["WINEPREFIX"]).glob("drive_c/users/*/AppData/Local/gleaner"):
            shutil.rmtree(folder)  # the user's key and examples, which `leave` keeps

    # ---- The installer and the icon ---------------------------------------------------------------

    def wine(self, *command, code=0, by=()):
        """Ends with the command, though others that it has started go on."""
        ended = subprocess.run([*(by or self.user), *command], env=dict(os.environ, **self.environment), check=False,
                               timeout=RUN_SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertEqual(ended.returncode, code, command)

    def traces(self):
        """What an installed volunteer has left in the user's folders."""
        users = pathlib.Path(self.environment["WINEPREFIX"]) / "drive_c/users"
        return sorted(path.name for pattern in ("*/AppData/Local/gleaner", "*/AppData/Local/Programs/Gleaner",
                                                "**/Gleaner volunteer.lnk") for path in users.glob(pattern))

    def wait_gone(self, what):
        deadline = time.monotonic() + RUN_SECONDS
        while what() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertFalse(what())

    def test_it_is_installed_joins_and_is_removed(self):
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        self.wait_gone(self.traces)  # of another test
        installer = self.folder / "gleaner-volunteer-setup.exe"
        self.wine(installer, "/S", "/LINE=" + master.wait_event("listening")["join"])
        self.wait_status(lambda said: "train" in said)
        self.assertEqual(self.traces(), ["Gleaner", "Gleaner volunteer.lnk", "gleaner"])
        self.assertIn(r"Programs\Gleaner\gleaner-volunteer.exe", self.at_logon())
        apps = self.registry(r"Uninstall\Gleaner")
        remove = re.search(r'QuietUninstallString.*"(.+)" /S', apps)[1]
        self.wine(installer, "/S")  # over a running volunteer: the line is kept
        self.wait_status(lambda said: "train" in said)
        self.wine(remove, "/S")
        self.wait_gone(self.traces)
        self.assertNotIn("Gleaner volunteer", self.registry(r"Uninstall\Gleaner"))
        self.assertNotIn("gleaner-volunteer.exe", self.at_logon())
        self.wait_status(lambda said: not said)

    def test_an_administrator_installs_the_service(self):
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        self.wait_for_wine()
        self.keep_wine()
        installer = self.folder / "gleaner-volunteer-setup.exe"
        self.wine(installer, "/S", "/LINE=" + master.wait_event("listening")["join"], by=[WINE])
        self.wait_status(lambda said: "train" in said)
        self.assertNotIn("gleaner-volunteer.exe", self.at_logon())
        self.wine(installer, "/S", by=[WINE])  # over a running volunteer: the line is kept
        self.wait_status(lambda said: "train" in said)
        remove = re.search(r'QuietUninstallString.*"(.+)" /S', self.registry(r"Uninstall\Gleaner"))[1]
        self.wine(remove, "/S", by=[WINE])
        self.wait_gone(self.traces)
        self.assertEqual(self.machine_traces(), [])
        self.wait_status(lambda said: not said)

    def test_an_installer_without_a_line_starts_nothing(self):
        self.wine(self.folder / "gleaner-volunteer-setup.exe", "/S")
        self.assertEqual(self.traces(), ["Gleaner", "Gleaner volunteer.lnk"])
        self.wine(self.folder / "gleaner-volunteer-setup.exe", "/S", "/LINE=nonsense", code=3)
        remove = re.search(r'QuietUninstallString.*"(.+)" /S', self.registry(r"Uninstall\Gleaner"))[1]
        self.wine(remove, "/S")
        self.wait_gone(self.traces)

    def wait_for_wine(self):
        subprocess.run([WINESERVER, "--wait"], check=True, env=dict(os.environ, **self.environment))

    def keep_wine(self):
        """Starts a program that stays: wine ends its services with the last program. The first program of wine's
        server also lends the server its output, which then ends with the server alone."""
        first = subprocess.Popen([WINE, "cmd"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, **self.environment))
        self.addCleanup(first.wait)
        self.addCleanup(first.stdin.close)

    def open_desktop(self):
        """Lets this test's programs see a desktop: another wine, for the first one has none."""
        reader, writer = os.pipe()
        server = subprocess.Popen(["Xvfb", "-displayfd", str(writer), "-nolisten", "tcp"], pass_fds=[writer],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        os.close(writer)
        with os.fdopen(reader) as lines:
            display = ":" + lines.readline().strip()
        folder = self.cluster.path("wine")
        self.wait_for_wine()  # which writes its registry when it ends
        shutil.copytree(self.environment["WINEPREFIX"], folder, symlinks=True)
        self.environment = {**self.environment, "WINEPREFIX": str(folder), "DISPLAY": display}
        environment = dict(os.environ, **self.environment)
        self.keep_wine()
        self.addCleanup(subprocess.run, [WINESERVER, "--kill"], check=False, env=environment)

    def make_clicker(self):
        """A program that chooses from the icon's menu, or else prints what it says."""
        program = self.cluster.path("click.exe")
        source = ("#include <windows.h>\n#include <cstdio>\n#include <cstdlib>\n"
                  "int main(int count, char** words) {\n"
                  "const HWND icon = FindWindowA(\"GleanerVolunteerIcon\", nullptr); char text[256] = {};\n"
                  "if (count > 1) return PostMessageA(icon, WM_COMMAND, std::atoi(words[1]), 0) ? 0 : 1;\n"
                  "GetWindowTextA(icon, text, sizeof text); std::puts(text); return 0; }\n")
        subprocess.run([COMPILER, "-static", "-x", "c++", "-", "-o", program], input=source, text=True, check=True)

        def click(*command):
            return subprocess.run([WINE, program, *command], env=dict(os.environ, **self.environment), check=True,
                                  stdout=subprocess.PIPE, text=True).stdout

        def wait_text(text):
            deadline = time.monotonic() + RUN_SECONDS
            while text not in click() and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertIn(text, click())
        return click, wait_text

    @unittest.skipUnless(shutil.which("Xvfb"), "Debian's xvfb missing")
    def test_its_icon_says_what_it_does_and_obeys(self):
        self.open_desktop()
        click, wait_text = self.make_clicker()
        setup = small_setup(self.cluster).with_flag("--epochs", ENDLESS)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        icon = self.start("session-helper")
        wait_text("Gleaner: No volunteer runs here")
        volunteer = self.join(master.wait_event("listening")["join"])
        wait_text("training")
        _, second = self.run_to_end("session-helper")
        self.assertIn("the icon is there already", second.said())
        click("1")
        wait_text("paused by its owner")
        pause = json.loads(self.ask("status", "--json"))["verdict"]["until_seconds"]
        self.assertTrue(3000 < pause <= 3600, pause)
        click("2")
        wait_text("training")
        click("4")
        icon.wait_exit()
        icon = self.start("session-helper")
        wait_text("training")
        click("3")  # to lend no more
        icon.wait_exit()
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())


if __name__ == "__main__":
    unittest.main()
