#!python
"""Runs the command line of the installed package. Importing the package would take longer."""

import importlib.util
import os
import sys

package = importlib.util.find_spec("foretune")
assert package is not None and package.submodule_search_locations is not None
path = os.path.join(package.submodule_search_locations[0], "foretune")
os.execv(path, ["foretune", *sys.argv[1:]])
