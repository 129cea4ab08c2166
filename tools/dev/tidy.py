#!/usr/bin/env python3
"""Checks of the repository that no compiler makes: which folder may include which and that none
includes itself through others, how many files a folder holds, third-party headers behind their
doors, banned calls, lengths, files that nobody builds, formatting. Other rules stand in layout.py (folders), shapes.py
(co_await, functions and unnamed namespaces), prose.py (phrases and wrapping), claims.py (links and names) and size.py
(the size of the tree). Prints `file:line: sentence` and exits 1 if there is a finding.

usage: tools/dev/tidy.py [ROOT]      (the repository this file is in, unless given)
"""

import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from layout import (DOORS, FOLDER_FILES_MAX, IMPURE, LONG_PRIVATE_PARTS, PURE, PURE_CALLS,  # noqa: E402
                    PURE_REFUSES, walls)
from claims import COMMENTS, check_claims, normal  # noqa: E402
from prose import check_fragments, check_phrases, check_wrapping  # noqa: E402
from shapes import check_co_await, check_function_lengths, check_private_part, line_of  # noqa: E402
from size import check_size  # noqa: E402

FILE_LINES_MAX = 600  # of tests 800

CODE_SUFFIXES = {".cpp", ".hpp"}
COUNTED_SUFFIXES = CODE_SUFFIXES | {".py", ".capnp", ".sh", ""}
SOURCE_FOLDERS = ("common", "schema", "storage", "master", "volunteer", "tools", "tests")

# ---- Banned calls --------------------------------------------------------------------------------

# Pattern, the files where it may stand, what to do instead.
BANNED = [
    (r"\b(system|steady|high_resolution)_clock\s*::\s*now\b", r"common/time\.cpp$",
     "reads a clock: take the time as a parameter, or call common/time.hpp in a shell"),
    (r"\b(gettimeofday|clock_gettime|monotonic_us)\s*\(", r"common/(time\.cpp|os/process\w*\.[ch]pp)$",
     "reads a clock: take the time as a parameter, or call common/time.hpp in a shell"),
    (r"\b_WIN32\b", r"common/os/", "asks for the system: common/os alone may, behind an interface"),
    (r"\brandom_device\b|\bgetrandom\s*\(|\bgetentropy\s*\(|\brandom_bytes\s*\(|/dev/u?random",
     r"common/(access/key_pair\.cpp|os/process\w*\.[ch]pp)$",
     "draws true randomness: only common/access/key_pair.cpp may; all else follows from a seed"),
    (r"(?<![\w.>])s?rand\s*\(", None, "rand is not ours: use common/counter_random.hpp"),
    (r"\bstd::\w+_distribution\b|\bstd::shuffle\b|\bstd::mt19937", None,
     "gives other numbers in another library: use common/counter_random.hpp"),
    (r"\bsleep_(for|until)\b|(?<![\w.>])u?sleep\s*\(|\bnanosleep\b", None,
     "sleeps: wait for what is to happen, with a deadline"),
    (r"\basio::detached\b|\bdetach\s*\(\s*\)", None,
     "lets go of a task: every coroutine and thread has an owner that waits for it"),
    (r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!\(#)", None,
     "is an unfinished mark: finish it, or open an issue and name it"),
]
BANNED_IN_ALL_FILES = [
    (r"-march=native|-ffast-math|-Ofast", "changes bits from machine to machine"),
    (r"(?<![\w./~-])/(work|home|root|Users)/\w", "is a path of one machine"),
]


class Findings:
    def __init__(self):
        self.lines = set()

    def add(self, path, line, sentence):
        self.lines.add((str(path), line, sentence))

    def sorted_lines(self):
        return [f"{path}:{line}: {sentence}" for path, line, sentence in sorted(self.lines)]


def tracked_files(root):
    """Paths relative to root: what git tracks or would track; without git, what is there."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True).stdout.decode()
        names = [name for name in listing.split("\0") if name]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        names = [n for n in names if not n.startswith("build/") and "__pycache__" not in n]
    return sorted(name for name in names if (root / name).is_file())


def without_comments_and_strings(text):
    """The same text, line for line and column for column, with both blanked out."""
    def blank(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
    return COMMENTS["cpp"].sub(blank, text)


def without_directives(code):
    """The same code with preprocessor lines, and those that they go on in, blanked out."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
                  flags=re.MULTILINE)


# ---- Includes ------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def folder_of(path):
    return path.rpartition("/")[0]


