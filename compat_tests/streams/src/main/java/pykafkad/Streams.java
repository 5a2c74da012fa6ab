package pykafkad;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;

/**
 * Two applications of Kafka Streams in one, exactly once: a word count (repartitioned, with a store of counts) and a
 * windowed join of two topics (with two window stores). Every update is an output: nothing is cached.
 *
 * Arguments are NAME=VALUE: bootstrap, application, state (a directory), lines, counts, left, right, joined (topics),
 * window_ms. It ends, in order, when its input does.
 */
public final class Streams {
    private static final Duration GRACE = Duration.ofDays(1); // no record is late, in whichever order partitions are read
    private static final Duration CLOSE = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String word : arguments) {
            String[] pair = word.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        var streams = new KafkaStreams(topology(given), config(given));
        streams.start();
        while (System.in.read() >= 0) {
            // until the end
        }
        Runtime.getRuntime().halt(streams.close(CLOSE) ? 0 : 1);
    }

    private static Properties config(Map<String, String> given) {
        var config = new Properties();
        config.putAll(Map.of(
            "bootstrap.servers", given.get("bootstrap"), "application.id", given.get("application"),
            "state.dir", given.get("state"), "processing.guarantee", "exactly_once_v2", "num.stream.threads", 1,
            "default.key.serde", Serdes.StringSerde.class.getName(),
            "default.value.serde", Serdes.StringSerde.class.getName(),
            "statestore.cache.max.bytes", 0, "commit.interval.ms", 100));
        config.putAll(Map.of(
            "consumer.session.timeout.ms", 3000, "consumer.heartbeat.interval.ms", 500,
            "consumer.auto.offset.reset", "earliest", "producer.transaction.timeout.ms", 5000));
        return config;
    }

    private static Topology topology(Map<String, String> given) {
        var builder = new StreamsBuilder();
        builder.<String, String>stream(given.get("lines"))
            .peek((key, line) -> slowly())
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count()
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(given.get("counts"));
        KStream<String, String> right = builder.stream(given.get("right"));
        builder.<String, String>stream(given.get("left"))
            .join(right, (one, other) -> one + "+" + other, JoinWindows.ofTimeDifferenceAndGrace(
                Duration.ofMillis(Long.parseLong(given.get("window_ms"))), GRACE))
            .to(given.get("joined"));
        return builder.build();
    }

    /** So that there is time to kill it in the middle of its work. */
    private static void slowly() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
