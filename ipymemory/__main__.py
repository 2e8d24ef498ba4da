"""``python -m ipymemory``: the command line, without the current folder on the import path.

Python puts the folder that it was started in first on the path. A ``json.py`` beside a notebook
would be imported in place of Python's own; so the folder goes before anything else is imported.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]

    from ipymemory.cli import main

    sys.exit(main())