def check_includes(path, text, texts, allowed, findings):
    folder, is_test = folder_of(path), path.startswith("tests/")
    for match in INCLUDE.finditer(text):
        line, quote, header = line_of(text, match.start(2)), match.group(1), match.group(2)
        if not is_test:
            for pattern, door, where in DOORS:
                if re.match(pattern, header) and not re.match(door, path):
                    findings.add(path, line, f"{header} may be included only in {where}")
        if path.startswith(PURE) and path not in IMPURE and PURE_REFUSES.fullmatch(header):
            findings.add(path, line, f"{header} has no place in a pure core")
        if quote != '"':
            if header.startswith(tuple(name + "/" for name in SOURCE_FOLDERS)):
                findings.add(path, line, f"a header of ours is included with quotes: \"{header}\"")
            continue
        if header.endswith(".capnp.h"):
            continue
        target = folder_of(header)
        if header not in texts:
            findings.add(path, line, f'"{header}" is not a path from the top of the repository')
        elif not is_test and target not in allowed.get(folder, {folder}):
            findings.add(path, line, f"{folder} may not include {target} ({header}): no library of {folder} links it")


def check_circles(texts, allowed, findings):
    """No folder includes itself by way of others, but for the folders of one library. Tests may: their
    checkers and scenes are one."""
    edges = {}  # folder -> folder that it includes -> the first place where it does
    for path, text in texts.items():
        if pathlib.PurePath(path).suffix not in CODE_SUFFIXES or path.startswith("tests/"):
            continue
        for match in INCLUDE.finditer(text):
            target = folder_of(match.group(2))
            is_one_library = folder_of(path) in allowed.get(target, {target})
            if match.group(2) in texts and not is_one_library:
                places = edges.setdefault(folder_of(path), {})
                places.setdefault(target, (path, line_of(text, match.start(2))))

    done, way = set(), []

    def visit(folder):
        if folder in way:
            circle = way[way.index(folder):] + [folder]
            path, line = edges[circle[-2]][folder]
            findings.add(path, line, "folders include each other in a circle: " + " -> ".join(circle))
        elif folder not in done:
            way.append(folder)
            for target in sorted(edges.get(folder, ())):
                visit(target)
            way.pop()
            done.add(folder)

    for folder in sorted(edges):
        visit(folder)


def check_folder_sizes(files, findings):
    """A folder that holds many files holds several ideas."""
    counts = {}
    for path in files:
        if path.startswith(SOURCE_FOLDERS) and pathlib.PurePath(path).suffix in COUNTED_SUFFIXES - {""}:
            counts[folder_of(path)] = counts.get(folder_of(path), 0) + 1
    for folder, count in counts.items():
        if count > FOLDER_FILES_MAX:
            findings.add(folder, 1, f"{count} files: at most {FOLDER_FILES_MAX}; give each idea a folder")


# ---- Banned calls --------------------------------------------------------------------------------

def check_banned(path, text, code, findings):
    for pattern, allowed, sentence in BANNED:
        if allowed and re.match(allowed, path):
            continue
        unfinished = "unfinished" in sentence
        for match in re.finditer(pattern, text if unfinished else code):
            findings.add(path, line_of(code, match.start()), f"`{match.group(0)}` {sentence}")
    if path.startswith(PURE):
        for match in PURE_CALLS.finditer(code):
            findings.add(path, line_of(code, match.start()), f"`{match.group(0)}` reads a clock, which "
                         "a pure core cannot: take the time as a parameter, or let the caller measure")
    if path.endswith(".hpp"):
        for match in re.finditer(r"\busing\s+namespace\b|#\s*if.*\b__AVX", code):
            findings.add(path, line_of(code, match.start()),
                         f"`{match.group(0)}` does not belong in a header")


# ---- Lengths and blanks -------------------------------------------------------------------------

def check_text(path, text, findings):
    lines = text.split("\n")
    suffix = pathlib.PurePath(path).suffix
    if suffix in COUNTED_SUFFIXES and path.startswith(SOURCE_FOLDERS):
        limit = 800 if path.startswith("tests/") else FILE_LINES_MAX
        if len(lines) - 1 > limit:
            findings.add(path, limit + 1, f"{len(lines) - 1} lines: at most {limit}; split it by idea")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            findings.add(path, number, "trailing blanks")
        if "\t" in line and suffix in CODE_SUFFIXES | {".py", ".md", ".capnp"}:
            findings.add(path, number, "a tab")
        for pattern, sentence in BANNED_IN_ALL_FILES:
            match = re.search(pattern, line)
            if match and not path.endswith(("tidy.py", "tidy_test.py")):
                findings.add(path, number, f"`{match.group(0)}` {sentence}")
    if text and not text.endswith("\n"):
        findings.add(path, len(lines), "no newline at the end")
    if text.endswith("\n\n"):
        findings.add(path, len(lines) - 1, "blank lines at the end")


