// SPDX-License-Identifier: BSL-1.0
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Threads of one Redisson client that contend for one lock: hold it, think, and want it again. Says "ready" when they
 * are warm, reads in how many milliseconds the shift begins and how many it lasts, and answers with the longest wait in
 * nanoseconds and how often each thread has had the lock.
 */
public final class RedissonContender {
  private static final int WARM_UP = 6_000;

  private record Tally(long acquired, long longestWait) {}

  /** The bench's memory, which all processes share: how many are inside, and how often one came who was not alone. */
  private static final class Witness {
    private static final VarHandle LONGS =
        MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final int INSIDE = 0, OVERLAPS = Long.BYTES, SIZE = 2 * Long.BYTES;

    private final ByteBuffer shared;

    Witness(Path file) throws IOException {
      try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        shared = channel.map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
      }
    }

    void enter() {
      if (add(INSIDE, 1) > 0) add(OVERLAPS, 1);
    }

    void leave() {
      add(INSIDE, -1);
    }

    private long add(int at, long count) {
      return (long) LONGS.getAndAdd(shared, at, count);
    }
  }

  private final ExecutorService threads;
  private final int count;
  private final Witness seen;

  private RedissonContender(int count, Witness seen) {
    this.threads = Executors.newFixedThreadPool(count);
    this.count = count;
    this.seen = seen;
  }

  private String shift(RLock lock, int beginsIn, int lasts, int hold, int think) throws Exception {
    final long begin = System.nanoTime() + beginsIn * 1_000_000L;
    final long end = begin + lasts * 1_000_000L;
    long longestWait = 0;
    final var acquired = new StringBuilder();
    final Callable<Tally> one = () -> contend(lock, begin, end, hold, think);
    for (var each : threads.invokeAll(Collections.nCopies(count, one))) {
      longestWait = Math.max(longestWait, each.get().longestWait);
      acquired.append(' ').append(each.get().acquired);
    }
    return longestWait + acquired.toString();
  }

  private Tally contend(RLock lock, long begin, long end, int hold, int think)
      throws InterruptedException {
    long acquired = 0, longestWait = 0;
    Thread.sleep(Math.max(0, begin - System.nanoTime()) / 1_000_000);
    for (long asked; (asked = System.nanoTime()) - end < 0; ++acquired) {
      lock.lock();
      longestWait = Math.max(longestWait, System.nanoTime() - asked);
      seen.enter();
      Thread.sleep(hold);
      seen.leave();
      lock.unlock();
      Thread.sleep(think);
    }
    return new Tally(acquired, longestWait);
  }

  private static RedissonClient connect(String url) {
    final var config = new Config();
    config.useSingleServer().setAddress(url);
    return Redisson.create(config);
  }

  /** URL, name of the lock, file of the witness; how many threads, milliseconds to hold and to think. */
  public static void main(String[] args) throws Exception {
    final var redisson = connect(args[0]);
    final var all = new RedissonContender(Integer.parseInt(args[3]), new Witness(Path.of(args[2])));
    all.shift(redisson.getLock(args[1] + ":warm-up"), 0, WARM_UP, 0, 0);  // as often as it can: the compiler counts
    System.out.println("ready");
    final var told = new Scanner(System.in);
    System.out.println(all.shift(
        redisson.getLock(args[1]), told.nextInt(), told.nextInt(), Integer.parseInt(args[4]), Integer.parseInt(args[5])));
    System.exit(0);
  }
}
