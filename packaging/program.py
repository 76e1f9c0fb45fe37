"""The entry point of the executable."""

import os
import sys

from kafkapy.__main__ import main

# The single file runs this from its cache and passes the name by which it was called: a link's name is a tool.
sys.argv[0] = os.environ.pop("KAFKAPY_PROGRAM", sys.argv[0])
sys.exit(main())