# ---- Files that nobody uses ----------------------------------------------------------------------

def check_dead_files(files, texts, findings):
    built = set()
    for path in files:
        if path.endswith(("CMakeLists.txt", ".cmake")):
            folder = pathlib.PurePosixPath(path).parent
            for name in re.findall(r"[\w./${}-]+\.(?:cpp|capnp|py)\b", texts.get(path, "")):
                name = re.sub(r"^\$\{(?:PROJECT|CMAKE)_SOURCE_DIR\}/", "/", name)
                name = re.sub(r"^\$\{CMAKE_CURRENT_SOURCE_DIR\}/", "", name)
                built.add(normal("" if name.startswith("/") else str(folder), name))
    included = {header for path in files if pathlib.PurePath(path).suffix in CODE_SUFFIXES
                for _, header in INCLUDE.findall(texts.get(path, ""))}
    imported = {name for path in files if path.endswith(".py")
                for name in re.findall(r"^(?:import|from) (\w+)", texts.get(path, ""), re.MULTILINE)}
    for path in files:
        if not path.startswith(tuple(folder + "/" for folder in SOURCE_FOLDERS)):
            continue
        pure = pathlib.PurePosixPath(path)
        if pure.suffix in (".cpp", ".capnp") and path not in built:
            findings.add(path, 1, "no CMakeLists.txt builds this file")
        if pure.suffix == ".hpp" and path not in included:
            findings.add(path, 1, "no file includes this header")
        if path.startswith("tests/") and pure.suffix == ".py":
            if path not in built and pure.stem not in imported:
                findings.add(path, 1, "no test runs or imports this file")


# ---- Formatting ----------------------------------------------------------------------------------

def check_format(root, files, findings):
    program = shutil.which("clang-format-14")
    if program is None:
        findings.add(".clang-format", 1, "formatting cannot be checked: install the package "
                     "clang-format-14 (tools/dev/install-dependencies --check does)")
        return

    def complaints(path):
        result = subprocess.run([program, "--dry-run", path], cwd=root, capture_output=True,
                                text=True, check=False)
        return path, re.findall(r":(\d+):\d+: warning", result.stderr)

    sources = [path for path in files if pathlib.PurePath(path).suffix in CODE_SUFFIXES]
    with ThreadPoolExecutor() as pool:
        for path, lines in pool.map(complaints, sources):
            if lines:
                findings.add(path, int(lines[0]), "not formatted: clang-format-14 -i " + path)


def check_repository(root, with_format=True):
    findings = Findings()
    files = tracked_files(root)
    texts = {}
    for path in files:
        try:
            texts[path] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            if pathlib.PurePath(path).suffix in COUNTED_SUFFIXES - {""}:
                findings.add(path, 1, "not UTF-8")
    allowed = walls({path: text for path, text in texts.items()
                     if path.endswith(("CMakeLists.txt", ".cmake")) and not path.startswith("tests/")})
    for path, text in texts.items():
        if "/corpus/" in path or "/golden/" in path:
            continue
        check_text(path, text, findings)
        check_phrases(path, text, findings)
        check_wrapping(path, text, findings)
        if pathlib.PurePath(path).suffix not in CODE_SUFFIXES:
            continue
        check_fragments(path, text, findings)
        code = without_comments_and_strings(text)
        check_includes(path, text, texts, allowed, findings)
        check_banned(path, text, code, findings)
        plain = without_directives(code)
        check_co_await(path, plain, findings)
        if not path.startswith("tests/"):
            check_function_lengths(path, plain, findings)
        if path.endswith(".cpp"):
            check_private_part(path, plain, LONG_PRIVATE_PARTS, findings)
    check_circles(texts, allowed, findings)
    check_folder_sizes(files, findings)
    check_dead_files(files, texts, findings)
    check_claims(files, texts, findings)
    check_size(texts, findings)
    if with_format:
        check_format(root, files, findings)
    return findings.sorted_lines()


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else __file__).resolve()
    if len(sys.argv) == 1:
        root = root.parents[2]
    lines = check_repository(root)
    for line in lines:
        print(line)
    if lines:
        print(f"tidy: {len(lines)} findings", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
