"""The language of comments, strings and Markdown, as far as tidy.py checks it."""

import re

# Phrases that a reader must guess at, in comments, strings and Markdown, also across a line's end.
PHRASES = re.compile(r"\b(so\s+(?:many|much|long)|anew|(?:is|are)\s+said"
                     r"|what\s+(?:\w+\s+){1,4}are\s+about)\b", re.IGNORECASE)
# Files where they may stand, and why.
PHRASES_ALLOWED = re.compile(
    r"tests/bench/machine/bench_training\.cpp"  # the name of a line of the bench
    r"|tools/dev/language\.py|tests/unit/tools/tidy_test\.py")
# A comment that begins so is no sentence: it leaves the reader to guess at its subject.
FRAGMENT = re.compile(r"^[ \t]*// (?:Of|Those|The same|What|Whose)\b")
PROSE_COLUMNS_MAX = 120

COMMENT_MARK = re.compile(r"^[ \t]*(?://+|#+|\*|\")?[ \t]*|\"?[ \t]*$")


def check_phrases(path, text, findings):
    if PHRASES_ALLOWED.fullmatch(path):
        return
    lines = [COMMENT_MARK.sub("", line) for line in text.split("\n")]
    for number, line in enumerate(lines, 1):
        both = line + " " + lines[number] if number < len(lines) else line
        for match in PHRASES.finditer(both):
            if match.start() < len(line):
                findings.add(path, number, f"`{match.group(0)}` makes the reader guess: give the number "
                             "or the name, or say who does it")


def check_fragments(path, text, findings):
    """Comments of C++ begin with a subject or a verb."""
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        match = FRAGMENT.match(line)
        is_heading = match and not before.lstrip().startswith("//")
        if is_heading:
            findings.add(path, number, f"`{match.group(0).strip()}` begins a comment: begin with its "
                         "subject or verb")
        before = line


def check_wrapping(path, text, findings):
    """Prose of Markdown; tables and code have lines as long as they need."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code or line.startswith("    ") or line.lstrip().startswith("|"):
            continue
        elif len(line) > PROSE_COLUMNS_MAX and " " in line.strip():
            findings.add(path, number, f"{len(line)} columns of prose: wrap at {PROSE_COLUMNS_MAX}")
