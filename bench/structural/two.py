"""Start a command twice, as the two ranks of one training: what ``torchrun --nproc-per-node 2`` does, without torch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def main() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    shared["MASTER_PORT"] = str(port)
    ranks = [subprocess.Popen(sys.argv[1:], env={**shared, "RANK": r, "LOCAL_RANK": r}) for r in ("0", "1")]
    return max(abs(rank.wait()) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
