"""As a program: `python FOLDER REQUEST.json`, where this folder need not be part of an installed hlofuse."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path[0], __package__ = str(folder.parent), folder.name
    from .main import main

    sys.path[0] = os.getcwd()  # the user's modules, not this folder's neighbours
    main()
