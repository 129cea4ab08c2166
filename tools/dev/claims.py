"""Claims of documents and comments about the tree, for tidy.py. Links must lead to files and headings that exist.
Files, members, functions and tests that Markdown or comments name must exist. NAME stands for any name."""

import pathlib
import re

CODE = {".cpp", ".hpp", ".capnp", ".py", ".c", ".js", ".html", ".css", ".cmake"}
FILE_SUFFIXES = r"(?:cpp|hpp|py|capnp|md|cmake|js|html|css)"
EXEMPT = re.compile(r"tests/unit/tools/tidy_test\.py|tests/bench/(RESULTS|REJECTED)\.md|.*/(corpus|golden)/.*")

# ---- Links ---------------------------------------------------------------------------------------

LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def anchors(markdown):
    """The anchors of a page: its headings as GitHub names them, and ids that are written out."""
    seen, names = {}, set(re.findall(r'<a id="([^"]+)">', markdown))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", FENCE.sub(blanked, markdown), re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.add(f"{slug}-{seen[slug]}" if slug in seen else slug)
        seen[slug] = seen.get(slug, 0) + 1
    return names


def normal(folder, path):
    parts = []
    for part in (folder + "/" + path).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


# ---- Names ---------------------------------------------------------------------------------------

COMMENTS = {
    "cpp": re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                      r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL),
    "hash": re.compile(r'"""(?:[^"]|"(?!""))*"""|#[^\n]*|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'"),
}


def comments_of(path):
    suffix = pathlib.PurePath(path).suffix
    if suffix in (".cpp", ".hpp", ".c", ".js"):
        return "cpp"
    return "hash" if suffix in (".py", ".capnp", ".cmake") or path.endswith("CMakeLists.txt") else None


def split_comments(path, text):
    """The text with its code blanked out, and the text with its comments blanked out."""
    kind = comments_of(path)
    if kind is None:
        return "", text
    code, comments, last = [], [], 0
    for match in COMMENTS[kind].finditer(text):
        token = match.group(0)
        is_comment = token.startswith(("//", "/*", '"""', "#"))
        code.append(text[last:match.start()])
        comments.append(re.sub(r"[^\n]", " ", text[last:match.start()]))
        blank = re.sub(r"[^\n]", " ", token)
        code.append(blank if is_comment else token)
        comments.append(token if is_comment else blank)
        last = match.end()
    return "".join(comments) + re.sub(r"[^\n]", " ", text[last:]), "".join(code) + text[last:]


TICKED = re.compile(r"`([^`\n]+)`")
FILE = re.compile(rf"(?<![\w./*<{{$-])((?:[\w-]+/|\.\./)*[\w-]+\.{FILE_SUFFIXES})\b(?![\w/*]|\.\w)")
MEMBER = re.compile(r"(?<![\w:])([A-Z]\w*)::(\w+)")
CALL = re.compile(r"(?<![\w.:>$])([a-z]\w*)\(\)")
TYPE = re.compile(r"\b(?:class|struct|union|enum)\s+(?:class\s+|alignas\([^)]*\)\s+|\[\[\w+\]\]\s+)?([A-Z]\w*)")
NAME = re.compile(r"[A-Za-z_]\w*")
# Names that only a name of code has: an underscore within, or a capital after a small letter.
CODE_NAME = re.compile(r"[a-z0-9]\w*_\w*\w|[A-Za-z]*[a-z][A-Z]\w*")
TEST = re.compile(r"`((?:e2e|fuzz|cluster|strangers)_\w+|\w+_test)`((?:,?\s+\"[^\"]+\")*)")


