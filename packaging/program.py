"""What the executable runs: `kafkapy` itself."""

import os
import sys

from kafkapy.__main__ import main

# The one file runs this from its cache, and says by what name it was called itself: a link's name is a tool.
sys.argv[0] = os.environ.pop("KAFKAPY_PROGRAM", sys.argv[0])
sys.exit(main())
