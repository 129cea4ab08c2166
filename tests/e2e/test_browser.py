"""The run's page in a real browser beside a run that trains: right and live figures, with any volunteers' names,
and no complaint of the browser."""

import hashlib
import re
import signal
import socket
import subprocess
import sys
import unittest

import browser
from harness import BIN, ENDLESS, finished
from page_case import PageCase, ask, port_of

HOSTILE = "<img src=x onerror=document.title='hacked'>"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    try:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        OTHER_ADDRESS = probe.getsockname()[0]
    except OSError:
        OTHER_ADDRESS = ""
# The longest that the page writes as a duration, a size and a number.
LONG_VALUES = ["47 h 59 min", "1023.9 GiB", "100,000,000", "12345678"]
# Writes each of these values into every tile, and returns what does not fit its tile or the page.
OVERFLOWING = """
const [values, note] = arguments, wide = [];
return import('/tiles.js').then(({ tile }) => {
  for (const part of document.querySelectorAll('.tile .value'))
    for (const value of values) {
      const all = part.parentElement, box = all.getBoundingClientRect(), text = document.createRange();
      tile(part.id.slice('tile-'.length), '', value, note);
      text.selectNodeContents(all);
      const { left, right } = text.getBoundingClientRect();
      if (left < box.left || right > box.right || part.scrollWidth > part.clientWidth)
        wide.push(`${part.id}: ${value}: ${right} beyond ${box.right}, ${part.scrollWidth} of ${part.clientWidth}`);
    }
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) wide.push(`the page: ${page.scrollWidth} of ${page.clientWidth}`);
  return wide;
});"""
SHARDS_SHOWN = "return document.querySelector('#shard-states').textContent"


