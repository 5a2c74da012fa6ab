import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans partition directories with Kafka's own cleaner, at a given time: one JSON object a line on stdin names a
 * directory, and one on stdout has the state of its log and the result. The files are left as the swap of segments left
 * them; replaced ones have the suffix .deleted.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A clock that stands still. */
    private static final class Standing implements Time {
        private final long now;

        Standing(long now) { this.now = now; }

        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { }
        @Override public void waitObject(Object it, Supplier<Boolean> condition, long deadline) { }
    }

    /** Delayed work is never done. */
    private static final class Never implements Scheduler {
        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { return null; }
        @Override public void resizeThreadPool(int size) { }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            answers.flush();
        }
    }

    private static ObjectNode answer(JsonNode asked) {
        ObjectNode said = JSON.createObjectNode();
        try {
            clean(asked, said);
        } catch (Throwable error) {
            said.put("error", error.toString());
        }
        return said;
    }

    private static UnifiedLog open(JsonNode asked, Time time) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        asked.get("configs").fields().forEachRemaining(each -> configs.put(each.getKey(), each.getValue().asText()));
        return UnifiedLog.create(new File(asked.get("directory").asText()), new LogConfig(configs),
            asked.get("logStart").asLong(), 0L, new Never(), new BrokerTopicStats(), time, 900_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE,
            new LogDirFailureChannel(1), false, Optional.empty());
    }

    private static void clean(JsonNode asked, ObjectNode said) throws Exception {
        Time time = new Standing(asked.get("now").asLong());
        UnifiedLog log = open(asked, time);
        try {
            LogToClean work = new LogToClean(log, asked.get("firstDirty").asLong(), asked.get("uncleanable").asLong(), false);
            describe(log, work, said);
            SkimpyOffsetMap map = new SkimpyOffsetMap(asked.get("memory").asInt());
            int buffer = asked.get("buffer").asInt();
            Throttler unlimited = new Throttler(Double.MAX_VALUE, 300, "cleaner", "bytes", Time.SYSTEM);
            Cleaner cleaner = new Cleaner(0, map, buffer, 64 * 1024 * 1024, asked.get("loadFactor").asDouble(), unlimited, time, partition -> { });
            long begun = System.nanoTime();
            Map.Entry<Long, CleanerStats> done = cleaner.doClean(work, time.milliseconds());
            said.put("nanoseconds", System.nanoTime() - begun);
            said.put("endOffset", done.getKey());
            tell(done.getValue(), map, said.putObject("stats"));
        } finally {
            log.closeHandlers();
        }
    }

    /** The state of the log before it is cleaned. */
    private static void describe(UnifiedLog log, LogToClean work, ObjectNode said) {
        said.put("firstUncleanable", work.firstUncleanableOffset());
        ObjectNode producers = said.putObject("producers");
        log.lastRecordsOfActiveProducers().forEach((id, last) -> {
            ArrayNode row = producers.putArray(Long.toString(id));
            if (last.lastDataOffset().isPresent()) row.add(last.lastDataOffset().getAsLong()); else row.addNull();
            row.add(last.producerEpoch());
        });
        ArrayNode aborted = said.putArray("aborted");
        for (AbortedTxn each : log.collectAbortedTransactions(log.logStartOffset(), Long.MAX_VALUE))
            aborted.addArray().add(each.producerId()).add(each.firstOffset()).add(each.lastOffset()).add(each.lastStableOffset());
        ArrayNode segments = said.putArray("segments");
        List<LogSegment> all = log.logSegments();
        for (LogSegment each : all)
            segments.addArray().add(each.baseOffset()).add(each.size()).add(each.lastModified());
    }

    private static void tell(CleanerStats stats, SkimpyOffsetMap map, ObjectNode said) throws Exception {
        said.put("index_messages_read", stats.mapMessagesRead());
        said.put("bytes_read", stats.bytesRead());
        said.put("messages_read", stats.messagesRead());
        said.put("bytes_written", stats.bytesWritten());
        said.put("messages_written", stats.messagesWritten());
        said.put("invalid_messages", stats.invalidMessagesRead());
        said.put("keys", map.size());
    }
}
