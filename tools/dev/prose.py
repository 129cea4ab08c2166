"""The language of comments, strings and Markdown, for tidy.py: phrases that make a reader guess,
comments without a subject, and the length of lines of Markdown."""

import re

# Phrases that a reader must guess at, also across a line's end.
PHRASES = re.compile(r"\b(so\s+(?:many|much|long|often)|anew|(?:is|are)\s+said|as\s+it\s+were|else\s+but"
                     r"|what\s+(?:\w+\s+){1,4}are\s+about)\b", re.IGNORECASE)
# Pronouns whose noun a reader must search for.
PRONOUNS = re.compile(r"\b([Oo]ne\s+that|[Tt]hose\s+of|[Ww]hich\s+has\s+none)\b")
# A clause in the place of a sentence's subject, or a verb before it. A question may begin so.
CLAUSES = re.compile(r"\b(Whoever|What\s+(?:is|was)|(?:Held|Kept|Said|Sent|Counted|Measured|Checked|Compared|Refused|Written)"
                     r"\s+(?:is|are|was|were))\b(?![^.!?]*\?)")
RULES = [(PHRASES, "makes the reader guess: give the number or the name, or say who does it"),
         (PRONOUNS, "makes the reader search for its noun: repeat the noun"),
         (CLAUSES, "begins a sentence without its noun: begin with the noun")]
# Files where they may stand, and why.
PHRASES_ALLOWED = re.compile(
    r"tests/bench/machine/bench_training\.cpp"  # the name of a line of the bench
    r"|tools/dev/prose\.py|tests/unit/tools/tidy_test\.py")
# A comment that begins so is no sentence.
FRAGMENT = re.compile(r"^[ \t]*// (?:Of|Those|The same|What|Whose)\b")
TEST_NAME = re.compile(r"\bTEST_CASE\(|\bdef test_")
PROSE_COLUMNS_MAX = 120
TABLE_COLUMNS_MAX = 140
# Pages whose lines are made by a program, or are figures with their links.
LONG_ALLOWED = re.compile(r".*CONFIGURATION\.md|tests/bench/RESULTS\.md")

COMMENT_MARK = re.compile(r"^[ \t]*(?://+|#+|\*|\")?[ \t]*|\"?[ \t]*$")


def check_phrases(path, text, findings):
    if PHRASES_ALLOWED.fullmatch(path):
        return
    raw = text.split("\n")
    lines = [COMMENT_MARK.sub("", line) for line in raw]
    for number, line in enumerate(lines, 1):
        both = " ".join(lines[number - 1:number + 2])
        for pattern, sentence in RULES:
            if pattern is CLAUSES and path.endswith(".md") and raw[number - 1].startswith("#"):
                continue
            for match in pattern.finditer(both):
                if match.start() < len(line) and not TEST_NAME.search(raw[number - 1]):
                    findings.add(path, number, f"`{match.group(0)}` {sentence}")


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
    """Lines of Markdown outside code."""
    if not path.endswith(".md") or LONG_ALLOWED.fullmatch(path):
        return
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code or line.startswith("    "):
            continue
        elif line.lstrip().startswith("|"):
            if len(line) > TABLE_COLUMNS_MAX:
                findings.add(path, number, f"{len(line)} columns of table: at most {TABLE_COLUMNS_MAX}; shorten a cell")
        elif len(line) > PROSE_COLUMNS_MAX and " " in line.strip():
            findings.add(path, number, f"{len(line)} columns of prose: wrap at {PROSE_COLUMNS_MAX}")
