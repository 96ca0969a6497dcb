// SPDX-License-Identifier: BSL-1.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;

/** Redisson's side of the interop tests. agents.py has the commands. Each task is a thread: it owns what it locks. */
public final class RedissonAgent {
  private static final int ENOUGH = 10_000;  // milliseconds: a busy machine is no outage

  private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
  private final Map<String, ExecutorService> tasks = new ConcurrentHashMap<>();
  private final Map<String, Deque<String>> permits = new ConcurrentHashMap<>();  // of a task and a name

  /** number task verb place kind name, then words of the verb. */
  private record Command(String[] words) {
    String number() { return words[0]; }
    String task() { return words[1]; }
    String verb() { return words[2]; }
    String place() { return words[3]; }
    String kind() { return words[4]; }
    String name() { return decoded(words[5]); }
    long ttl() { return words[6].equals("-") ? -1 : Long.parseLong(words[6]); }
  }

  private static String decoded(String word) { return URLDecoder.decode(word, StandardCharsets.UTF_8); }

  private static String yes(boolean is) { return is ? "yes" : "no"; }

  private String perform(Command c) throws Exception {
    if (c.verb().equals("connect")) {
      clients.put(c.place(), Redisson.create(config(c.words[4], c.words[5].split(","), Long.parseLong(c.words[6]))));
      return "ok";
    }
    final var client = clients.get(c.place());
    if (c.verb().equals("use")) return use(client, c.kind(), c.name());
    if (c.verb().equals("look")) return look(client, c.kind(), c.name());
    if (c.kind().equals("countdown")) return count(c, client.getCountDownLatch(c.name()));
    if (c.kind().startsWith("permit")) return permits(c, client.getPermitExpirableSemaphore(c.name()));
    final var lock = lock(client, c.kind(), c.name());
    switch (c.verb()) {
      case "lock":
        lock.lock(c.ttl(), TimeUnit.MILLISECONDS);
        return granted(lock);
      case "try":
        return lock.tryLock(0, c.ttl(), TimeUnit.MILLISECONDS) ? granted(lock) : "busy";
      case "unlock":
        try {
          lock.unlock();
        } catch (IllegalMonitorStateException notHeld) {
          return "lost";
        }
        return "ok";
      case "force": return yes(lock.forceUnlock());
      case "locked": return yes(lock.isLocked());
      case "held": return yes(lock.isHeldByCurrentThread());
      case "stress":
        return stress(c, !c.kind().equals("read"),
            () -> {
              lock.lock(c.ttl(), TimeUnit.MILLISECONDS);
              return lock instanceof RFencedLock fenced ? fenced.getToken() : null;
            },
            lock::unlock);
      default: throw new IllegalArgumentException("unknown command");
    }
  }

  /** A permit is one of three, or the only one. */
  private String permits(Command c, RPermitExpirableSemaphore semaphore) throws Exception {
    semaphore.trySetPermits(c.kind().equals("permits") ? 3 : 1);
    final var own = permits.computeIfAbsent(c.task() + " " + c.name(), key -> new ArrayDeque<>());
    switch (c.verb()) {
      case "lock":
        own.push(c.ttl() < 0 ? semaphore.acquire() : semaphore.acquire(c.ttl(), TimeUnit.MILLISECONDS));
        return "ok";
      case "try":
        final var permit = c.ttl() < 0 ? semaphore.tryAcquire() : semaphore.tryAcquire(0, c.ttl(), TimeUnit.MILLISECONDS);
        if (permit == null) return "busy";
        own.push(permit);
        return "ok";
      case "unlock": return semaphore.tryRelease(own.pop()) ? "ok" : "lost";
      case "stress":
        return stress(c, true,
            () -> {
              own.push(semaphore.acquire());
              return null;
            },
            () -> semaphore.release(own.pop()));
      default: throw new IllegalArgumentException("unknown command");
    }
  }

  private static String count(Command c, RCountDownLatch latch) throws Exception {
    switch (c.verb()) {
      case "set": return yes(latch.trySetCount(Long.parseLong(c.words[6])));
      case "left": return String.valueOf(latch.getCount());
      case "down":
        latch.countDown();
        return "ok";
      case "wait":
        latch.await();
        return "ok";
      default: throw new IllegalArgumentException("unknown command");
    }
  }

  private static RLock lock(RedissonClient client, String kind, String name) {
    return switch (kind) {
      case "mutex" -> client.getLock(name);
      case "fenced" -> client.getFencedLock(name);
      case "spin" -> client.getSpinLock(name);
      case "fair", "in_order" -> client.getFairLock(name);
      case "read" -> client.getReadWriteLock(name).readLock();
      case "write" -> client.getReadWriteLock(name).writeLock();
      case "multi" -> client.getMultiLock(client.getLock(name + ":1"), client.getLock(name + ":2"));
      default -> throw new IllegalArgumentException("unknown kind");
    };
  }

