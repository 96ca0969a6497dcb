// SPDX-License-Identifier: BSL-1.0
// hold.js SOCKET COUNT TTL BEFORE MEASURED: holds so many locks, each renewed after a third of its TTL. Prints the CPU
// time of the process in seconds, from BEFORE ms after the last grant on and for MEASURED ms, and how many it has lost.
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function main(socket, count, ttl, before, measured) {
  const server = new Redis(socket);
  const redlock = new Redlock([server], { automaticExtensionThreshold: (ttl * 2) / 3 });
  const signals = [];
  let failed = 0;
  for (let i = 0; i < count; ++i) {
    await new Promise((granted) => {
      redlock
        .using([`bench:${i}`], ttl, (signal) => {
          signals.push(signal);
          granted();
          return new Promise(() => {});
        })
        .catch(() => {
          ++failed;
          granted();
        });
    });
  }
  await pause(before);
  const begun = process.cpuUsage();
  await pause(measured);
  const used = process.cpuUsage(begun);
  const lost = failed + signals.filter((signal) => signal.aborted).length;
  console.log(`${(used.user + used.system) / 1e6} ${lost}`);
  process.exit(0);
}

main(process.argv[2], ...process.argv.slice(3).map(Number)).catch((failure) => {
  console.error(failure);
  process.exit(1);
});
