// SPDX-License-Identifier: BSL-1.0
// agent.mjs redlock|@sesamecare-oss/redlock: their side of the interop tests. agents.py has the commands.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const require = createRequire(import.meta.url);
const Redis = require("ioredis");
const library = require(process.argv[2]);
const Redlock = library.default ?? library.Redlock;

const places = new Map(); // name: { redlock, ttl }
const held = new Map(); // task, place and name: lock

function connect(place, hosts, ttl) {
  const clients = hosts.split(",").map((host) => {
    const [address, port] = host.split(":");
    const client = new Redis({ host: address, port: Number(port), maxRetriesPerRequest: 1, retryStrategy: () => 200 });
    client.on("error", () => {}); // a server that is dead
    return client;
  });
  // One try. A failed one would keep the keys of a minority until all tries are over.
  places.set(place, { redlock: new Redlock(clients, { retryCount: 0 }), ttl: Number(ttl) });
}

async function tryLock(redlock, name, ttl) {
  try {
    return await redlock.acquire([name], ttl);
  } catch (failure) {
    if (failure.name === "ExecutionError") return undefined;
    throw failure;
  }
}

async function lock(redlock, name, ttl) {
  for (;;) {
    const got = await tryLock(redlock, name, ttl);
    if (got) return got;
    await pause(2 + 8 * Math.random());
  }
}

// Whether a majority of the servers still had it.
async function confirmed(work) {
  try {
    return await work;
  } catch (failure) {
    if (failure.name === "ExecutionError") return undefined;
    throw failure;
  }
}

async function stress(redlock, name, ttl, rounds, milliseconds, counter) {
  const end = performance.now() + milliseconds;
  let done = 0;
  for (; done < rounds && performance.now() < end; ++done) {
    const got = await lock(redlock, name, ttl);
    const before = Number(await readFile(counter, "utf8"));
    await pause(1);
    await writeFile(counter, String(before + 1));
    await confirmed(got.release());
  }
  return `ok ${done}`;
}

async function perform(task, verb, place, kind, name, ...words) {
  if (verb === "connect") {
    connect(place, name, words[0]); // kind is the topology, name the hosts
    return "ok";
  }
  const { redlock, ttl: usual } = places.get(place);
  const key = `${task} ${place} ${name}`;
  const ttl = words.length === 0 || words[0] === "-" ? usual : Number(words[0]);
  name = decodeURIComponent(name);
  if (verb === "lock" || verb === "try") {
    const got = await (verb === "lock" ? lock : tryLock)(redlock, name, ttl);
    if (got) held.set(key, got);
    return got ? "ok" : "busy";
  }
  if (verb === "unlock") return (await confirmed(held.get(key).release())) ? "ok" : "lost";
  if (verb === "renew") {
    const longer = await confirmed(held.get(key).extend(ttl));
    if (longer) held.set(key, longer);
    return longer ? "ok" : "lost";
  }
  if (verb === "stress") return stress(redlock, name, ttl, Number(words[1]), Number(words[2]), decodeURIComponent(words[3]));
  throw new Error("unknown command");
}

for await (const line of createInterface({ input: process.stdin })) {
  const [number, ...words] = line.split(" ");
  perform(...words).then(
    (reply) => console.log(`${number} ${reply}`),
    (failure) => console.log(`${number} error ${String(failure).replaceAll("\n", " ")}`),
  );
}
process.exit(0);
