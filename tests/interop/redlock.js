// SPDX-License-Identifier: BSL-1.0
// redlock.js SOCKET ROUNDS: what interop_peer does, with redlock on one server.
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

async function main(socket, rounds) {
  const server = new Redis(socket);
  const redlock = new Redlock([server], { retryCount: -1, retryDelay: 2, retryJitter: 2 });
  for (let i = 0; i < rounds; ++i) {
    const lock = await redlock.acquire(["shared"], 5000);
    const before = Number(await server.get("counter"));
    await new Promise((done) => setTimeout(done, 1));
    await server.set("counter", before + 1);
    await lock.release();
  }
  server.disconnect();
}

main(process.argv[2], Number(process.argv[3])).catch((failure) => {
  console.error(failure);
  process.exit(1);
});