@unittest.skipIf(browser.missing(), browser.missing())
class BrowserTest(PageCase):
    def open(self, port, **setup):
        window = browser.Browser(**setup)
        self.addCleanup(window.close)
        window.open(f"http://127.0.0.1:{port}/")
        window.wait("return document.querySelector('#tile-volunteers')?.textContent", "figures")
        return window

    def assert_no_complaint(self, window):
        # Over plain HTTP from another machine, that header is ignored with a complaint.
        expected = ("Failed to load resource", "Cross-Origin-Opener-Policy")
        self.assertEqual([line for line in window.console()
                          if not any(words in line["message"] for words in expected)], [])

    def text_matches(self, window, selector, text):
        window.wait(f"return document.querySelector({selector!r})?.textContent === {text!r}",
                    f"{selector} says {text}; it says {window.text(selector)!r}")

    def test_figures_are_right_and_live(self):
        master, port, helpers = self.start(volunteers=2)
        master.wait_event("evaluated")
        window = self.open(port)
        first = window.text("#place")
        window.wait(f"return document.querySelector('#place').textContent !== {first!r}", "live figures")
        window.wait("return document.querySelectorAll('#volunteers tbody tr[aria-rowindex]').length === 2", "rows")
        run = self.stand_still(port, helpers)
        progress, precision = run["progress"], run["precision"]
        self.text_matches(window, "#tile-p1", f"{precision['p_at_1']:.4f}")
        self.text_matches(window, "#tile-p3", f"{precision['p_at_3']:.4f}")
        self.text_matches(window, "#tile-loss", f"{progress['loss']:.4f}")
        self.text_matches(window, "#tile-done", f"{100 * progress['batch'] / progress['batches']:.1f} %")
        self.text_matches(window, "#place",
                          f"batch {progress['batch']:,} of {progress['batches']:,}, "
                          f"checkpoint {progress['round']:,} of {progress['rounds']:,}")
        self.assertIn("held up", window.text("#headline"))
        history = self.get(port, "/api/v1/history")
        self.assertIn(f"{history['series']['loss']['last'][-1]:.4f}", window.text("#charts"))
        for helper in helpers:
            helper.go_on()
        self.assert_no_complaint(window)

    def test_a_killed_volunteers_cells_move(self):
        _, port, (first, _) = self.start(volunteers=2)
        window = self.open(port)
        holders = "return document.querySelector('#shard-holders').textContent"
        window.wait(f"{holders}.includes('v1') && document.querySelector('#shard-holders').textContent.includes('v2')",
                    "both as holders")
        first.kill()
        window.wait(f"return (() => {{ {holders} }})().trim() === 'v2 11'", "all shards at v2")
        window.wait("return document.querySelector('#events').textContent.includes('v1 left')", "an event")
        window.wait("return document.querySelector('#gone').textContent.includes('v1 went')", "the departure")
        self.assert_no_complaint(window)

    def test_hostile_names_are_text(self):
        _, port, _ = self.start("--min-volunteers", 1)
        self.cluster.volunteer(self.address, "--name", HOSTILE)
        window = self.open(port)
        window.wait("return document.querySelector('#volunteers').textContent.includes('<img')", "the name as text")
        window.wait("return document.querySelector('#events').textContent.includes('<img')", "the event as text")
        self.assertEqual(window.run("return document.querySelectorAll('img, iframe, object').length"), 0)
        self.assertNotEqual(window.run("return document.title"), "hacked")
        window.run("[...document.querySelectorAll('#volunteers td button')]"
                   ".find((button) => button.textContent.includes('<img')).click()")
        self.assertEqual(window.text("#dialog-title"), HOSTILE)
        self.assert_no_complaint(window)

    def test_a_pause_is_told_with_whose_it_is(self):
        master, port, (volunteer,) = self.start()
        control = volunteer.command[volunteer.command.index("--control") + 1]
        subprocess.run([BIN / "gleaner-volunteer", "pause", "--control", control], check=True, stdout=subprocess.DEVNULL)
        master.wait_event("volunteer_left")
        window = self.open(port)
        window.wait("return document.querySelector('#gone').textContent.includes('paused by its owner')", "the pause")
        self.assert_no_complaint(window)

    def test_long_values_stay_in_their_tiles(self):
        self.store = self.cluster.path("store-" + "of_a_long_name" * 6)
        _, port, _ = self.start("--purpose", "Names birds by songs, " * 9)
        self.cluster.volunteer(self.address, "--name", "volunteer_" * 12)
        for size in ((390, 844), (820, 1180), (1024, 768), (1440, 900)):
            with self.subTest(size=size):
                window = self.open(port, size=size)
                window.wait("return document.querySelector('#volunteers').textContent.includes('volunteer_')", "its row")
                self.assertEqual(window.run(OVERFLOWING, LONG_VALUES, "± 0.0012 (95 %)"), [])

    def test_a_volunteers_detail_and_what_its_work_counts_for(self):
        for mode, rule in (("off", "audits nothing"), ("all", "work of trusted volunteers")):
            self.store = self.cluster.path(f"store-{mode}")
            master, port, (first, second) = self.start("--audit", mode, volunteers=2)
            first_name = first.command[first.command.index("--name") + 1]
            second.signal(signal.SIGTERM)
            master.wait_event("volunteer_left")
            name = second.command[second.command.index("--name") + 1]
            self.cluster.volunteer(self.address, "--name", name)
            # Its work is credited when the round is complete.
            self.wait_answer(port, "/api/v1/volunteers", lambda told: any(
                one["name"] == first_name and one["trusted"] for one in told["contributions"]), "trusted work")
            first.pause()  # the run stands still
            window = self.open(port)
            window.wait(f"return document.querySelector('#credit').textContent.includes({rule!r})", "what counts")
            facts = ("return Object.fromEntries([...document.querySelectorAll('#dialog-facts dt')]"
                     ".map((term) => [term.textContent, term.nextSibling.textContent]))")
            click = ("const of = [...document.querySelectorAll('#volunteers td button')]"
                     ".find((button) => button.textContent === arguments[0]); of?.click(); return !!of")
            self.assertTrue(window.run(click, first_name))
            told = window.run(facts)
            self.assertRegex(told["Here since"], r"^\d\d:\d\d:\d\d, for \d")
            self.assertEqual(told["Last time it went"], "–")
            self.assertGreater(told["trusted, so not audited"], "0")
            self.assertEqual(told["of it confirmed by an auditor"], "0")
            window.run("document.querySelector('#dialog').close()")
            window.wait(f"return ((...arguments) => {{ {click} }})({name!r})", "the volunteer that came back")
            self.assertIn(" ago: ", window.run(facts)["Last time it went"])
            self.assert_no_complaint(window)
            window.close()
            master.kill()

    def test_keyboard_filter_sort_and_zoom(self):
        master, port, helpers = self.start("--verbose", volunteers=2)
        master.wait_checkpoint(8)
        for helper in helpers:
            helper.pause()  # more events would push out those that are looked for
        window = self.open(port, size=(390, 844), dark=True)
        window.wait("return document.querySelectorAll('#events li').length > 2", "events")
        self.assertLessEqual(window.run("return document.documentElement.scrollWidth"), 390)
        window.run("const e = document.querySelector('#event-text'); e.value = 'joined v2';"
                   "e.dispatchEvent(new Event('input'))")
        self.assertEqual(window.run("return document.querySelectorAll('#events li').length"), 1)
        names = "return [...document.querySelectorAll('#volunteers td button')].map((b) => b.textContent).join()"
        window.wait(f"return (() => {{ {names} }})().length === 5", "two rows")
        window.run("document.querySelector('#volunteers th button').click()")
        self.assertEqual(window.run(names), "v1,v2")
        window.run("document.querySelector('#volunteers th button').click()")
        self.assertEqual(window.run(names), "v2,v1")
        window.run("const map = document.querySelector('#shards'); map.focus();"
                   "map.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))")
        self.assertIn("Shard 0 ", window.text("#shard-text"))
        window.run("const chart = document.querySelector('#charts canvas'); chart.focus();"
                   "chart.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true}))")
        self.assert_no_complaint(window)

    def test_a_screen_reader_finds_names_for_everything(self):
        _, port, _ = self.start()
        window = self.open(port)
        window.wait("return document.querySelectorAll('#volunteers tbody tr').length > 0", "rows")
        nodes = window.devtools("Accessibility.getFullAXTree")["nodes"]
        nameless = [node["role"]["value"] for node in nodes if not node.get("ignored") and
                    node.get("role", {}).get("value") in ("button", "link", "textbox", "searchbox", "combobox",
                                                          "image", "img", "progressbar", "heading", "dialog") and
                    not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        self.assertEqual(window.run("return document.querySelectorAll('h1').length"), 1)

    def test_the_master_goes_and_comes_back(self):
        master, port, _ = self.start()
        window = self.open(port)
        master.kill()
        window.wait("return document.body.classList.contains('is-lost')", "the loss of the master")
        self.assertIn("has not answered", window.text("#lost"))
        again = self.setup.with_flag("--epochs", ENDLESS).start_master(
            self.cluster, self.store, "--local", 1, "--http", f"127.0.0.1:{port}", "--threads", 1)
        self.assertEqual(port_of(again.wait_event("page")["url"]), port)
        window.wait("return !document.body.classList.contains('is-lost')", "the master again")
        window.wait("return document.querySelector('#join').textContent.includes('takes no connections')", "news")

    def test_the_line_is_a_qr_code_for_who_has_the_whole_address(self):
        master, port, _ = self.start()
        window = self.open(port)
        window.wait("return document.querySelector('#join').textContent.includes('whole address')", "where the line is")
        self.assertEqual(window.run("return document.querySelectorAll('#join svg').length"), 0)
        window.open(f"http://127.0.0.1:{port}/#{self.key}")
        window.wait("return document.querySelectorAll('#join svg path').length === 1", "a code")
        self.assertEqual(window.text("#join code"), "gleaner-volunteer " + master.wait_event("listening")["join"])

    def test_the_join_box_has_the_programs_hash_and_the_program(self):
        program = BIN / "gleaner-volunteer"
        _, port, _ = self.start("--serve-program", program)
        window = self.open(port)
        sha256 = hashlib.sha256(program.read_bytes()).hexdigest()
        self.text_matches(window, "#program-sha256", sha256)
        self.assertIn(f"ssh HOST curl -sS http://127.0.0.1:{port}/gleaner-volunteer > gleaner-volunteer && "
                      f"echo '{sha256}  gleaner-volunteer' | sha256sum -c", window.text("#join"))
        fetched = window.run(
            "return fetch(document.querySelector('#join a[download]').href).then((a) => a.arrayBuffer())"
            ".then((bytes) => crypto.subtle.digest('SHA-256', bytes))"
            ".then((sum) => [...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, '0')).join(''))")
        self.assertEqual(fetched, sha256)
        self.assert_no_complaint(window)

    @unittest.skipUnless(OTHER_ADDRESS, "this machine has no address of a network")
    def test_from_another_machine_an_invite_shows_figures(self):
        master = self.setup.with_flag("--epochs", ENDLESS).start_master(
            self.cluster, self.store, "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0", "--threads", 1)
        port = port_of(master.wait_event("page")["url"])
        self.cluster.volunteer(master.wait_event("listening")["address"])
        master.wait_checkpoint(2)
        window = browser.Browser()
        self.addCleanup(window.close)
        window.open(f"http://{OTHER_ADDRESS}:{port}/")
        window.wait("return document.querySelector('#lost').textContent.includes('takes an invite')", "what it takes")
        line = self.cluster.gleaner("invite", "create", self.store, "--role", "observer", "--reusable")
        window.open(f"http://{OTHER_ADDRESS}:{port}/#{re.search('gleaner://[^ ]+', line).group().strip()}")
        rows = "return document.querySelector('#volunteers tbody').textContent"
        window.wait(f"{rows}.includes('volunteer 1')", "a row without a name")
        window.wait("return document.querySelector('#charts').textContent.includes('Loss')", "charts")
        first = window.text("#place")
        window.wait(f"return document.querySelector('#place').textContent !== {first!r}", "live figures")
        window.wait("return document.querySelector('#events').textContent.includes('checkpoint')", "events")
        for part in ("#volunteers", "#events", "#shard-holders", "#join"):
            self.assertNotIn("v1", window.text(part))
        self.assertIn("model.hidden", window.text("#configuration"))
        window.run("URL.createObjectURL = (blob) => { window.taken = blob.size; return '#'; };"
                   "HTMLElement.prototype.click = () => {};"
                   "document.querySelector('a[download=\"history.csv\"]').dispatchEvent("
                   "new MouseEvent('click', { bubbles: true, cancelable: true }))")
        window.wait("return window.taken > 100", "the history as a file")
        self.assert_no_complaint(window)

    def test_addresses_are_shown_to_who_has_the_whole_address(self):
        _, port, _ = self.start()
        window = self.open(port)
        head, rows = "#volunteers thead", "return document.querySelector('#volunteers tbody').textContent"
        window.wait(f"{rows}.includes('v1')", "a row")
        self.assertNotIn("Address", window.text(head))
        window.run("document.querySelector('#volunteers td button').click()")
        self.assertNotIn("Address", window.text("#dialog-facts"))
        self.assertNotIn("127.0.0.1:", window.text("#volunteers") + window.text("#dialog-facts"))
        self.assertNotIn("v1 (127", window.text("#events"))
        window.open(f"http://127.0.0.1:{port}/#{self.key}")
        window.wait(f"{rows}.includes('127.0.0.1:')", "its address")
        self.assertIn("Address", window.text(head))
        self.assert_no_complaint(window)

    def test_receipts_are_paged(self):
        _, port, (helper,) = self.start()
        helper.pause()  # the receipts of the first round are kept
        window = self.open(port)
        window.wait("return document.querySelector('#receipts').textContent.includes('whole address')", "sums alone")
        window.open(f"http://127.0.0.1:{port}/#{self.key}")
        rows = "return document.querySelectorAll('#receipts tbody tr').length"
        window.wait(f"{rows} >= 11", "receipts")
        window.run("const first = document.querySelector('#receipts-first'); first.value = 9;"
                   "first.dispatchEvent(new Event('change'))")
        window.wait(f"{rows} <= 3", "the last shards' receipts")
        window.run("const round = document.querySelector('#receipts-round'); round.value = 0;"
                   "round.dispatchEvent(new Event('change'))")
        window.wait("return document.querySelector('#receipts').textContent.includes('Round 0:')", "the first round's")
        self.assertIn("unchecked", window.text("#checked"))

    def test_the_end_is_told(self):
        master, port, address = self.start_held()
        window = self.open(port)
        self.cluster.volunteer(address)
        finished(master)
        window.wait("return document.querySelector('#lost').textContent.includes('The run ended')", "the end")
        self.assertIn("Finished", window.text("#headline"))

    def test_another_origin_reads_nothing(self):
        _, port, _ = self.start()
        _, other, _ = self.start_other()
        window = self.open(port)
        read = window.run(
            "return Promise.race([fetch(arguments[0]).then((a) => a.text(), (e) => 'refused: ' + e.name)])",
            f"http://127.0.0.1:{other}/api/v1/run")
        self.assertTrue(read.startswith("refused"), read)
        self.assertEqual(ask(other, "/api/v1/run", {"Origin": f"http://127.0.0.1:{port}"})[0], 403)

    def start_other(self):
        self.store = self.cluster.path("other")
        return self.start()


if __name__ == "__main__":
    sys.exit(unittest.main())
