"""A pytest plugin: the tests use a build of the native pool that the address sanitizer watches.

It is named by SANITIZED_NATIVE, and takes the place of the usual one before anything is imported.
"""

import importlib.machinery
import importlib.util
import os
import sys

NAME = "pufferlib.envpool._native"

path = os.environ["SANITIZED_NATIVE"]
loader = importlib.machinery.ExtensionFileLoader(NAME, path)
spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
module = importlib.util.module_from_spec(spec)
sys.modules[NAME] = module
loader.exec_module(module)
