"""The manual pages: man_program_test.py MANUAL_PAGE GLEANER GLEANER_MASTER GLEANER_VOLUNTEER."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MANUAL_PAGE, GLEANER, MASTER, VOLUNTEER = sys.argv[1:5]
PAGES = {
    "gleaner.1": [GLEANER, "--help"],
    "gleaner-master.1": [MASTER, "--help-all"],
    "gleaner-master.toml.5": [MASTER, "--print-config"],
    "gleaner-volunteer.1": [VOLUNTEER, "--help-all"],
    "gleaner-volunteer.toml.5": [VOLUNTEER, "--print-config"],
}


def out_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def verbs_below(*verbs):
    """Every verb of a program's command line, as its words."""
    text = out_of(GLEANER, *verbs, "--help")
    # At the top they stand in groups, between the options and the examples.
    listed = (text.partition("Subcommands:\n")[2].split("\n\n")[0] if verbs else
              text.partition("Options:")[2].partition("\n\n")[2].partition("\nExamples:")[0])
    for name in re.findall(r"^  (\S+) ", listed, re.MULTILINE):
        yield (*verbs, name)
        yield from verbs_below(*verbs, name)


@unittest.skipUnless(shutil.which("man"), "man is not installed (Debian: man-db)")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.texts, cls.warnings = {}, {}
        for name, command in PAGES.items():
            path = Path(folder.name) / name
            path.write_text(out_of(MANUAL_PAGE, *name.rsplit(".", 1), "about it", *command))
            done = subprocess.run(
                ["man", "--warnings", "--local-file", "--encoding=UTF-8", str(path)],
                capture_output=True, text=True, timeout=60, check=True,
                env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80", MAN_KEEP_FORMATTING=""))
            cls.texts[name], cls.warnings[name] = done.stdout, done.stderr

    def test_the_formatter_has_nothing_to_say(self):
        for name in PAGES:
            self.assertEqual(self.warnings[name], "", name)

    def test_every_page_has_a_name_and_no_markup_left(self):
        for name, text in self.texts.items():
            self.assertRegex(text, rf"NAME\n +{name.rsplit('.', 1)[0]} - \w", name)
            self.assertNotIn("\\", text.replace("\\\n", ""), name)

    def test_every_verb_has_its_part_with_its_flags_and_examples(self):
        text = self.texts["gleaner.1"]
        verbs = list(verbs_below())
        self.assertLessEqual({("status",), ("dataset", "info")}, set(verbs))
        heads = {tuple(re.findall(r"[a-z-]+", head)[1:]): at
                 for at, head in ((m.end(), m.group()) for m in
                                  re.finditer(r"^   gleaner(?: [a-z-]+)+", text, re.MULTILINE))}
        for verb in verbs:
            help_text = out_of(GLEANER, *verb, "--help")
            if "Subcommands:" in help_text:
                continue
            self.assertIn(verb, heads)
            shown = re.sub(r"\n{3,}", "\n\n", help_text.strip())  # man shows one empty line at most
            self.assertIn(shown, text[heads[verb]:].split("\n   gleaner ")[0], verb)
            self.assertIn("Examples:", help_text, verb)
            self.assertIn("Exit status: 0", help_text, verb)

    def test_the_daemons_pages_have_all_their_flags_and_keys(self):
        for program, name in ((MASTER, "gleaner-master"), (VOLUNTEER, "gleaner-volunteer")):
            for line in out_of(program, "--help-all").splitlines():
                self.assertIn(line.strip(), self.texts[name + ".1"])
            keys = re.findall(r"^- `(\w+)\.(\w+)`", out_of(program, "--print-reference"), re.MULTILINE)
            self.assertNotEqual(keys, [])
            for key in keys:
                self.assertIn(f"[{key[0]}]", self.texts[name + ".toml.5"])
                self.assertRegex(self.texts[name + ".toml.5"], rf"(?m)^{key[1]} = ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
