package pykafkad;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The stock Java client in transactions. Its lines are described in compat_tests/transactions/drivers/line.py. */
public final class Transactional {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration TAKE = Duration.ofSeconds(30);
    private static final Duration PEEK = Duration.ofMillis(400);
    private final String bootstrap;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>(); // of groups, and readers
    private final Map<String, List<String>> ahead = new HashMap<>();
    private final Map<String, List<String>> consumed = new HashMap<>();

    private Transactional(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        var session = new Transactional(arguments[0].substring("bootstrap=".length()));
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                say(String.join(" ", session.act(line.split(" "))));
            } catch (Exception e) {
                say("error " + e.toString().replace('\n', ' '));
            }
        }
        Runtime.getRuntime().halt(0); // fenced producers would wait for their transactions
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private List<String> act(String[] words) throws Exception {
        String name = words[1];
        List<String> answer = new ArrayList<>(List.of("ok"));
        switch (words[0]) {
            case "producer" -> produce(name, words);
            case "begin" -> producers.get(name).beginTransaction();
            case "commit" -> producers.get(name).commitTransaction();
            case "abort" -> producers.get(name).abortTransaction();
            case "send" -> send(name, partition(words[2]), List.of(words).subList(3, words.length));
            case "consume" -> answer.addAll(consume(name, Integer.parseInt(words[2])));
            case "transform" -> transform(name, partition(words[2]));
            case "reader" -> read(name, words[2], partition(words[3]));
            case "take" -> answer.addAll(take(name, words[2]));
            case "peek" -> answer.addAll(peek(name));
            case "close" -> close(name);
            default -> throw new IllegalArgumentException(words[0]);
        }
        return answer;
    }

    private void produce(String name, String[] words) {
        var producer = new KafkaProducer<>(Map.<String, Object>of(
            "bootstrap.servers", bootstrap, "transactional.id", words[2], "transaction.timeout.ms", words[3],
            "linger.ms", 0), new StringSerializer(), new StringSerializer());
        producers.put(name, producer);
        producer.initTransactions();
        if (words.length > 4) {
            KafkaConsumer<String, String> consumer = consumer(words[4], "read_committed", words[6]);
            consumer.subscribe(List.of(words[5]));
            consumers.put(name, consumer);
        }
    }

    private KafkaConsumer<String, String> consumer(String group, String isolation, String protocol) {
        return new KafkaConsumer<>(Map.<String, Object>of(
            "bootstrap.servers", bootstrap, "group.id", group, "isolation.level", isolation, "fetch.max.wait.ms", 100,
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "group.protocol", protocol), new StringDeserializer(), new StringDeserializer());
    }

    private void send(String name, TopicPartition partition, List<String> values) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producers.get(name).send(new ProducerRecord<>(partition.topic(), partition.partition(), null, value)));
        }
        producers.get(name).flush();
        for (Future<RecordMetadata> future : sent) {
            try {
                future.get();
            } catch (ExecutionException e) {
                throw (Exception) e.getCause();
            }
        }
    }

    private List<String> poll(String name) {
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<String, String> record : consumers.get(name).poll(POLL)) {
            values.add(record.value());
        }
        return values;
    }

    private List<String> gather(String name, Predicate<List<String>> ended) {
        List<String> got = new ArrayList<>();
        long deadline = System.nanoTime() + TAKE.toNanos();
        while (!ended.test(got)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + got + " in " + TAKE);
            }
            got.addAll(poll(name));
        }
        return got;
    }

    private List<String> consume(String name, int count) {
        consumed.put(name, gather(name, got -> got.size() >= count));
        return consumed.get(name);
    }

    private void transform(String name, TopicPartition to) throws Exception {
        send(name, to, consumed.get(name).stream().map(value -> value + "'").toList());
        var consumer = consumers.get(name);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        consumer.assignment().forEach(partition -> offsets.put(partition, new OffsetAndMetadata(consumer.position(partition))));
        producers.get(name).sendOffsetsToTransaction(offsets, consumer.groupMetadata());
    }

    private void read(String name, String isolation, TopicPartition partition) {
        KafkaConsumer<String, String> consumer = consumer("never joined " + UUID.randomUUID(), isolation, "classic");
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        consumers.put(name, consumer);
        ahead.put(name, new ArrayList<>());
    }

    private List<String> take(String name, String last) {
        List<String> values = ahead.get(name);
        if (!values.contains(last)) {
            values.addAll(gather(name, got -> got.contains(last)));
        }
        int end = values.indexOf(last) + 1;
        ahead.put(name, new ArrayList<>(values.subList(end, values.size())));
        return values.subList(0, end);
    }

    private List<String> peek(String name) {
        List<String> found = ahead.put(name, new ArrayList<>());
        for (long until = System.nanoTime() + PEEK.toNanos(); System.nanoTime() < until;) {
            found.addAll(poll(name));
        }
        return found;
    }

    private void close(String name) {
        if (consumers.containsKey(name)) {
            consumers.remove(name).close();
        }
        if (producers.containsKey(name)) {
            producers.remove(name).close();
        }
    }

    private static TopicPartition partition(String word) {
        int colon = word.lastIndexOf(':');
        return new TopicPartition(word.substring(0, colon), Integer.parseInt(word.substring(colon + 1)));
    }
}
