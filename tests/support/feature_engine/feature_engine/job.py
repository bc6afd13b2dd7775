"""One job: reads a request, and writes its answer beside it."""

import json
import sys
from pathlib import Path

from kbench.features import Request, compute_here

if __name__ == "__main__":
    path = Path(sys.argv[1])
    answer = compute_here(Request.from_json(json.loads(path.read_text())))
    path.with_suffix(".answer").write_text(json.dumps(answer.to_json()))