class Tree:
    """The files of the repository and the words of its code."""

    def __init__(self, files, texts):
        self.files = set(files)
        self.folders = {str(parent) for path in files for parent in pathlib.PurePosixPath(path).parents}
        self.endings = set()
        for path in files:
            parts = path.split("/")
            self.endings.update("/".join(parts[i:]) for i in range(len(parts)))
        self.comments, self.words, self.members, self.cases = {}, set(), {}, {}
        self.anchors = {path: anchors(text) for path, text in texts.items() if path.endswith(".md")}
        for path, text in texts.items():
            if path.endswith(".md") or EXEMPT.fullmatch(path):
                continue
            self.comments[path], code = split_comments(path, text)
            words = set(NAME.findall(code))
            self.words |= words
            for name in TYPE.findall(code):
                self.members.setdefault(name, set()).update(words)
            self.words.add(pathlib.PurePath(path).name.split(".")[0])
        self.read_tests(texts)

    def read_tests(self, texts):
        """The entries of ctest, and what their sources call their cases."""
        for path, text in texts.items():
            if not path.startswith("tests/") or not path.endswith(("CMakeLists.txt", ".cmake")):
                continue
            folder = path.rpartition("/")[0]
            for command, rest in re.findall(r"\b(\w*(?:_test|_e2e|_fuzz))\s*\(([^)]*)\)", text):
                words = [word for word in rest.split() if word != "NAME"]
                name = ("fuzz_" if command == "gleaner_fuzz" else "") + words[0] if words else ""
                cases = self.cases.setdefault(name, [])
                for word in words:
                    source = normal(folder, word.rpartition("}/")[2])
                    if word.endswith((".cpp", ".py")) and source in texts:
                        cases += re.findall(r'TEST_CASE\((?:\s*")([^"]*)', texts[source])
                        cases += re.findall(r"def test_(\w+)", texts[source])
                    elif word in self.cases and word != name:
                        cases += self.cases[word]

    def has_file(self, path, folder):
        return path in self.endings or normal(folder, path) in self.files

    def has_case(self, test, words):
        wanted = plain(words)
        return any(wanted in plain(case) for case in self.cases[test])


def plain(words):
    return re.sub(r"[\W_]+", " ", words.replace("...", "")).strip().lower()


def check_links(path, text, tree, findings):
    folder = path.rpartition("/")[0]
    text = FENCE.sub(blanked, text)
    for match in LINK.finditer(text):
        target, _, anchor = match.group(1).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        line = text.count("\n", 0, match.start(1)) + 1
        place = normal(folder, target) if target else path
        if place not in tree.files and place not in tree.folders:
            findings.add(path, line, f"links to {place}, which does not exist")
        elif anchor and anchor not in tree.anchors.get(place, ()):
            findings.add(path, line, f"links to #{anchor}, which is no heading of {place}")


def check_names(path, prose, tree, findings):
    """In `prose`, which is a page or a source whose code is blanked out."""
    folder, is_page = path.rpartition("/")[0], path.endswith(".md")

    def refuse(position, name, kind):
        line = prose.count("\n", 0, position) + 1
        findings.add(path, line, f"names `{name}`: no {kind} of the tree is called so")

    for match in FILE.finditer(prose):
        if not tree.has_file(match.group(1), folder):
            refuse(match.start(), match.group(1), "file")
    for match in MEMBER.finditer(prose):
        if match.group(2) not in tree.members.get(match.group(1), ()) and "NAME" not in match.group(2):
            refuse(match.start(), match.group(0), "member")
    for match in CALL.finditer(prose):
        if match.group(1) not in tree.words:
            refuse(match.start(), match.group(0), "function")
    for match in TICKED.finditer(prose):
        name = match.group(1)
        is_code = CODE_NAME.fullmatch(name) and "NAME" not in name
        if is_code and name not in tree.words and name not in tree.cases:
            refuse(match.start(), name, "name")
        if re.fullmatch(r"(?:common|schema|storage|master|volunteer|tools|tests)(?:/[\w-]+)+/?", name):
            place = name.rstrip("/")
            if place not in tree.folders and not any(
                    place + end in tree.files for end in ("", ".hpp", ".cpp", ".py")):
                refuse(match.start(), name, "file or folder")
    for match in TEST.finditer(prose if is_page else ""):
        test, quotes = match.groups()
        if test not in tree.cases and test not in tree.words:
            refuse(match.start(), test, "test")
        for words in re.findall(r'"([^"]+)"', quotes):
            if test in tree.cases and not tree.has_case(test, words):
                refuse(match.start(2), words, f"case of {test}")


def check_claims(files, texts, findings):
    tree = Tree(files, texts)
    for path, text in texts.items():
        if EXEMPT.fullmatch(path) and not path.endswith(".md"):
            continue
        if path.endswith(".md"):
            check_links(path, text, tree, findings)
            if not EXEMPT.fullmatch(path):
                check_names(path, LINK.sub(blanked, FENCE.sub(blanked, text)), tree, findings)
        elif comments_of(path):
            check_names(path, tree.comments[path], tree, findings)
