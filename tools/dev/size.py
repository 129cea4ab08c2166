"""The size of the tree, for tidy.py. A line of size.txt is a limit and the name of a count. A count beyond its
limit is refused, and so is a limit more than 1 % above its count."""

import pathlib

SIZES = "tools/dev/size.txt"
PRODUCTION = {".cpp", ".hpp", ".capnp", ".py"}


def count(texts):
    production = [text for path, text in texts.items()
                  if pathlib.PurePath(path).suffix in PRODUCTION and not path.startswith("tests/")]
    return {
        "production lines": sum(text.count("\n") for text in production),
        "production files": len(production),
        "Markdown words": sum(len(text.split()) for path, text in texts.items() if path.endswith(".md")),
    }


def check_size(texts, findings):
    counts = count(texts)
    for line, text in enumerate(texts.get(SIZES, "").splitlines(), 1):
        limit, _, name = text.partition(" ")
        limit, present = int(limit), counts.get(name.strip())
        if present is None:
            findings.add(SIZES, line, f"`{name}` is not counted: {', '.join(counts)} are")
        elif present > limit:
            findings.add(SIZES, line, f"{present} {name}, {present - limit} beyond the limit: delete what is not needed")
        elif present < limit * 0.99:
            findings.add(SIZES, line, f"{present} {name}: lower the limit to that number")
