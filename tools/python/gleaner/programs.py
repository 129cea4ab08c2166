"""Finds the programs of Gleaner and runs a program to its end."""

import os
import shutil
import subprocess

FOLDER = "GLEANER_BIN"  # environment variable


def find(name):
    """The program in the folder that GLEANER_BIN names, or where the shell finds it."""
    folder = os.environ.get(FOLDER)
    found = shutil.which(name, path=folder) if folder else shutil.which(name)
    if found:
        return found
    where = f"in {folder}, which {FOLDER} names" if folder else "on the path"
    raise FileNotFoundError(f"{name} is not {where}: install the package {name}, or name the folder "
                            f"that has it in {FOLDER}")


def run(name, *arguments):
    """Runs a program to its end and returns what it printed. RuntimeError has what it complained of."""
    done = subprocess.run([find(name), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{name} ended with status {done.returncode}")
    return done.stdout
