package pykafkad;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The stock Java client, driven by lines on stdin, answered on stdout. Words are separated by one space; bytes are
 * '-' for null or '=' and base64. Every command ends with one line: OK, or ERR and why.
 *
 * create TOPIC PARTITIONS | count TOPIC (COUNT n) | send TOPIC KEY VALUE TIMESTAMP [NAME VALUE ...] (kept back)
 * flush CODEC IDEMPOTENT (sends what was kept back) | open ID TOPIC KIND VALUE
 * read ID COUNT MILLIS (R offset timestamp key value [name value ...] each) | close ID
 */
public final class Driver {
    private final String bootstrap;
    private final Admin admin;
    private final List<ProducerRecord<byte[], byte[]>> kept = new ArrayList<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> readers = new HashMap<>();
    private final Map<String, List<ConsumerRecord<byte[], byte[]>>> ahead = new HashMap<>();
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        new Driver(arguments[0]).serve();
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                act(line.split(" "));
                out.println("OK");
            } catch (Exception e) {
                out.println("ERR " + e.toString().replace('\n', ' '));
            }
            out.flush();
        }
        readers.values().forEach(KafkaConsumer::close);
        admin.close();
    }

    private void act(String[] words) throws Exception {
        switch (words[0]) {
            case "create" -> admin.createTopics(
                List.of(new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1))).all().get();
            case "count" -> out.println("COUNT " + admin.describeTopics(List.of(words[1]))
                .allTopicNames().get().get(words[1]).partitions().size());
            case "send" -> keep(words);
            case "flush" -> flush(words[1], words[2]);
            case "open" -> open(words[1], new TopicPartition(words[2], 0), words[3], Long.parseLong(words[4]));
            case "read" -> read(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
            case "close" -> readers.remove(words[1]).close();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private void keep(String[] words) {
        Long timestamp = words[4].equals("-") ? null : Long.valueOf(words[4]);
        var record = new ProducerRecord<>(words[1], 0, timestamp, bytes(words[2]), bytes(words[3]));
        for (int i = 5; i < words.length; i += 2) {
            record.headers().add(new String(bytes(words[i]), StandardCharsets.UTF_8), bytes(words[i + 1]));
        }
        kept.add(record);
    }

    private void flush(String codec, String idempotent) throws Exception {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "compression.type", codec, "linger.ms", 5));
        if (idempotent.equals("false")) {
            config.put("enable.idempotence", false);
        }
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = kept.stream().map(producer::send).toList();
            kept.clear();
            for (Future<RecordMetadata> future : sent) {
                future.get();
            }
        }
    }

    private void open(String id, TopicPartition partition, String kind, long value) {
        var consumer = new KafkaConsumer<>(Map.<String, Object>of("bootstrap.servers", bootstrap),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        readers.put(id, consumer);
        ahead.put(id, new ArrayList<>());
        consumer.assign(List.of(partition));
        switch (kind) {
            case "earliest" -> consumer.seekToBeginning(List.of(partition));
            case "latest" -> consumer.seekToEnd(List.of(partition));
            case "offset" -> consumer.seek(partition, value);
            default -> {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, value)).get(partition);
                consumer.seek(partition, found.offset());
            }
        }
        consumer.position(partition);
    }

    private void read(String id, int count, long millis) {
        List<ConsumerRecord<byte[], byte[]>> records = ahead.get(id);
        long deadline = System.nanoTime() + Duration.ofMillis(millis).toNanos();
        while (records.size() < count && System.nanoTime() < deadline) {
            readers.get(id).poll(Duration.ofMillis(200)).forEach(records::add);
        }
        List<ConsumerRecord<byte[], byte[]>> taken = records.subList(0, Math.min(count, records.size()));
        taken.forEach(this::print);
        taken.clear();
    }

    private void print(ConsumerRecord<byte[], byte[]> record) {
        var line = new StringBuilder("R ").append(record.offset()).append(' ').append(record.timestamp())
            .append(' ').append(text(record.key())).append(' ').append(text(record.value()));
        for (Header header : record.headers()) {
            line.append(' ').append(text(header.key().getBytes(StandardCharsets.UTF_8)));
            line.append(' ').append(text(header.value()));
        }
        out.println(line);
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? null : Base64.getDecoder().decode(word.substring(1));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
