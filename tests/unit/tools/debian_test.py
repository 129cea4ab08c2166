"""tools/dataset/debian.py: a package index as a data set."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools/dataset/debian.py"
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("debian", SCRIPT)
debian = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(debian)

INDEX = """Package: zoo
Maintainer: Some Team <team@example.org>
Depends: libc6:amd64 (>= 2.34), default-mta | mail-transport-agent, virtual-x,
 libzoo1 (= 1.2-3), libc6 (<< 3)
Pre-Depends: dpkg (>= 1.15.6~)
Description: Keeps animals
 A long text
 of two lines
Description-md5: 0123
Tag: role::program, implemented-in::c++,
 use::keeping
Section: games


Package: libzoo1
Provides: virtual-x (= 1), virtual-y
Depends: libc6
Description: Keeps animals (library)

Package: other
Provides: virtual-y
Depends: virtual-y, virtual-x

Package: zoo
Depends: nothing-of-this-counts
"""


def packages_of(text):
    return debian.read_packages(text.split("\n"), "dump")


def many(count):
    return [debian.Package({"Package": f"p{10_000 + i}", "Depends": "libc6",
                            "Description": f"common {'half ' * (i % 2)}once{i}"}) for i in range(count)]


class Index(unittest.TestCase):
    def test_fields_are_read_and_the_first_of_packages_with_one_name_stays(self):
        libzoo, other, zoo = packages_of(INDEX)
        self.assertEqual((libzoo.name, other.name, zoo.name), ("libzoo1", "other", "zoo"))
        self.assertEqual(zoo.maintainer, "Some Team")
        self.assertEqual(zoo.description, "Keeps animals A long text of two lines")
        self.assertEqual(zoo.section, "games")
        self.assertEqual(zoo.tags, ["role::program", "implemented-in::c++", "use::keeping"])
        self.assertEqual(zoo.depends, ["default-mta", "dpkg", "libc6", "libzoo1", "virtual-x"])
        self.assertEqual(libzoo.provides, ["virtual-x", "virtual-y"])

    def test_virtual_names_stand_for_their_only_provider(self):
        needs = dict(zip(("libzoo1", "other", "zoo"), debian.dependencies_of(packages_of(INDEX))))
        self.assertEqual(needs["zoo"], ["default-mta", "dpkg", "libc6", "libzoo1"])
        self.assertEqual(needs["other"], ["libzoo1", "virtual-y"])

    def test_words_come_from_all_fields_as_the_programs_cut_them(self):
        package = debian.Package({"Package": "libboost-filesystem1.74-dev", "Section": "libdevel",
                                  "Description": "C++ library, for FILES", "Tag": "role::devel-lib",
                                  "Maintainer": "Debian Boost Team <a@b>"})
        self.assertEqual(package.words(), [
            "ending dev", "maintainer debian boost team", "name dev", "name filesystem", "name filesystem1.74",
            "name libboost", "section libdevel", "tag role::devel-lib", "word c++", "word files", "word for",
            "word library"])


class Sets(unittest.TestCase):
    def test_parts_follow_the_name_and_the_seed_not_the_rest_of_the_index(self):
        def names(packages, seed=1):
            files, _ = debian.make_set(packages, seed, 0.2)
            return {line.split(":")[0] for line in files["test.points.txt"].splitlines()}
        packages = many(2000)
        chosen = names(packages)
        self.assertTrue(320 < len(chosen) < 480)
        self.assertEqual(names(packages[500:]), {name for name in chosen if name >= packages[500].name})
        self.assertNotEqual(names(packages, seed=2), chosen)

    def test_features_are_words_of_two_packages_and_the_rarer_weigh_more(self):
        files, sizes = debian.make_set(many(100), 1, 0.2)
        features = files["features.txt"].splitlines()
        self.assertEqual(features, ["name p", "word common", "word half"])
        lines = files["train.txt"].splitlines()
        self.assertEqual(lines[0], f"{sizes['train']} 3 1")
        both = [line for line in lines if " 2:" in line][0]
        _, common, half = (float(entry.split(":")[1]) for entry in both.split()[1:])
        self.assertGreater(half, common)

    def test_the_files_are_those_that_earlier_versions_made(self):
        files, _ = debian.make_set(many(12), 1, 0.3)
        self.assertEqual((files["train.txt"], files["test.txt"]), EARLIER)


class Script(unittest.TestCase):
    def run_script(self, dump, folder, *arguments):
        return subprocess.run([sys.executable, SCRIPT, folder, "--dump", dump, *arguments], capture_output=True,
                              text=True, timeout=60, check=False)

    def test_what_is_refused_is_refused_in_a_sentence(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            dump = folder / "dump"
            dump.write_text("Package: a\n\nnonsense\n")
            done = self.run_script(dump, folder / "set")
            self.assertEqual(done.returncode, 3)
            self.assertIn(f"{dump}:3:1: expected a field", done.stderr)
            dump.write_text("")
            done = self.run_script(dump, folder / "set")
            self.assertEqual(done.returncode, 3)
            self.assertIn("too few for a data set; run 'apt-get update'", done.stderr)
            self.assertEqual(self.run_script(folder / "none", folder / "set").returncode, 3)
            dump.write_text("".join(f"Package: p{i}\nDepends: libc6\nDescription: red\n\n" for i in range(50)))
            self.assertEqual(self.run_script(dump, folder / "set", "--share", "1.5").returncode, 2)
            self.assertEqual(self.run_script(dump, folder / "set").returncode, 0)
            done = self.run_script(dump, folder / "set")
            self.assertEqual(done.returncode, 2)
            self.assertIn("exists already", done.stderr)
            self.assertEqual(self.run_script(dump, folder / "set", "--force").returncode, 0)


EARLIER = ('8 3 1\n'
           '0 0:0.9 1:0.9\n'
           '0 0:0.9 1:0.9 2:1.134\n'
           '0 0:0.9 1:0.9\n'
           '0 0:0.9 1:0.9 2:1.134\n'
           '0 0:0.9 1:0.9\n'
           '0 0:0.9 1:0.9 2:1.134\n'
           '0 0:0.9 1:0.9\n'
           '0 0:0.9 1:0.9 2:1.134\n',
           '4 3 1\n'
           '0 0:0.9 1:0.9 2:1.134\n'
           '0 0:0.9 1:0.9\n'
           '0 0:0.9 1:0.9 2:1.134\n'
           '0 0:0.9 1:0.9\n')

if __name__ == "__main__":
    unittest.main()
