package pykafkad;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** The stock Java consumer as one member of a group. Its lines are described in compat_tests/groups/drivers/line.py. */
public final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    private final Map<String, String> given = new HashMap<>();
    private final Set<String> owned = new TreeSet<>();
    private final KafkaConsumer<String, String> consumer;

    private Member(String[] arguments) {
        for (String word : arguments) {
            String[] pair = word.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        consumer = new KafkaConsumer<>(config(), new StringDeserializer(), new StringDeserializer());
        consumer.listTopics();
    }

    private Map<String, Object> config() {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", given.get("bootstrap"), "group.id", given.get("group"), "client.id", given.get("client_id"),
            "group.protocol", given.get("protocol"), "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "metadata.max.age.ms", 1000));
        if (given.get("protocol").equals("consumer")) {
            config.put("group.remote.assignor", given.get("assignor"));
        } else {
            config.put("partition.assignment.strategy",
                given.get("assignor").equals("range") ? RangeAssignor.class.getName() : CooperativeStickyAssignor.class.getName());
            config.put("session.timeout.ms", given.get("session_ms"));
            config.put("heartbeat.interval.ms", given.get("heartbeat_ms"));
        }
        if (!given.get("instance").isEmpty()) {
            config.put("group.instance.id", given.get("instance"));
        }
        return config;
    }

    public static void main(String[] arguments) throws Exception {
        new Member(arguments).serve();
    }

    private void serve() throws Exception {
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(commands));
        reader.setDaemon(true);
        reader.start();
        say("ready");
        boolean joined = false;
        while (true) {
            String command = joined ? commands.poll() : commands.take();
            if (command == null) {
                poll();
            } else if (command.equals("leave")) {
                consumer.close();
                say("ok");
                return;
            } else {
                answer(command.split(" "));
                joined |= command.equals("join");
            }
        }
    }

    private static void read(BlockingQueue<String> commands) {
        try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            in.lines().forEach(commands::add);
        } catch (Exception e) {
            say("fatal " + line(e));
        }
        Runtime.getRuntime().halt(0); // the test has ended
    }

    private void poll() {
        try {
            consumer.poll(POLL).forEach(record ->
                say("record " + record.topic() + ":" + record.partition() + " " + record.offset() + " " + record.value()));
        } catch (RuntimeException e) {
            say("fatal " + line(e));
            throw e;
        }
    }

    private void answer(String[] words) {
        try {
            say("ok" + act(words));
        } catch (RuntimeException e) {
            say("error " + line(e));
        }
    }

    private String act(String[] words) {
        TopicPartition partition = words.length > 1 ? partition(words[1]) : null;
        switch (words[0]) {
            case "join" -> join(given.get("topics"));
            case "commit" -> {
                if (partition == null) {
                    consumer.commitSync();
                } else {
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(Long.parseLong(words[2]))));
                }
            }
            case "committed" -> {
                OffsetAndMetadata found = consumer.committed(Set.of(partition)).get(partition);
                return " " + (found == null ? "-" : found.offset());
            }
            case "seek" -> consumer.seek(partition, Long.parseLong(words[2]));
            case "pause" -> consumer.pause(List.of(partition));
            case "resume" -> consumer.resume(List.of(partition));
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    /** '^...' is a pattern: the broker's own (RE2) in the consumer protocol, Java's in the classic one. */
    private void join(String topics) {
        if (!topics.startsWith("^")) {
            consumer.subscribe(List.of(topics.split(",")), this);
        } else if (given.get("protocol").equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(topics), this);
        } else {
            consumer.subscribe(Pattern.compile(topics), this);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        owned.addAll(words(partitions));
        tell();
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        owned.removeAll(words(partitions));
        tell();
    }

    private void tell() {
        say("owns" + owned.stream().map(word -> " " + word).collect(Collectors.joining()));
    }

    private static Set<String> words(Collection<TopicPartition> partitions) {
        return partitions.stream().map(p -> p.topic() + ":" + p.partition()).collect(Collectors.toSet());
    }

    private static TopicPartition partition(String word) {
        int colon = word.lastIndexOf(':');
        return new TopicPartition(word.substring(0, colon), Integer.parseInt(word.substring(colon + 1)));
    }

    private static String line(Exception e) {
        return e.toString().replace('\n', ' ');
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
