"""Worker processes unpickle the environments of tests by name, so they must find the package ``tests`` as well."""

import sys
from pathlib import Path

# Last, so that it never hides an installed package.
sys.path.append(str(Path(__file__).parents[1]))
