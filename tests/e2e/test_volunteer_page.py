"""A volunteer's own page: it shows what the verbs print, its buttons act as the verbs do, and only the holder of
the page's key on the volunteer's machine can press a button."""

import http.client
import json
import socket
import sys
import unittest

import browser
from harness import ENDLESS, TIME_FACTOR
from test_lending import Lending, eventually
from page_case import ask


def own_address():
    """An address of this machine that is no loopback address; empty when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return ""


def send(port, body, headers=None, host="127.0.0.1"):
    """(status, body) of a request to the volunteer."""
    connection = http.client.HTTPConnection(host, port, timeout=20 * TIME_FACTOR)
    try:
        connection.request("POST", "/api/v1/control", body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class VolunteerPageCase(Lending):
    def setUp(self):
        super().setUp()
        self.setup = self.setup.with_flag("--epochs", ENDLESS)

    def open_page(self, address="127.0.0.1:0"):
        """A volunteer that trains: its program, its socket, and its page's port and key."""
        self.master, (volunteer,), (control,) = self.start("--http", address)
        self.master.wait_checkpoint(1)
        self.url = self.status(control)["page"]
        port, _, key = self.url.rpartition(":")[2].partition("/#")
        return volunteer, control, int(port), key


class VolunteerPage(VolunteerPageCase):
    def test_it_says_what_the_verbs_say_and_nothing_of_its_owner(self):
        _, control, port, key = self.open_page()
        status, headers, body = ask(port, "/api/v1/status")
        self.assertEqual(status, 200)
        mine, theirs = json.loads(body), self.status(control)
        self.assertEqual(set(theirs) - set(mine), {"uses", "page"})
        self.assertNotIn(key, body)
        for field in ("name", "master", "when", "shards"):
            self.assertEqual(mine[field], theirs[field])
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        for path in ("/", "/volunteer.js", "/tiles.js", "/format.js", "/page.css", "/icon.svg"):
            self.assertEqual(ask(port, path)[0], 200, path)
        self.assertIn(self.url, self.verb(control, "status")[1])

    def test_requests_are_those_of_the_control_socket(self):
        volunteer, control, port, key = self.open_page()
        for request, reason in (({"verb": "pause"}, "asked"), ({"verb": "resume"}, "none"),
                                ({"verb": "snooze", "seconds": 3600}, "snoozed"), ({"verb": "resume"}, "none")):
            status, body = send(port, json.dumps(request), {"X-Gleaner-Key": key})
            self.assertEqual(status, 200, body)
            self.assertEqual(json.loads(body)["verdict"]["reason"], reason)
            self.assertEqual(self.status(control)["verdict"]["reason"], reason)
            eventually(lambda: json.loads(ask(port, "/api/v1/status")[2])["verdict"]["reason"] == reason,
                       f"the page says {reason}")
        for request in ("", "[]", '{"verb":"dance"}', '{"verb":"snooze"}', "\xff", "{" * 5000):
            status, body = send(port, request.encode("latin-1"), {"X-Gleaner-Key": key})
            self.assertEqual(status, 200)
            self.assertIn("error", json.loads(body))
        self.assertEqual(send(port, '{"verb":"finish"}', {"X-Gleaner-Key": key})[0], 200)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_strangers_press_no_button(self):
        _, control, port, key = self.open_page()
        pause = '{"verb":"pause"}'
        wrong = key[:-2] + ("aa" if key[-2:] != "aa" else "ba")
        for headers in ({}, {"X-Gleaner-Key": ""}, {"X-Gleaner-Key": wrong}, {"X-Gleaner-Key": key[:-1]},
                        {"X-Gleaner-Key": key, "Origin": "http://evil.example"},
                        {"X-Gleaner-Key": key, "Origin": "null"},
                        {"X-Gleaner-Key": key, "Sec-Fetch-Site": "cross-site"},
                        {"X-Gleaner-Key": key, "Host": f"evil.example:{port}"}):
            self.assertEqual(send(port, pause, headers)[0], 403, headers)
        for method in ("GET", "PUT"):
            self.assertEqual(ask(port, "/api/v1/control", {"X-Gleaner-Key": key}, method)[0], 405)
        self.assertTrue(self.status(control)["verdict"]["works"])

    @unittest.skipUnless(own_address(), "this machine has loopback addresses alone")
    def test_on_a_network_others_look_and_press_nothing(self):
        _, control, port, key = self.open_page("0.0.0.0:0")
        address = own_address()
        self.assertEqual(ask(port, "/api/v1/status", host=address)[0], 200)
        self.assertEqual(ask(port, "/api/v1/status", {"Host": "evil.example"}, host=address)[0], 403)
        self.assertEqual(send(port, '{"verb":"pause"}', {"X-Gleaner-Key": key}, host=address)[0], 403)
        self.assertTrue(self.status(control)["verdict"]["works"])
        self.assertEqual(send(port, '{"verb":"pause"}', {"X-Gleaner-Key": key})[0], 200)
        self.assertEqual(self.status(control)["verdict"]["reason"], "asked")

    def test_without_it_there_is_none_and_a_taken_port_ends_nothing(self):
        master, _, (control,) = self.start()
        master.wait_checkpoint(1)
        self.assertIsNone(self.status(control)["page"])
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            other = self.cluster.volunteer(self.address, "--http", f"127.0.0.1:{taken.getsockname()[1]}")
            other.wait_event("log", lambda event: "goes on without it" in event["message"])
        code, program = self.cluster.run("gleaner-volunteer", "127.0.0.1:1", "--insecure", "--http", "alpha:80")
        self.assertEqual(code, 2)
        self.assertIn("an address in numbers", program.said())


@unittest.skipIf(browser.missing(), browser.missing())
class VolunteerPageInABrowser(VolunteerPageCase):
    def window(self, url, **setup):
        window = browser.Browser(**setup)
        self.addCleanup(window.close)
        window.open(url)
        window.wait("return document.querySelector('#tile-shards')?.textContent > '0'", "figures")
        return window

    def test_an_owner_pauses_snoozes_resumes_and_finishes(self):
        self.give_master("--purpose", "Names birds by their songs")
        volunteer, control, *_ = self.open_page()
        window = self.window(self.url)
        for words in ("store", "Names birds by their songs"):
            window.wait(f"return [...document.querySelectorAll('dd')].some((dd) => dd.textContent === {words!r})", words)
        headline = "return document.querySelector('#headline').textContent.includes"
        for button, words, reason in (("pause", "Paused", "asked"), ("resume", "it may always work", "none"),
                                      ("snooze", "by its owner since", "snoozed"), ("resume", "it may always", "none")):
            window.run("document.querySelector(arguments[0]).click()", f"#{button}")
            window.wait(f"{headline}({words!r})", f"the headline says {words}")
            self.assertEqual(self.status(control)["verdict"]["reason"], reason)
        window.run("document.querySelector('#finish').click()")
        window.run("document.querySelector('dialog button[value=finish]').click()")
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        window.wait("return document.body.classList.contains('is-lost')", "the end of the volunteer")
        self.assertEqual([line for line in window.console() if "Failed to load resource" not in line["message"]], [])

    def test_without_the_key_there_are_no_buttons(self):
        self.open_page()
        window = self.window(self.url.partition("#")[0], size=(390, 844), dark=True)
        self.assertTrue(window.run("return document.querySelector('#buttons').hidden"))
        self.assertIn("gleaner-volunteer status", window.text("#no-buttons"))
        self.assertLessEqual(window.run("return document.documentElement.scrollWidth"), 390)
        self.assertEqual(window.console(), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
