"""A user of the embedded servers as a process of its own: tells the URLs, stays until its input closes."""

import json
import signal
import sys
from pathlib import Path

from service import embedded

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
with embedded.start(Path(sys.argv[1])) as urls:
    print(json.dumps(urls._asdict()), flush=True)
    sys.stdin.read()
