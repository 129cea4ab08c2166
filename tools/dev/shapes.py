"""Shapes of C++ code, for tidy.py: forms of co_await that GCC 12 compiles correctly, and the length of
functions."""

import re

FUNCTION_LINES_MAX = 60


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# ---- co_await ------------------------------------------------------------------------------------

CONTROL = re.compile(r"\s*(?:if\s+constexpr|if|while|for|switch)\s*\(")
LABEL = re.compile(r"\s*(?:else\b|do\b|case\b(?:[^:?]|::)*:(?!:)|default\s*:)")
TARGET = re.compile(
    r"\s*(?:\(void\)\s*"
    r"|(?:[\w:<>,&*\s]+[\s&*>])?(?:\[[\w\s,]+\]|\w+(?:(?:\.|->)\w+)*(?:\[\w+\])?)\s*=\s*)?")
OPERATOR = re.compile(r"\s(?:&&|\|\||==|!=|<=?|>=?|\+|-|\*|/|%|<<|>>|\?)\s|\)\s*,")
OPEN, CLOSE = "([{", ")]}"


def statement_prefix(code, offset):
    """What stands between the statement's start and `offset`; None inside open parentheses."""
    depth, at = 0, offset - 1
    while at >= 0:
        char = code[at]
        if char in ")]":
            depth += 1
        elif char in "([":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and char in ";{}":
            break
        at -= 1
    return code[at + 1:offset]


def after_control(prefix):
    """The prefix without `if (...)`, `else`, `case x:` and their like at its start."""
    while True:
        match = CONTROL.match(prefix)
        if match:
            depth, at = 1, match.end()
            while at < len(prefix) and depth:
                depth += {"(": 1, ")": -1}.get(prefix[at], 0)
                at += 1
            prefix = prefix[at:]
            continue
        match = LABEL.match(prefix)
        if not match:
            return prefix
        prefix = prefix[match.end():]


def check_co_await(path, code, findings):
    for match in re.finditer(r"\bco_await\b", code):
        line = line_of(code, match.start())
        prefix = statement_prefix(code, match.start())
        if prefix is None:
            findings.add(path, line, "co_await inside a condition or another expression: GCC 12 "
                         "miscompiles it; assign it to a named variable first")
            continue
        if not TARGET.fullmatch(after_control(prefix)):
            findings.add(path, line, "co_await stands alone as a statement or initialises or assigns "
                         "a named variable, nothing else")
            continue
        operand, depth = [], 0
        for char in code[match.end():]:
            if depth == 0 and char in ";)}":
                break
            depth += (char in OPEN) - (char in CLOSE)
            operand.append(char if depth == 0 or char == "{" or char.isspace() else "_")
        operand = "".join(operand)
        if "{" in operand:
            findings.add(path, line, "co_await with a lambda or a braced list in its expression: GCC "
                         "12 destroys it twice; name it first")
        elif OPERATOR.search(operand):
            findings.add(path, line, "co_await is part of a larger expression: assign its result to "
                         "a named variable first")


# ---- Lengths -------------------------------------------------------------------------------------

NOT_A_FUNCTION = re.compile(
    r"\s*(?:(?:inline\s+)?namespace|extern|class|struct|enum|union|if|for|while|switch|do|else)\b"
    r"|\s*template\s*<[^{]*>\s*(?:class|struct|union)\b")


def check_function_lengths(path, code, findings):
    """Outermost bodies that follow a parameter list; what is inside them belongs to them."""
    stack, start = [], 0  # (is a function, line of the signature)
    in_function = False
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(0), match.start()
        if char == "{":
            prefix = code[start:at]
            is_function = (not in_function and "(" in prefix and not NOT_A_FUNCTION.match(prefix)
                           and not re.search(r"=\s*$|\(\s*$|,\s*$", prefix))
            stack.append((is_function, line_of(code, at)))
            in_function = in_function or is_function
        elif char == "}" and stack:
            is_function, opened = stack.pop()
            if is_function:
                in_function = False
                lines = line_of(code, at) - opened + 1
                if lines > FUNCTION_LINES_MAX:
                    findings.add(path, opened, f"a function of {lines} lines: at most "
                                 f"{FUNCTION_LINES_MAX}; split it by idea")
        start = at + 1


# ---- Unnamed namespaces --------------------------------------------------------------------------

PRIVATE_LINES_MAX = 80
# A file of few functions for others is about what is behind them: its private part is its idea.
FEW_FUNCTIONS = 3
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b([^{;]*)\{[ \t]*\n", re.MULTILINE)


def check_private_part(path, code, long_ones, findings):
    """One unnamed namespace, before all else of its namespace, of at most PRIVATE_LINES_MAX lines; in a test of any
    length: its scenes are what the test is about."""
    parts = []  # (begin, end) of each unnamed namespace
    begin = None  # of the contents of the namespace around it
    for match in NAMESPACE.finditer(code):
        if match.group(1).strip():
            begin = match.end() if begin is None else begin
            continue
        depth, at = 1, match.end()
        while depth and at < len(code):
            depth += (code[at] == "{") - (code[at] == "}")
            at += 1
        parts.append((match.start(), at))
    if not parts:
        return
    for start, _ in parts[1:]:
        findings.add(path, line_of(code, start), "a second unnamed namespace: put it into the first, or "
                     "give each idea a file")
    start, end = parts[0]
    if begin is not None and begin <= start and without_declarations(code[begin:start]).strip():
        findings.add(path, line_of(code, start), "the unnamed namespace comes after other code: put it first")
    if path.startswith("tests/"):
        return
    lines = code.count("\n", start, end) + 1
    functions = len(re.findall(r"^\};?$", code[end:], re.MULTILINE))
    if lines > long_ones.get(path, PRIVATE_LINES_MAX) and functions > FEW_FUNCTIONS:
        findings.add(path, line_of(code, start), f"an unnamed namespace of {lines} lines beside {functions} "
                     f"definitions: at most {PRIVATE_LINES_MAX}; split the file by idea")


def without_declarations(code):
    """The same code without names of other namespaces and declarations of types."""
    return re.sub(r"^(?:using|namespace|struct|class|enum)\b[^{};]*;|^(?:inline\s+)?namespace\b[^{;]*\{", "", code,
                  flags=re.MULTILINE)
