"""Finds the programs of Gleaner."""

import os
import shutil

FOLDER = "GLEANER_BIN"  # environment variable
HERE = os.path.dirname(os.path.abspath(__file__))
# Where a wheel and a build folder have the programs.
BESIDE = [os.path.join(HERE, "bin"), os.path.join(HERE, "..", "..", "bin")]


def find(name):
    """The program in the folder that GLEANER_BIN names, or beside this package, or where the shell finds it."""
    folder = os.environ.get(FOLDER)
    places = [folder] if folder else [*BESIDE, None]
    for place in places:
        if found := shutil.which(name, path=place):
            return os.path.abspath(found)
    where = f"in {folder}, which {FOLDER} names" if folder else "on the path"
    raise FileNotFoundError(f"{name} is not {where}: install the package {name}, or name the folder "
                            f"that has it in {FOLDER}")
