# SPDX-License-Identifier: BSL-1.0
"""redis_py.py SOCKET ROUNDS: what interop_peer does, with redis-py's Lock."""
import sys
import time

import redis

server = redis.Redis(unix_socket_path=sys.argv[1])
for _ in range(int(sys.argv[2])):
    with server.lock("shared", timeout=5, sleep=0.002):
        before = int(server.get("counter"))
        time.sleep(0.001)
        server.set("counter", before + 1)
