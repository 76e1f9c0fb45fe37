import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * Runs the recipes of Apache Curator with two clients, and prints what they observe, in an order that does not depend on
 * the time: one line for each observation, and at the end the names of all nodes that stay.
 *
 * <p>Argument: the address, host:port.
 */
public final class CuratorRecipes {
    private static final int WAIT_SECONDS = 60;
    private static final long CONTAINER = Long.MIN_VALUE; // the owner of a container
    private static final String UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

    private final CuratorFramework first;
    private final CuratorFramework second;

    private CuratorRecipes(String address) throws Exception {
        first = connect(address);
        second = connect(address);
    }

    public static void main(String[] words) throws Exception {
        CuratorRecipes recipes = new CuratorRecipes(words[0]);
        recipes.locks();
        recipes.readWriteLocks();
        recipes.counters();
        recipes.caches();
        recipes.pathCaches();
        recipes.persistentNodes();
        recipes.queues();
        recipes.transactions();
        recipes.leaders(); // closes the first client
        recipes.tree("/");
        recipes.second.close();
        System.exit(0);
    }

    private static CuratorFramework connect(String address) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs(30_000)
                .retryPolicy(new ExponentialBackoffRetry(50, 20, 500))
                .namespace("recipes")
                .build();
        client.start();
        if (!client.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + address);
        }
        return client;
    }

    private void locks() throws Exception {
        InterProcessMutex ours = new InterProcessMutex(first, "/lock");
        InterProcessMutex theirs = new InterProcessMutex(second, "/lock");
        say("lock", ours.acquire(WAIT_SECONDS, TimeUnit.SECONDS), theirs.acquire(100, TimeUnit.MILLISECONDS));
        Thread waiting = run(() -> theirs.acquire(WAIT_SECONDS, TimeUnit.SECONDS) ? report("lock", "passed on") : null);
        await(() -> second.getChildren().forPath("/lock").size() == 2);
        ours.release();
        waiting.join();
        say("lock", ours.isAcquiredInThisProcess(), theirs.isAcquiredInThisProcess());
    }

    private void readWriteLocks() throws Exception {
        InterProcessReadWriteLock ours = new InterProcessReadWriteLock(first, "/rw");
        InterProcessReadWriteLock theirs = new InterProcessReadWriteLock(second, "/rw");
        say("read", ours.readLock().acquire(WAIT_SECONDS, TimeUnit.SECONDS));
        say("read", theirs.readLock().acquire(WAIT_SECONDS, TimeUnit.SECONDS));
        theirs.readLock().release();
        say("write", theirs.writeLock().acquire(100, TimeUnit.MILLISECONDS));
        ours.readLock().release();
        say("write", theirs.writeLock().acquire(WAIT_SECONDS, TimeUnit.SECONDS));
        theirs.writeLock().release();
    }

    private void counters() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (CuratorFramework client : List.of(first, second)) {
            threads.add(run(() -> {
                DistributedAtomicLong counter =
                        new DistributedAtomicLong(client, "/counter", new ExponentialBackoffRetry(1, 29));
                for (int done = 0; done < 20; ) {
                    if (counter.increment().succeeded()) {
                        done++;
                    }
                }
                return null;
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say("counter", new DistributedAtomicLong(first, "/counter", new ExponentialBackoffRetry(1, 1)).get().postValue());
    }

    private void caches() throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        CuratorCache cache = CuratorCache.build(second, "/cache");
        cache.listenable().addListener((type, before, now) -> {
            seen.add(type + " " + (now == null ? before : now).getPath() + " " + text(now == null ? null : now.getData()));
        });
        first.create().forPath("/cache", bytes("top"));
        cache.start();
        expect("cache", seen);
        first.create().forPath("/cache/a", bytes("a"));
        expect("cache", seen);
        first.create().forPath("/cache/a/b", bytes("1"));
        expect("cache", seen);
        first.setData().forPath("/cache/a/b", bytes("2"));
        expect("cache", seen);
        first.delete().forPath("/cache/a/b");
        expect("cache", seen);
        first.delete().forPath("/cache/a");
        expect("cache", seen);
        cache.close();
    }

    @SuppressWarnings("deprecation")
    private void pathCaches() throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        PathChildrenCache cache = new PathChildrenCache(second, "/paths", true);
        cache.getListenable().addListener((client, event) -> {
            seen.add(event.getType() + " " + (event.getData() == null ? "" : event.getData().getPath()));
        });
        first.create().forPath("/paths");
        first.create().forPath("/paths/old", bytes("1"));
        cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
        expect("paths", seen);
        expect("paths", seen);
        first.create().withMode(CreateMode.EPHEMERAL).forPath("/paths/new", bytes("1"));
        expect("paths", seen);
        first.setData().forPath("/paths/old", bytes("2"));
        expect("paths", seen);
        first.delete().forPath("/paths/old");
        expect("paths", seen);
        say("paths", cache.getCurrentData().size());
        cache.close();
    }

    private void persistentNodes() throws Exception {
        PersistentNode node = new PersistentNode(first, CreateMode.EPHEMERAL, true, "/kept", bytes("mine"));
        node.start();
        say("kept", node.waitForInitialCreate(WAIT_SECONDS, TimeUnit.SECONDS));
        String path = node.getActualPath();
        long created = second.checkExists().forPath(path).getCzxid();
        second.delete().forPath(path);
        await(() -> second.checkExists().forPath(path) != null);
        say("kept", second.checkExists().forPath(path).getCzxid() > created);
        node.close();
        await(() -> second.checkExists().forPath(path) == null);
    }

    private void queues() throws Exception {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(first, "/queue");
        SimpleDistributedQueue reading = new SimpleDistributedQueue(second, "/queue");
        for (int number = 0; number < 5; number++) {
            queue.offer(bytes("item " + number));
        }
        for (int number = 0; number < 5; number++) {
            say("queue", text(reading.poll(WAIT_SECONDS, TimeUnit.SECONDS)));
        }
        Thread waiting = run(() -> report("queue", text(reading.take())));
        queue.offer(bytes("late"));
        waiting.join();
    }

    private void transactions() throws Exception {
        Collection<CuratorTransactionResult> results = first.transaction().forOperations(
                first.transactionOp().create().forPath("/all", bytes("1")),
                first.transactionOp().setData().withVersion(0).forPath("/all", bytes("2")),
                first.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/all/n"));
        for (CuratorTransactionResult result : results) {
            say("transaction", result.getType(), result.getResultPath(), result.getError());
        }
        try {
            first.transaction().forOperations(
                    first.transactionOp().create().forPath("/none", bytes("1")),
                    first.transactionOp().check().withVersion(7).forPath("/all"));
        } catch (KeeperException error) {
            say("transaction", error.code(), first.checkExists().forPath("/none"));
        }
        first.create().withTtl(3_600_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl");
        first.create().orSetData().forPath("/all", bytes("3"));
        say("data", text(second.getData().forPath("/all")), second.checkExists().forPath("/all").getVersion());
        first.delete().guaranteed().deletingChildrenIfNeeded().forPath("/all");
    }

    private void leaders() throws Exception {
        LeaderLatch ours = new LeaderLatch(first, "/leader", "ours");
        LeaderLatch theirs = new LeaderLatch(second, "/leader", "theirs");
        ours.start();
        say("leader", ours.await(WAIT_SECONDS, TimeUnit.SECONDS));
        theirs.start();
        await(() -> theirs.getParticipants().size() == 2);
        TreeSet<String> participants = new TreeSet<>();
        for (Participant participant : theirs.getParticipants()) {
            participants.add(participant.getId() + " " + participant.isLeader());
        }
        say("leader", participants, theirs.hasLeadership());
        first.close(); // without the latch: its node ends with the session
        say("leader", theirs.await(WAIT_SECONDS, TimeUnit.SECONDS), theirs.getLeader().getId());
        theirs.close();
    }

    /** Prints the nodes that stay, without empty containers, which the server deletes at a time of its own. */
    private void tree(String path) throws Exception {
        Stat stat = second.checkExists().forPath(path);
        if (stat == null || stat.getEphemeralOwner() == CONTAINER && stat.getNumChildren() == 0) {
            return;
        }
        String owner = stat.getEphemeralOwner() > 0 ? "session" : Long.toHexString(stat.getEphemeralOwner());
        say("node", path.replaceAll(UUID, "UUID"), stat.getVersion(), owner);
        List<String> names = second.getChildren().forPath(path);
        Collections.sort(names);
        for (String name : names) {
            tree(path.equals("/") ? "/" + name : path + "/" + name);
        }
    }

    // -- helpers

    private static Thread run(Callable<?> work) {
        Thread thread = new Thread(() -> {
            try {
                work.call();
            } catch (Exception error) {
                say("failed", error);
            }
        });
        thread.start();
        return thread;
    }

    private static void await(Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("a condition did not become true");
            }
            Thread.sleep(5);
        }
    }

    private static void expect(String recipe, BlockingQueue<String> seen) throws Exception {
        say(recipe, seen.poll(WAIT_SECONDS, TimeUnit.SECONDS));
    }

    private static Object report(String recipe, Object what) {
        say(recipe, what);
        return what;
    }

    private static synchronized void say(String recipe, Object... what) {
        StringBuilder line = new StringBuilder(recipe);
        for (Object each : what) {
            line.append(' ').append(each);
        }
        System.out.println(line);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] data) {
        return data == null ? "-" : new String(data, StandardCharsets.UTF_8);
    }
}