  /** The holder's token is the newest one as long as it holds. */
  private static String granted(RLock lock) {
    return lock instanceof RFencedLock fenced ? "ok " + fenced.getToken() : "ok";
  }

  /** Takes another object under the name of a lock: makes it, or writes to it. */
  private static String use(RedissonClient client, String kind, String name) {
    switch (kind) {
      case "semaphore":
        final var semaphore = client.getSemaphore(name);
        return "permits " + yes(semaphore.trySetPermits(1)) + ", one of them " + yes(semaphore.tryAcquire());
      case "bucket":
        client.getBucket(name, StringCodec.INSTANCE).set("data");
        return "ok";
      case "map":
        client.getMap(name, StringCodec.INSTANCE).put("field", "data");
        return "ok";
      case "latch": return yes(client.getCountDownLatch(name).trySetCount(1));
      default: throw new IllegalArgumentException("unknown kind");
    }
  }

  private static String look(RedissonClient client, String kind, String name) {
    return String.valueOf(switch (kind) {
      case "semaphore" -> client.getSemaphore(name).availablePermits();
      case "bucket" -> client.getBucket(name, StringCodec.INSTANCE).get();
      case "map" -> client.getMap(name, StringCodec.INSTANCE).get("field");
      case "latch" -> client.getCountDownLatch(name).getCount();
      default -> throw new IllegalArgumentException("unknown kind");
    });
  }

  /**
   * Only the lock protects the number in the file: two holders at once lose a count. A writer counts it up, a reader
   * sees it unchanged.
   */
  private static String stress(Command c, boolean writes, Callable<Long> lock, Runnable unlock) throws Exception {
    final long rounds = Long.parseLong(c.words[7]);
    final long end = System.nanoTime() + Long.parseLong(c.words[8]) * 1_000_000;
    final var counter = Path.of(decoded(c.words[9]));
    final var tokens = Path.of(counter + ".tokens");
    long done = 0;
    for (; done < rounds && System.nanoTime() - end < 0; ++done) {
      final var token = lock.call();
      final long before = Long.parseLong(Files.readString(counter).strip());
      Thread.sleep(1);
      if (writes) Files.writeString(counter, String.valueOf(before + 1));
      else if (Long.parseLong(Files.readString(counter).strip()) != before)
        throw new IllegalStateException("a writer was beside a reader");
      if (token != null)
        Files.writeString(tokens, token + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      unlock.run();
    }
    return "ok " + done;
  }

  private static Config config(String topology, String[] hosts, long watchdog) {
    final var config = new Config();
    config.setLockWatchdogTimeout(watchdog);
    config.setThreads(4);
    config.setNettyThreads(4);
    final var urls = Arrays.stream(hosts).map(host -> "redis://" + host).toArray(String[]::new);
    switch (topology) {
      case "one" -> patient(config.useSingleServer()
          .setAddress(urls[0])
          .setConnectionMinimumIdleSize(2)
          .setSubscriptionConnectionMinimumIdleSize(1));
      case "sentinel" -> small(config.useSentinelServers().setMasterName("mymaster").addSentinelAddress(urls));
      case "cluster" -> small(config.useClusterServers().addNodeAddress(urls));
      default -> throw new IllegalArgumentException("unknown topology");
    }
    return config;
  }

  private static void patient(BaseConfig<?> servers) {
    servers.setTimeout(ENOUGH);
    servers.setConnectTimeout(ENOUGH);
  }

  private static void small(BaseMasterSlaveServersConfig<?> servers) {
    patient(servers);
    servers.setMasterConnectionMinimumIdleSize(2);
    servers.setSlaveConnectionMinimumIdleSize(1);
  }

  private void answer(Command c) {
    String reply;
    try {
      reply = perform(c);
    } catch (Exception | Error failure) {
      reply = "error " + failure.toString().replace('\n', ' ');
    }
    synchronized (System.out) {
      System.out.println(c.number() + " " + reply);
    }
  }

  private void run() throws IOException {
    final var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = input.readLine()) != null;) {
      final var command = new Command(line.split(" "));
      tasks.computeIfAbsent(command.task(), task -> Executors.newSingleThreadExecutor())
          .execute(() -> answer(command));
    }
  }

  public static void main(String[] arguments) throws IOException {
    new RedissonAgent().run();
    System.exit(0);
  }
}
